"""An ablation: every condition and seed once, failures told and survived, differences that are paired, honest words."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from rich.console import Console

from benchmarks.ecomscript import ablation, teaching
from benchmarks.ecomscript.ablation import AblationConfig, Found, ablate, conditions_of, page_of, summarise, words_of
from benchmarks.ecomscript.teaching import Course, teach_and_examine
from benchmarks.results import RESULTS, to_line
from scripts.ablate import main
from train.arguments import parse
from train.config import TrainConfig

QUIET = Console(file=io.StringIO())
CONDITIONS = ("none", "mixed", "mixed:shuffled")
FLAGS = ("--intents.data=known.jsonl",)
SETTINGS = {"intents.data": ("known.jsonl",)}


def write_test(path: Path, count: int = 8) -> str:
    lines = [
        {"id": f"r{n}", "goal": f"goal {n // 2}", "step": "bake", "product": {"title": f"Tin {n}"}, "label": n % 2}
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture
def config(tmp_path: Path) -> AblationConfig:
    test = write_test(tmp_path / "test.jsonl")
    return AblationConfig("step_product", tmp_path / "out", CONDITIONS, (0, 1), test, FLAGS, (), 50, SETTINGS)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Judges that are right on the first so many records, where commands would train and examine; what was run."""
    names: list[str] = []
    right = {"none": 4, "mixed": 6, "mixed-shuffled": 4}

    def here(course: Any, name: str, *words: str) -> Path:
        results: Path = course.out / "results" / name
        if (results / RESULTS).is_file():
            return results
        names.append(name)
        if name == "mixed-shuffled-seed1" and names.count(name) == 1:
            raise RuntimeError("train/step_product.py ended with status 1 (see above): out of memory")
        condition, seed = name.rsplit("-seed", 1)
        results.mkdir(parents=True)
        lines = []
        for n in range(8):
            hit = n < right[condition] + int(seed)
            verdict = n % 2 if hit else 1 - n % 2
            line = {"id": f"r{n}", "group": f"goal {n // 2}", "label": n % 2, "margin": verdict - 0.5, "p_yes": verdict}
            lines.append(to_line(line | {"verdict": verdict, "tokens": 9, "shortened": False}))
        (results / "predictions.jsonl").write_text("".join(lines))
        told = {"judgment": "step_product", "subject": {"name": name, "method": "judge"}, "n": 8}
        told |= {"data": {"reference": "test.jsonl", "fingerprint": "0"}, "refused": {"count": 0}}
        (results / RESULTS).write_text(json.dumps(told))
        return results

    monkeypatch.setattr(ablation, "teach_and_examine", here)
    return names


def test_a_script_is_compared_without_context() -> None:
    assert conditions_of("step_product") == ablation.CONDITIONS
    assert conditions_of("script_verify") == ("none", "sequential", "mixed", "sequential:shuffled", "mixed:shuffled")


def test_conditions_become_flags() -> None:
    assert words_of("none", "t.jsonl") == ["--intents.mode=none"]
    assert words_of("mixed", "t.jsonl") == [
        "--intents.mode=mixed",
        "--intents.apart=t.jsonl",
        "--intents.shuffled=false",
    ]
    assert words_of("context:shuffled", "t")[0::2] == ["--intents.mode=context", "--intents.shuffled=true"]


def test_what_sets_conditions_apart_wins_over_the_flags() -> None:
    odd = ["--intents.shuffled", "--intents.mode", "context"]
    true, control = (parse(TrainConfig, [*odd, *words_of(one, "t")]) for one in ("mixed", "mixed:shuffled"))
    assert (true.intents.mode, true.intents.shuffled) == ("mixed", False)
    assert (control.intents.mode, control.intents.shuffled) == ("mixed", True)


def test_cells_of_other_settings_or_file_contents_are_refused(
    tmp_path: Path, ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings, known = tmp_path / "c.yaml", tmp_path / "known.jsonl"
    settings.write_text("optim:\n  epochs: 1\n")
    known.write_text("{}\n")
    words = ["step_product", "--test", write_test(tmp_path / "test.jsonl"), "--out", str(tmp_path / "out")]
    words += ["--conditions", "none,mixed", "--resamples", "20"]
    flags = ["--", "--config", str(settings), "--intents.data", str(known)]
    assert main([*words, "--seeds", "0,0", *flags]) == 0
    assert json.loads((tmp_path / "out" / "ablation.json").read_text())["seeds"] == [0]
    settings.write_text("# the same\noptim: {epochs: 1}\n")
    assert main([*words, "--seeds", "0,1", *flags]) == 0
    known.write_text("{}\n{}\n")
    assert main([*words, "--seeds", "0,1,2", *flags]) == 1
    assert f"out holds an ablation with contents of {known} " in capsys.readouterr().err
    known.write_text("{}\n")
    settings.write_text("optim:\n  epochs: 2\n")
    assert main([*words, "--seeds", "0,1,2", *flags]) == 1
    said = "out holds an ablation with optim.epochs 1.0, this one has 2.0; give another --out"
    assert said in capsys.readouterr().err
    assert not any(name.endswith("seed2") for name in ran)


def test_a_folder_belongs_to_one_ablation_at_a_time(config: AblationConfig, ran: list[str]) -> None:
    lock = FileLock(config.out.with_name(".out.lock"))
    with lock, pytest.raises(ValueError, match="out: another process is writing there; wait until it ends"):
        ablate(config, QUIET)
    assert not ran


@pytest.mark.parametrize("spoilt", ["a: [1\n", "a: 1\n", ""])
def test_a_spoilt_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt: str) -> None:
    run = tmp_path / "runs" / "step_product" / "none-seed0"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text(spoilt)
    monkeypatch.setattr(teaching, "command", lambda *_: None)
    with pytest.raises(RuntimeError, match=r"config\.yaml cannot be read as a run's configuration .* remove "):
        teach_and_examine(Course("step_product", "sample:test", tmp_path), "none-seed0")


