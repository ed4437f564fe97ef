"""A learning curve: nested sets, runs that are not done twice, and intervals over groups and seeds."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import opened
from rich.console import Console
from tiny import tiny_checkpoint, write_scripts

from benchmarks.ecomscript import teaching
from benchmarks.ecomscript.config import EcomScriptConfig
from benchmarks.ecomscript.learning_curve import CurveConfig, draw_curve, subset
from benchmarks.ecomscript.run import evaluate
from benchmarks.ecomscript.teaching import Course, over_seeds
from models.judge import JudgeSpec
from recipes.reading import read_records
from recipes.script_verify import SCRIPT_VERIFY, ScriptRecord
from scripts.learning_curve import main
from train.arguments import parse
from train.config import TrainConfig
from train.run import train

QUIET = Console(file=io.StringIO())


def record(number: int, group: int) -> ScriptRecord:
    return ScriptRecord(id=f"r{number}", goal="bake", script=("mix",), label=number % 2, group=f"g{group}")


def test_smaller_sets_are_parts_of_larger_ones_and_hold_whole_groups() -> None:
    records = [record(number, number % 7) for number in range(70)]
    for seed in range(5):
        sets = [subset(records, size, seed) for size in (15, 30, 70)]
        assert [len(one) for one in sets] == [15, 30, 70]
        ids = [{each.id for each in one} for one in sets]
        assert ids[0] < ids[1] < ids[2]
        assert [len({each.group for each in one}) for one in sets] == [2, 3, 7]
    assert subset(records, 15, 0) != subset(records, 15, 1)
    with pytest.raises(ValueError, match="first 2 records of seed 0 bear one label only; begin with more"):
        subset([record(2 * number, number) for number in range(4)], 2, 0)


def test_an_interval_holds_what_groups_and_seeds_leave_open() -> None:
    # Two seeds of accuracy 0.4 and 0.8 on every draw of groups: only the seeds are in doubt.
    values = np.repeat([[0.4], [0.8]], 4001, axis=1)
    found = over_seeds(values, groups=5)
    assert (found.low, found.value, found.high) == pytest.approx((0.4, 0.6, 0.8))
    # One seed: its own draws of groups, as in any evaluation.
    draws = np.concatenate([[0.5], np.linspace(0, 1, 4001)])[None]
    found = over_seeds(draws, groups=5)
    assert (found.low, found.value, found.high) == pytest.approx((0.025, 0.5, 0.975), abs=1e-3)


@pytest.fixture
def config(tmp_path: Path) -> CurveConfig:
    flags = ["--checkpoint", str(tiny_checkpoint(tmp_path / "tiny", "llama")), "--model.dtype=float32"]
    flags += [f"--data.validation={write_scripts(tmp_path / 'validation.jsonl', 11, start=100)}", "--optim.epochs=1"]
    flags += ["--optim.batch_size=8", "--lora.rank=4", "--tracking.wandb=disabled", "--threads=1"]
    train, test = write_scripts(tmp_path / "train.jsonl", 32), write_scripts(tmp_path / "test.jsonl", 20, start=200)
    return CurveConfig(
        "script_verify", (12, 32), tmp_path / "curve", (0, 1), str(train), str(test), flags, ("--cpu",), 50
    )


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commands are run in this process; what was run is noted."""
    ran: list[str] = []

    def here(course: Course, program: str, *words: str) -> None:
        name = next(word.rsplit("/", 1)[-1] for word in words if word.startswith(("--run.name=", "--out=")))
        ran.append(f"{program} {name.removeprefix('--run.name=')}")
        if program.startswith("train/"):
            train(SCRIPT_VERIFY, parse(TrainConfig, words))
        else:
            evaluate(parse(EcomScriptConfig, [*words[1:], "--resamples=20", "--threads=1"]))

    monkeypatch.setattr(teaching, "command", here)
    return ran


