"""What a sweep file says, and how its faults are told."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from train.sweep.sweep_file import Hyperband, read_sweep

LR = {"optim.learning_rate": {"value": 0.1}}


def test_bands_come_from_the_smallest_or_from_the_whole(sweep_file: Callable[..., Any]) -> None:
    def hyperband(**given: Any) -> Hyperband:
        return sweep_file(LR, early_terminate={"type": "hyperband", **given}).hyperband

    assert hyperband(min_iter=2) == Hyperband(2, None, 3)
    assert hyperband(max_iter=27, s=2) == Hyperband(3, 27, 3)  # 9, 3
    assert hyperband(max_iter=27, s=9) == Hyperband(1, 27, 3)  # 9, 3, 1: W&B leaves out what is below 1
    assert hyperband(max_iter=11, s=2, eta=4) == Hyperband(2, 11, 4)  # 2.75; the next would be 0.69
    assert hyperband(max_iter=20, s=1, eta=4) == Hyperband(5, 20, 4)
    assert sweep_file(LR).hyperband is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"programme": "x"}, "programme: unknown key; did you mean program?"),
        ({"program": "train/nothing.py"}, "program: 'train/nothing.py' is no file here; start from the repository's"),
        ({"method": "annealing"}, "method: 'annealing'; give one of grid, random, bayes"),
        ({"metric": {"goal": "maximize"}}, "metric: give name:"),
        ({"metric": {"name": "eval_auc", "goal": "maximise"}}, "metric.goal: 'maximise'; give minimize or maximize"),
        ({"command": "accelerate launch ${program}"}, "command: give a list of words, each an item of its own"),
        ({"early_terminate": {"type": "envelope"}}, "early_terminate.type: W&B knows hyperband alone"),
        ({"early_terminate": {"type": "hyperband"}}, "early_terminate: give min_iter, or max_iter and s"),
        ({"early_terminate": {"type": "hyperband", "min_iter": 0}}, "early_terminate.min_iter: 0"),
        ({"early_terminate": {"type": "hyperband", "max_iter": 9}}, "give max_iter (from 3 on) and s"),
        ({"early_terminate": {"type": "hyperband", "min_iter": 1, "eta": 1.5}}, "early_terminate.eta: 1.5"),
        ({"early_terminate": {"type": "hyperband", "min_iter": True}}, "early_terminate.min_iter: True"),
        ({"run_cap": "many"}, "run_cap: 'many'; give a whole number of trials from 1 on"),
        ({"run_cap": 2.5}, "run_cap: 2.5; give a whole number"),
        ({"run_cap": 0}, "run_cap: 0; give a whole number"),
        ({"run_cap": -1}, "run_cap: -1; give a whole number"),
        ({"run_cap": True}, "run_cap: True; give a whole number"),
        ({"parameters": {"seed": {"value": datetime.date(2026, 1, 31)}}}, "a date or another value"),
        ({"parameters": {"seed": {"values": [0], 3: "x", "y": 2}}}, "parameters.seed.3: categorical has no such"),
        ({"metric": {"name": "eval_auc", datetime.date(2026, 1, 31): 1}}, "a date or another value"),
        ({"parameters": {}}, "parameters: give at least one"),
        ({"parameters": {"optim.lr": {"value": 1}}}, "parameters.optim.lr: unknown key"),
        (
            {"parameters": {"optim.learning_rat": {"value": 1}}},
            "parameters.optim.learning_rat: unknown key; did you mean parameters.optim.learning_rate?",
        ),
        ({"parameters": {"optim.warmup": {"min": 0.0}}}, "parameters.optim.warmup: give value:"),
        ({"method": "grid", "parameters": {"optim.warmup": {"min": 0.0, "max": 0.1}}}, "optim.warmup: a grid needs"),
    ],
)
def test_a_fault_is_told_by_its_key(
    sweep_file: Callable[..., Any], more: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError) as caught:
        sweep_file(**{"parameters": LR, **more})
    assert str(caught.value).startswith(f"{tmp_path / 'sweep.yaml'}: ")
    assert message in str(caught.value)


def test_a_file_that_is_not_there_or_not_yaml(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_sweep(tmp_path / "none.yaml", ())
    (tmp_path / "odd.yaml").write_text("a: [1")
    with pytest.raises(ValueError, match=r"odd\.yaml: while parsing"):
        read_sweep(tmp_path / "odd.yaml", ())