def test_every_cell_is_run_once_and_a_failed_one_is_told_and_tried_again(
    config: AblationConfig, ran: list[str]
) -> None:
    made = ablate(config, QUIET)
    cells = [f"{name}-seed{seed}" for seed in (0, 1) for name in ("none", "mixed", "mixed-shuffled")]
    assert ran == cells
    assert "out of memory" in made["failed"]["mixed-shuffled-seed1"]
    assert "failed: mixed-shuffled-seed1: train/step_product.py ended with status 1" in page_of(made)
    again = ablate(config, QUIET)
    assert ran == [*cells, "mixed-shuffled-seed1"] and not again["failed"]
    none, mixed, control = again["conditions"]
    # Right in 4 and 5, 6 and 7, 4 and 5 of 8 records.
    assert none["metrics"]["accuracy"]["value"] == pytest.approx(4.5 / 8)
    assert none["metrics"]["accuracy"]["deviation"] == pytest.approx(np.sqrt(0.5) / 8)
    assert mixed["to_none"]["accuracy"]["value"] == mixed["to_shuffled"]["accuracy"]["value"] == pytest.approx(2 / 8)
    assert control["to_none"]["accuracy"] == {"value": 0, "low": 0, "high": 0, "undefined": 0}
    assert json.loads((config.out / "ablation.json").read_text())["seeds"] == [0, 1]
    page = (config.out / "ablation.md").read_text()
    assert "| none | 2 | 0.562 ± 0.088 |" in page
    assert "- mixed: no difference shown against none (+0.250 [+0.000, " in page
    more = ablate(replace(config, seeds=(0,)), QUIET)
    assert len(ran) == len(cells) + 1 and [row["seeds"] for row in more["conditions"]] == [[0], [0], [0]]


def told(gain: float, spread: float, groups: int = 40) -> str:
    """The page of a comparison in which mixed gains ``gain`` in every draw, more or less."""
    noise = np.random.default_rng(0).normal(0, spread, 201)
    cells = {
        name: {seed: {key: np.full(201, 0.6) + shift * noise + shift * gain for key in ("accuracy", "macro_f1", "auc")}}
        for seed in (0,)
        for name, shift in (("none", 0), ("mixed", 1), ("mixed:shuffled", 0))
    }
    config = AblationConfig("step_product", Path(), CONDITIONS, (0,), "sample:test")
    return page_of(summarise(config, Found(cells, {}, groups), 100))


def test_the_sentence_is_what_the_interval_supports() -> None:
    assert "mixed: a gain against none (+0.1" in told(0.1, 0.01) and "a gain against shuffled" in told(0.1, 0.01)
    assert "mixed: a loss against none (-0." in told(-0.1, 0.01)
    assert "mixed: no difference shown against none" in told(0.01, 0.1)


def test_the_command_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["step_product", "--out", str(tmp_path / "out"), "--test", write_test(tmp_path / "test.jsonl")]
    assert main([*words, "--", "--optim.epochs", "1"]) == 1
    assert "no knowledge to inject: give --intents.data FILE" in capsys.readouterr().err
    assert main([*words, "--conditions", "mixed", "--", *FLAGS]) == 1
    assert "none among the conditions" in capsys.readouterr().err
    assert main([*words, "--conditions", "none,mixd", "--", *FLAGS]) == 1
    assert "mixd given; there are none, sequential, mixed, context, sequential:shuffled" in capsys.readouterr().err
    assert main([*words, "--", *FLAGS, "--dry_run"]) == 1
    assert "dry_run: it would teach no judge; leave it out" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--", "--intents.database", "x"])
    assert "intents.database: unknown key; did you mean intents.data?" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    for odd in (["--seeds=0,-1"], ["--seeds", "a"], ["--resamples", "0"], ["--launch", "'--cpu"]):
        with pytest.raises(SystemExit, match="2"):
            main([*words, *odd, "--", *FLAGS])
        assert f"argument {odd[0].partition('=')[0]}: " in capsys.readouterr().err