def test_every_size_and_seed_is_taught_and_examined_once(config: CurveConfig, done: list[str]) -> None:
    names = ["12-seed0", "12-seed1", "32-seed0", "32-seed1"]
    draw_curve(replace(config, sizes=(12,)), QUIET)
    curve = draw_curve(config, QUIET)
    assert done == [
        f"{program} {name}" for name in names for program in ("train/script_verify.py", "scripts/evaluate.py")
    ]
    assert [point["size"] for point in curve["points"]] == [12, 32]
    for point in curve["points"]:
        for seed, accuracy in enumerate(point["seeds"]):
            folder = config.out / "results" / f"{point['size']}-seed{seed}"
            lines = [json.loads(text) for text in (folder / "predictions.jsonl").read_text().splitlines()]
            assert accuracy == pytest.approx(np.mean([line["label"] == line["verdict"] for line in lines]))
        own = point["metrics"]["accuracy"]
        assert own["value"] == pytest.approx(np.mean(point["seeds"]))
        assert own["low"] <= own["value"] <= own["high"]
    used = read_records(SCRIPT_VERIFY, str(config.out / "data" / "12-seed1.jsonl"))
    assert used == subset(read_records(SCRIPT_VERIFY, config.train), 12, 1)
    assert JudgeSpec.read(config.out / "runs/script_verify/12-seed1/adapter").judgment == "script_verify"
    assert json.loads((config.out / "curve.json").read_text()) == curve
    before, cut = len(done), config.out / "results" / "32-seed0" / "predictions.jsonl"
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    assert draw_curve(replace(config, seeds=(0, 1, 0)), QUIET) == curve  # a seed given twice is one
    assert done[before:] == ["train/script_verify.py 32-seed0", "scripts/evaluate.py 32-seed0"]
    assert cut.read_bytes() == whole


def test_the_command_draws_the_curve_and_refuses_another_in_its_place(
    config: CurveConfig, done: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["script_verify", "--sizes", "12,32", "--train", config.train, "--test", config.test]
    words += ["--out", str(config.out), "--resamples", "20"]
    assert main([*words, "--", *config.flags]) == 0
    said = capsys.readouterr().out
    assert "records" in said and said.strip().endswith("curve.html")
    with opened(config.out / "curve.html") as page:
        assert page.locator("svg.chart[role=img]").count() == 2
        assert page.locator("#figures tbody tr").count() == 2
    before = len(done)
    assert main([*words, "--", *config.flags, "--optim.learning_rate=1e-3"]) == 1
    assert "holds a curve with optim.learning_rate 0.0003, this one has 0.001; give another" in capsys.readouterr().err
    assert main([*words, "--", *config.flags]) == 0
    assert len(done) == before  # nothing was done again
    for spoilt in ("[]", '{"judgment"'):
        (config.out / "plan.json").write_text(spoilt)
        assert main([*words, "--", *config.flags]) == 1
        assert f"error: {config.out}/plan.json was cut or spoilt; remove it if" in capsys.readouterr().err
    assert str(config.out.parent) not in (config.out / "curve.html").read_text()


def test_odd_numbers_are_refused_by_their_flag(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--sizes=20,1"], ["--sizes", "2.5"], ["--seeds=0,-1"], ["--seeds", ""], ["--resamples", "0"]):
        with pytest.raises(SystemExit, match="2"):
            main(["script_verify", "--sizes", "20", *words])
        assert f"argument {words[0].partition('=')[0]}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": (12, 33)}, r"has 32 records; give sizes from 2 to 32"),
        ({"sizes": ()}, "give at least one of each"),
        ({"test": "{train}"}, r"32 groups are also in .*train\.jsonl"),
    ],
)
def test_what_makes_no_curve_is_refused(config: CurveConfig, changes: dict[str, Any], message: str) -> None:
    changes = {key: config.train if value == "{train}" else value for key, value in changes.items()}
    with pytest.raises(ValueError, match=message):
        draw_curve(replace(config, **changes), QUIET)


@pytest.mark.slow
def test_the_commands_themselves_are_started_and_a_failing_one_is_told(config: CurveConfig) -> None:
    with pytest.raises(RuntimeError, match=r"train/script_verify.py ended with status \d+ \(see above\)"):
        draw_curve(replace(config, sizes=(32,), seeds=(0,), flags=(*config.flags, "--optim.batchsize=7")), QUIET)
    curve = draw_curve(replace(config, out=config.out.with_name("other"), sizes=(32,), seeds=(0,)), QUIET)
    assert len(curve["points"][0]["seeds"]) == 1
