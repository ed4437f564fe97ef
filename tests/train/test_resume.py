"""A run that is killed and started again ends as if nothing had happened; a run of other settings is not continued."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import tiny_checkpoint
from transformers import TrainerState

import train.trainer as trainer_module
from models.folder import sole_writer
from recipes.script_verify import SCRIPT_VERIFY
from train.checkpoints import seal
from train.config import TrainConfig
from train.run import train
from train.runs import RunFolder

TIMES = ("runtime", "per_second", "mfu", "peak_memory")


def in_child(work: Callable[[], object]) -> int:
    """Do the work in a forked process; the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # a child must never run on as a second pytest
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert not (os.WIFEXITED(status) and os.WEXITSTATUS(status)), "the child failed"
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class KillAfter:
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: object, state: TrainerState, control: object, **_: object) -> None:
        if state.global_step == self.step:
            die()


def killed_after(step: int, config: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(trainer_module.Throughput, "on_step_end", KillAfter(step).on_step_end, raising=False)
        assert in_child(lambda: train(SCRIPT_VERIFY, config)) == signal.SIGKILL


def last_of(config: TrainConfig) -> Path:
    """The newest checkpoint of a run."""
    checkpoints = RunFolder(config, "script_verify").checkpoints
    return max(checkpoints.glob("checkpoint-[0-9]*"), key=lambda folder: int(folder.name.rsplit("-", 1)[1]))


def killed_while_saving(step: int, config: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed when half of the last file of a checkpoint is written."""

    def half(self: TrainerState, path: str) -> None:
        text = json.dumps({"global_step": self.global_step, "log_history": self.log_history})
        Path(path).write_text(text[: len(text) // 2] if self.global_step == step else text)
        if self.global_step == step:
            die()
        save(self, path)

    save = TrainerState.save_to_json
    with monkeypatch.context() as patch:
        patch.setattr(TrainerState, "save_to_json", half)
        assert in_child(lambda: train(SCRIPT_VERIFY, config)) == signal.SIGKILL


def ended(config: TrainConfig) -> tuple[bytes, str, list[dict[str, object]]]:
    """What a run left: adapter bytes, judge.json, and the lines of metrics.jsonl without what was measured."""
    folder = RunFolder(config, "script_verify")
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    kept = [{k: v for k, v in line.items() if not any(word in k for word in TIMES)} for line in lines]
    return (
        (folder.adapter / "adapter_model.safetensors").read_bytes(),
        (folder.adapter / "judge.json").read_text(),
        kept,
    )


def with_the_first_best(config: TrainConfig) -> TrainConfig:
    """Its validation loss falls, so that the highest is the first."""
    return replace(config, evaluation=replace(config.evaluation, metric="loss", direction="up"))


@pytest.fixture
def long_config(tiny_config: TrainConfig) -> TrainConfig:
    """Two epochs of four updates with dropout: the random state matters."""
    return replace(tiny_config, lora=replace(tiny_config.lora, dropout=0.2), optim=replace(tiny_config.optim, epochs=2))


def called(config: TrainConfig, name: str) -> TrainConfig:
    return replace(config, run=replace(config.run, name=name))


def test_a_killed_run_goes_on_to_the_same_bits(
    long_config: TrainConfig, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    in_child(lambda: train(SCRIPT_VERIFY, called(long_config, "whole")))
    whole = ended(called(long_config, "whole"))
    for step in (1, 3, 4, 7, 8):
        config = called(long_config, f"killed-{step}")
        killed_after(step, config, monkeypatch)
        capfd.readouterr()
        in_child(lambda config=config: train(SCRIPT_VERIFY, config))
        last = (step - 1) // 2 * 2  # the kill comes before the checkpoint of its own step
        said = capfd.readouterr().err
        assert (f"from update {last} (checkpoint-{last})" in said) == (last > 0), said[-2000:]
        assert ended(config) == whole, f"killed after update {step}"


def test_a_checkpoint_that_was_being_written_is_not_used(
    long_config: TrainConfig, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    in_child(lambda: train(SCRIPT_VERIFY, called(long_config, "whole")))
    config = called(long_config, "torn")
    killed_while_saving(4, config, monkeypatch)
    assert (RunFolder(config, "script_verify").checkpoints / "checkpoint-4").is_dir()
    capfd.readouterr()
    in_child(lambda: train(SCRIPT_VERIFY, config))
    assert "from update 2" in capfd.readouterr().err
    assert ended(config) == ended(called(long_config, "whole"))


def test_the_best_and_the_last_checkpoint_are_kept(long_config: TrainConfig) -> None:
    summary = train(SCRIPT_VERIFY, long_config)
    kept = {path.name for path in RunFolder(long_config, "script_verify").checkpoints.glob("checkpoint-*")}
    assert summary is not None
    assert kept == {f"checkpoint-{summary['best']['step']}", "checkpoint-8"}


def test_direction_decides_what_is_best(long_config: TrainConfig) -> None:
    by_metric = {}
    for direction in ("up", "down"):
        config = called(long_config, direction)
        config = replace(config, evaluation=replace(config.evaluation, metric="loss", direction=direction))
        summary = train(SCRIPT_VERIFY, config)
        lines = [json.loads(line) for line in RunFolder(config, "script_verify").metrics.read_text().splitlines()]
        losses = {line["step"]: line["eval_loss"] for line in lines if "eval_loss" in line}
        assert summary is not None
        by_metric[direction] = losses[summary["best"]["step"]]
        assert by_metric[direction] == (max if direction == "up" else min)(losses.values())
    assert by_metric["up"] > by_metric["down"]


def test_a_run_with_other_settings_or_data_is_refused(tiny_config: TrainConfig) -> None:
    train(SCRIPT_VERIFY, tiny_config)
    other = replace(tiny_config, optim=replace(tiny_config.optim, learning_rate=2e-3))
    with pytest.raises(ValueError, match=r"optim\.learning_rate = 0\.001, this one has 0\.002.*--run\.overwrite"):
        train(SCRIPT_VERIFY, other)
    path = Path(tiny_config.data.train)
    path.write_text(path.read_text().replace("goal number 3", "goal number three"))
    with pytest.raises(ValueError, match=r"facts\.data\.train"):
        train(SCRIPT_VERIFY, tiny_config)


def test_a_finished_run_is_not_trained_again(tiny_config: TrainConfig, capfd: pytest.CaptureFixture[str]) -> None:
    first = train(SCRIPT_VERIFY, tiny_config)
    capfd.readouterr()
    assert train(SCRIPT_VERIFY, tiny_config) == first
    assert "is finished" in capfd.readouterr().err


def test_a_checkpoint_that_lost_a_part_is_not_used(
    long_config: TrainConfig, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    long_config = with_the_first_best(long_config)
    in_child(lambda: train(SCRIPT_VERIFY, called(long_config, "whole")))
    config = called(long_config, "cut")
    for name in ("optimizer.pt", "adapter_model.safetensors"):
        killed_after(7, config, monkeypatch)
        file = last_of(config) / name
        file.write_bytes(file.read_bytes()[:-100])
        (last_of(config).parent / "checkpoint-mine").mkdir(exist_ok=True)
    capfd.readouterr()
    in_child(lambda: train(SCRIPT_VERIFY, config))
    assert "from update 2 (checkpoint-2)" in capfd.readouterr().err
    assert ended(config) == ended(called(long_config, "whole"))
    assert (last_of(config).parent / "checkpoint-mine").is_dir(), "a folder of somebody else's"


def test_what_several_processes_began_one_goes_on_with(
    tiny_config: TrainConfig, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without dropout nothing is drawn, so that even the bits are the same."""
    in_child(lambda: train(SCRIPT_VERIFY, called(tiny_config, "whole")))
    config = called(tiny_config, "by-two")
    killed_after(3, config, monkeypatch)
    folder = last_of(config)
    shutil.copy(folder / "rng_state.pth", folder / "rng_state_1.pth")
    (folder / "rng_state.pth").rename(folder / "rng_state_0.pth")
    seal(folder, processes=2)
    capfd.readouterr()
    in_child(lambda: train(SCRIPT_VERIFY, config))
    assert "from update 2 (checkpoint-2; 2 processes wrote it, so dropout is drawn anew)" in capfd.readouterr().err
    assert ended(config) == ended(called(tiny_config, "whole"))


def test_the_clock_decides_nothing(long_config: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_after(5, long_config, monkeypatch)
    for folder in last_of(long_config).parent.iterdir():
        os.utime(folder, (4e9, 4e9))  # written in 2096, says a clock that was set back since
    killed_after(7, long_config, monkeypatch)
    assert last_of(long_config).name == "checkpoint-6"


def test_a_run_whose_folder_was_moved_ends_with_its_best_checkpoint(
    long_config: TrainConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = with_the_first_best(long_config)
    in_child(lambda: train(SCRIPT_VERIFY, called(config, "whole")))
    with monkeypatch.context() as patch:
        patch.setattr("train.run.finish", lambda *_: die())
        assert in_child(lambda: train(SCRIPT_VERIFY, called(config, "moved"))) == signal.SIGKILL
    shutil.move(Path(config.run.folder) / "script_verify" / "moved", tmp_path / "elsewhere" / "script_verify" / "moved")
    elsewhere = replace(config, run=replace(config.run, folder=str(tmp_path / "elsewhere"), name="moved"))
    in_child(lambda: train(SCRIPT_VERIFY, elsewhere))
    assert ended(elsewhere) == ended(called(config, "whole"))


def test_a_run_that_lost_its_best_checkpoint_says_so(long_config: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = replace(long_config.evaluation, metric="loss", direction="up")  # the first is the best
    long_config = replace(long_config, evaluation=evaluation)
    killed_after(7, long_config, monkeypatch)
    best = json.loads((last_of(long_config) / "trainer_state.json").read_text())["best_global_step"]
    assert best < 6
    shutil.rmtree(last_of(long_config).with_name(f"checkpoint-{best}"))
    with pytest.raises(
        FileNotFoundError, match=rf"checkpoint-{best}: the best checkpoint so far is gone .*put it back"
    ):
        train(SCRIPT_VERIFY, long_config)


def test_a_run_killed_between_its_judge_and_its_last_line_is_ended(
    tiny_config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_child(lambda: train(SCRIPT_VERIFY, called(tiny_config, "whole")))
    config = called(tiny_config, "nearly")
    with monkeypatch.context() as patch:
        patch.setattr("train.ending._sentence", lambda summary: die())
        assert in_child(lambda: train(SCRIPT_VERIFY, config)) == signal.SIGKILL
    metrics = RunFolder(config, "script_verify").metrics
    metrics.write_text("".join(line for line in metrics.read_text().splitlines(True) if "final" not in line))
    with metrics.open("ab") as file:
        file.write(b'{"final": \xff')
    assert train(SCRIPT_VERIFY, config)
    assert ended(config) == ended(called(tiny_config, "whole"))


def test_another_backbone_of_the_same_name_is_not_gone_on_with(
    tiny_config: TrainConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = replace(tiny_config, checkpoint=str(tiny_checkpoint(tmp_path / "backbone", "llama")))
    killed_after(3, config, monkeypatch)
    tiny_checkpoint(tmp_path / "backbone", "llama", seed=1)
    with pytest.raises(ValueError, match=r"facts\.backbone\.fingerprint"):
        train(SCRIPT_VERIFY, config)


def test_two_processes_do_not_write_one_run(tiny_config: TrainConfig) -> None:
    said, saying = os.pipe()
    child = os.fork()
    if child == 0:
        with sole_writer(RunFolder(tiny_config, "script_verify").path):
            os.write(saying, b"in")
            signal.pause()
    try:
        assert os.read(said, 2) == b"in"
        with pytest.raises(ValueError, match="another process is writing there; wait until it ends"):
            train(SCRIPT_VERIFY, tiny_config)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert train(SCRIPT_VERIFY, tiny_config), "a claim ends with its process"


def test_what_is_no_run_is_not_overwritten(tiny_config: TrainConfig, tmp_path: Path) -> None:
    thesis = tmp_path / "runs" / "script_verify" / "run" / "thesis.txt"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("ten years")
    overwriting = replace(tiny_config, run=replace(tiny_config.run, overwrite=True))
    with pytest.raises(ValueError, match=r"holds other things \(no config\.yaml among them\)"):
        train(SCRIPT_VERIFY, overwriting)
    assert thesis.read_text() == "ten years"


@pytest.mark.parametrize("name", ["../elsewhere", "..", ".", "a/b", "/tmp", "two\nlines"])
def test_the_name_of_a_run_leads_nowhere_else(tiny_config: TrainConfig, name: str) -> None:
    with pytest.raises(ValueError, match=r"run\.name is .*; give the name of one folder"):
        RunFolder(called(tiny_config, name), "script_verify")


@pytest.mark.parametrize("text", ["", "[1]", "a: {", "a: 1"])
def test_a_configuration_that_cannot_be_read_is_said(tiny_config: TrainConfig, text: str) -> None:
    folder = RunFolder(tiny_config, "script_verify")
    folder.path.mkdir(parents=True)
    (folder.path / "config.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"config\.yaml cannot be read as a run's configuration .*--run\.overwrite"):
        train(SCRIPT_VERIFY, tiny_config)
