"""A run that is killed and started again ends as if nothing had happened; a run of other settings is not continued."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import TrainerState

import train.trainer as trainer_module
from recipes.script_verify import SCRIPT_VERIFY
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
    """What a run left: adapter bytes, judge.json, and the lines of metrics.jsonl without times."""
    folder = RunFolder(config, "script_verify")
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    kept = [{k: v for k, v in line.items() if not any(word in k for word in TIMES)} for line in lines]
    return (
        (folder.adapter / "adapter_model.safetensors").read_bytes(),
        (folder.adapter / "judge.json").read_text(),
        kept,
    )


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
