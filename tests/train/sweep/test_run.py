"""A sweep from its file to its best configuration: drawn, trained, stopped early, failed, killed and gone on with."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from optuna.trial import TrialState
from rich.console import Console

import scripts.sweep
from train.sweep import run
from train.sweep.run import Sweep, run_sweep
from train.sweep.study import STORAGE, VALUES, alone, best, ended, next_up, open_study
from train.sweep.sweep_file import SweepFile
from train.sweep.table import Watcher
from train.sweep.trial import Process, in_use

LR = "optim.learning_rate"
Make = Callable[..., SweepFile]


def sweep(file: SweepFile, folder: Path, count: int | None = None, **more: Any) -> tuple[Any, str]:
    """The study, and what was said of it."""
    said = Console(file=io.StringIO(), width=200)
    study = run_sweep(Sweep(file, folder, 0), count, said, **more)
    return study, said.file.getvalue()  # type: ignore[attr-defined]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]


def started(folder: Path, trial: str) -> list[dict[str, Any]]:
    """How a trial's training was started, each time."""
    text = (folder / "trials" / "standin" / trial / "started.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_grid_goes_through_every_point_once_and_ends(sweep_file: Make, tmp_path: Path) -> None:
    parameters = {LR: {"values": [0.1, 0.2, 0.3]}, "lora.rank": {"min": 8, "max": 9}, "lora.alpha": {"value": 16}}
    study, said = sweep(sweep_file(parameters, method="grid"), tmp_path / "out", 99)
    found = [line["values"] for line in lines(tmp_path / "out")]
    assert sorted((values[LR], values["lora.rank"]) for values in found) == [
        (rate, rank) for rate in (0.1, 0.2, 0.3) for rank in (8, 9)
    ]
    assert {values["lora.alpha"] for values in found} == {16}
    first, found_first = said.splitlines()[0], found[0]
    named = f"learning_rate {found_first[LR]}  rank {found_first['lora.rank']}  "
    assert first.startswith(f"1/6  trial-001  done  {named}") and "  evaluations " in first
    assert best(study).user_attrs[VALUES][LR] == 0.3


def test_a_trial_is_the_file_s_command_with_a_folder_of_its_own_and_w_and_b_offline(
    sweep_file: Make, tmp_path: Path
) -> None:
    command = ["${env}", "${interpreter}", "${program}", "--config", "some.yaml", "${args}"]
    file = sweep_file({LR: {"value": 0.25}, "data.drop_too_long": {"value": True}}, command=command, run_cap=1)
    sweep(file, tmp_path / "out")
    assert started(tmp_path / "out", "trial-001") == [
        {
            "argv": [
                "--config",
                "some.yaml",
                f"--{LR}=0.25",
                "--data.drop_too_long=True",
                f"--run.folder={tmp_path / 'out' / 'trials'}",
                "--run.name=trial-001",
            ],
            "WANDB_MODE": "offline",
            "WANDB_RUN_GROUP": "out",
        }
    ]


def test_the_value_of_a_trial_is_the_best_of_its_curve(sweep_file: Make, tmp_path: Path) -> None:
    study, _ = sweep(sweep_file({LR: {"value": 0.4}}), tmp_path / "up", 1)
    assert (best(study).value, lines(tmp_path / "up")[0]["evaluations"]) == (0.4, [0.2, 0.4, pytest.approx(0.3)])
    down = sweep_file({LR: {"value": 0.4}}, metric={"name": "eval_auc"})  # W&B minimises where no goal is given
    study, _ = sweep(down, tmp_path / "down", 1)
    assert best(study).value == 0.2


def test_the_best_configuration_is_written_without_what_was_its_run_s_own(sweep_file: Make, tmp_path: Path) -> None:
    sweep(sweep_file({LR: {"values": [0.1, 0.3]}}, method="grid"), tmp_path / "out")
    text = (tmp_path / "out" / "best.yaml").read_text()
    assert yaml.safe_load(text) == {"optim": {"learning_rate": 0.3}}
    assert 'eval_auc 0.3 with {"optim.learning_rate": 0.3}' in text.splitlines()[0]


def test_a_failed_trial_is_recorded_with_its_reason_and_survived(sweep_file: Make, tmp_path: Path) -> None:
    file = sweep_file({"seed": {"values": [0, 3]}, LR: {"values": [0.1, 0.2]}}, method="grid")
    study, said = sweep(file, tmp_path / "out")
    failed = [line for line in lines(tmp_path / "out") if line["state"] == "fail"]
    assert len(failed) == 2 and len(ended(study)) == 4
    assert all(line["error"].startswith("error: data/train.jsonl:3: label: missing (exit status 3") for line in failed)
    assert said.count("failed: error: data/train.jsonl:3") == 2


def test_failed_trials_are_tried_again_only_if_asked(sweep_file: Make, tmp_path: Path) -> None:
    file = sweep_file({"seed": {"values": [0, 3]}}, method="grid")
    sweep(file, tmp_path / "out")
    (bad,) = [line["trial"] for line in lines(tmp_path / "out") if line["state"] == "fail"]
    sweep(file, tmp_path / "out")
    assert len(started(tmp_path / "out", bad)) == 1
    _, said = sweep(file, tmp_path / "out", retry_failed=True)
    assert len(started(tmp_path / "out", bad)) == 2
    assert len(lines(tmp_path / "out")) == 2
    assert said.startswith(f"2/2  {bad}  failed: ")


def test_a_sweep_that_only_fails_stops_after_three_trials(sweep_file: Make, tmp_path: Path) -> None:
    file = sweep_file({"seed": {"values": [1, 2, 3, 4, 5]}}, method="grid")
    with pytest.raises(ValueError, match=r"the first 3 trials failed, the last with: error: data/train\.jsonl:3"):
        sweep(file, tmp_path / "out")
    assert len(lines(tmp_path / "out")) == 3


def test_a_sweep_without_end_is_refused(sweep_file: Make, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="goes on for ever; give --trials N, or run_cap in the file"):
        sweep(sweep_file({LR: {"min": 0.0, "max": 1.0}}), tmp_path / "out")


@pytest.mark.parametrize("method", ["random", "bayes"])
def test_a_sweep_in_two_calls_draws_what_it_draws_in_one(sweep_file: Make, tmp_path: Path, method: str) -> None:
    file = sweep_file({LR: {"min": 0.0, "max": 1.0}, "lora.rank": {"values": [4, 8]}}, method=method)
    sweep(file, tmp_path / "whole", 5)
    sweep(file, tmp_path / "parts", 2)
    sweep(file, tmp_path / "parts", 5)
    whole, parts = ([line["values"] for line in lines(tmp_path / name)] for name in ("whole", "parts"))
    assert whole == parts
    assert len({values[LR] for values in whole}) == 5


def test_another_file_is_refused_in_the_folder_of_a_sweep(sweep_file: Make, tmp_path: Path) -> None:
    sweep(sweep_file({LR: {"value": 0.1}}), tmp_path / "out", 1)
    sweep(sweep_file({LR: {"value": 0.1}}, run_cap=2, description="the same"), tmp_path / "out")
    with pytest.raises(ValueError, match="holds a sweep with another parameters; give another --out"):
        sweep(sweep_file({LR: {"value": 0.2}}), tmp_path / "out", 3)


def test_hyperband_stops_the_trials_that_fall_behind(sweep_file: Make, tmp_path: Path) -> None:
    rates = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    file = sweep_file(
        {LR: {"values": rates}, "optim.warmup": {"value": 0.15}},
        method="grid",
        early_terminate={"type": "hyperband", "max_iter": 3, "s": 1},
    )
    sweep(file, tmp_path / "out")
    found = {line["values"][LR]: line for line in lines(tmp_path / "out")}
    stopped = [rate for rate, line in found.items() if line["state"] == "pruned"]
    # Three of five trials are looked at after their first evaluation; all but the best third of those end there.
    assert len(stopped) >= 2 and 0.8 not in stopped
    for rate, line in found.items():
        assert line["eval_auc"] == (None if rate in stopped else rate)
        assert len(line["evaluations"]) == (1 if rate in stopped else 3)


def test_a_training_that_is_stopped_takes_its_children_with_it(tmp_path: Path) -> None:
    child = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
    shell = ["sh", "-c", '"$@" & wait', "sh", *child]
    log = tmp_path / "log"
    with Process(shell, log, os.environ):
        while not log.read_text():
            time.sleep(0.01)
        assert in_use(log)
    assert not in_use(log)


def kill_while_training(file: SweepFile, folder: Path, sign: signal.Signals) -> int | None:
    """The exit status of the command, to whose process ``sign`` was sent while the first trial was training."""

    def command() -> None:
        sys.exit(scripts.sweep.main([str(file.path), "--trials", "2", "--out", str(folder)]))

    process = multiprocessing.get_context("fork").Process(target=command)
    process.start()
    while not (folder / "trials" / "standin" / "trial-001" / "metrics.jsonl").is_file():
        assert process.is_alive()
        time.sleep(0.02)
    assert process.pid is not None
    os.kill(process.pid, sign)
    process.join(30)
    return process.exitcode


@pytest.mark.parametrize(
    ("sign", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
@pytest.mark.parametrize("method", ["random", "grid"])
def test_a_killed_sweep_goes_on_with_the_trial_that_it_left(
    sweep_file: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: signal.Signals, status: int, method: str
) -> None:
    go, folder = tmp_path / "go", tmp_path / "out"
    file = sweep_file({LR: {"values": [0.1, 0.2]}, "data.train": {"value": str(go)}}, method=method)
    assert kill_while_training(file, folder, sign) == status
    told: list[str] = []

    def tell(watcher: Watcher, sentence: str) -> None:
        told.append(sentence)
        go.touch()

    monkeypatch.setattr(Watcher, "tell", tell)
    if sign != signal.SIGKILL:  # a training that outlived its sweep is waited for
        go.touch()
    study, _ = sweep(file, folder, 2)
    waited = [sentence.startswith("trial-001 is still training for an earlier call") for sentence in told]
    assert waited == ([True] if sign == signal.SIGKILL else [])
    assert [one.state for one in ended(study)] == [TrialState.COMPLETE] * 2
    first, again = started(folder, "trial-001")
    assert first["argv"] == again["argv"]
    found = lines(folder)
    assert [line["trial"] for line in found] == ["trial-001", "trial-002"]
    if method == "grid":
        assert sorted(line["values"][LR] for line in found) == [0.1, 0.2]


@pytest.mark.parametrize("method", ["grid", "random", "bayes"])
def test_a_journal_that_ends_anywhere_is_gone_on_with_to_the_same_trials(
    sweep_file: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """As a kill, a full disk or a power loss leaves it: after any line, and in the middle of it."""
    monkeypatch.setattr(run, "_train", lambda *_: 0.5)
    monkeypatch.setattr(run, "write_best", lambda *_: Path("best.yaml"))
    file = sweep_file({LR: {"values": [0.1, 0.2, 0.3]}, "lora.rank": {"value": 8}}, method=method)
    sweep(file, tmp_path / "whole", 3)
    written = (tmp_path / "whole" / STORAGE).read_bytes().splitlines(keepends=True)
    for count, line in enumerate(written):
        rest = (b"", line[: len(line) // 2], line[:-2] + b"\n")[count % 3]
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / STORAGE).write_bytes(b"".join(written[:count]) + rest)
        sweep(file, folder, 3)
        found, whole = ([one["values"][LR] for one in lines(path)] for path in (folder, tmp_path / "whole"))
        assert [one["trial"] for one in lines(folder)] == ["trial-001", "trial-002", "trial-003"]
        assert found == whole or (method == "grid" and sorted(found) == [0.1, 0.2, 0.3])


def test_a_journal_that_is_spoilt_elsewhere_is_told_with_the_way_out(sweep_file: Make, tmp_path: Path) -> None:
    file, path = sweep_file({LR: {"value": 0.1}}), tmp_path / "out" / STORAGE
    sweep(file, tmp_path / "out", 1)
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join([first, others[0][:9], *others[1:]]))
    with pytest.raises(ValueError, match=r"study\.journal:2: no line of a journal; remove this line and all below it"):
        sweep(file, tmp_path / "out", 1)
    path.write_text('{"op_code": 4}\n{"study": 1}\n')
    with pytest.raises(ValueError, match=r"study\.journal does not tell of a sweep \(.*; give another --out"):
        sweep(file, tmp_path / "out", 1)
    path.write_text("".join([first, *others]))
    (tmp_path / "out" / "trials.jsonl").unlink()
    sweep(file, tmp_path / "out", 1)
    assert len(lines(tmp_path / "out")) == 1  # what is said to be written is there


def test_a_trial_that_only_waits_is_shown_without_values(sweep_file: Make, tmp_path: Path) -> None:
    file, said = sweep_file({LR: {"values": [0.1, 0.2]}}), Console(file=io.StringIO(), width=200)
    study = open_study(file, tmp_path, 0)
    assert [next_up(study), next_up(study)] == [0, 0]  # it is queued once
    said.print(Watcher(said, file, study, 2).table())
    assert " trial-001 │ waiting │ " in said.file.getvalue()  # type: ignore[attr-defined]


def test_two_sweeps_do_not_share_a_folder(sweep_file: Make, tmp_path: Path) -> None:
    with alone(tmp_path / "out"), pytest.raises(ValueError, match="another sweep is running in it"):
        sweep(sweep_file({LR: {"value": 0.1}}), tmp_path / "out", 1)


def test_the_pictures_are_there_once_there_is_something_to_see(sweep_file: Make, tmp_path: Path) -> None:
    file = sweep_file({LR: {"min": 0.1, "max": 1.0}, "lora.rank": {"values": [4, 8]}})
    sweep(file, tmp_path / "out", 1)
    assert not list((tmp_path / "out").glob("*.png"))
    sweep(file, tmp_path / "out", 6)
    for name in ("importance.png", "parallel_coordinates.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
