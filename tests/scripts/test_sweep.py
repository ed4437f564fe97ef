"""The command that sweeps: its help, its errors, and the whole road with real trainings of a tiny model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tiny import tiny_checkpoint, write_scripts

from models.judge import JudgeSpec
from recipes.script_verify import SCRIPT_VERIFY
from scripts import sweep
from train.arguments import parse
from train.config import TrainConfig
from train.run import train

ROOT = Path(sweep.__file__).parents[1]


def test_help_gives_examples_without_waiting_for_torch() -> None:
    code = "import runpy, sys; sys.argv = ['sweep.py', '--help']\n"
    code += "try: runpy.run_path('scripts/sweep.py', run_name='__main__')\nfinally: assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "python scripts/sweep.py configs/sweeps/grid.yaml" in done.stdout


def test_a_fault_ends_with_a_sentence_and_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep.main([str(tmp_path / "none.yaml")]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'none.yaml'}: no such file")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--trials", "0"], "argument --trials: '0'; give a whole number, 1 or more"),
        (["--trials=-2"], "argument --trials: '-2'"),
        (["--trials", "many"], "argument --trials: 'many'"),
        (["--seed=-1"], "argument --seed: '-1'; give a whole number, 0 or more and at most 4294967295"),
    ],
)
def test_odd_numbers_are_refused_by_their_flag(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        sweep.main(["configs/sweeps/grid.yaml", *words])
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_six_trials_of_a_tiny_model(tmp_path: Path) -> None:
    config = {
        "checkpoint": str(tiny_checkpoint(tmp_path / "tiny-llama")),
        "model": {"dtype": "float32"},
        "data": {
            "train": str(write_scripts(tmp_path / "train.jsonl", 16)),
            "validation": str(write_scripts(tmp_path / "validation.jsonl", 8, start=100)),
        },
        "optim": {"max_steps": 2, "batch_size": 8},
        "threads": 1,
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    launch = ["accelerate", "launch", "--config_file", "configs/accelerate/cpu.yaml", "${program}"]
    text = {
        "program": "train/script_verify.py",
        "method": "bayes",
        "metric": {"name": "eval_loss", "goal": "minimize"},
        "parameters": {
            "optim.learning_rate": {"distribution": "log_uniform_values", "min": 0.0001, "max": 0.01},
            "lora.rank": {"values": [2, 0, 4]},  # of rank 0 there is no adapter: those trials fail
        },
        "command": ["${env}", *launch, "--config", str(tmp_path / "config.yaml"), "${args}"],
    }
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(text))
    out = tmp_path / "out"
    command = [sys.executable, "scripts/sweep.py", str(tmp_path / "sweep.yaml"), "--trials", "6", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    assert len(found) == 6
    for line in found:
        run = out / "trials" / "script_verify" / line["trial"]
        assert line["state"] == ("fail" if line["values"]["lora.rank"] == 0 else "complete")
        if line["state"] == "complete":
            assert len(list(run.glob("wandb/offline-run-*/*.wandb"))) == 1
            logged = [json.loads(row) for row in (run / "metrics.jsonl").read_text().splitlines()]
            assert line["eval_loss"] == min(row["eval_loss"] for row in logged if "eval_loss" in row)
    assert {line["state"] for line in found} == {"complete", "fail"}
    assert (out / "importance.png").is_file() and (out / "parallel_coordinates.png").is_file()
    winner = min((line for line in found if line["state"] == "complete"), key=lambda line: line["eval_loss"])
    best = parse(TrainConfig, ["--config", str(out / "best.yaml"), f"--run.folder={tmp_path / 'runs'}"])
    assert best.optim.learning_rate == winner["values"]["optim.learning_rate"]
    train(SCRIPT_VERIFY, best)
    (judge,) = (tmp_path / "runs" / "script_verify").glob("*/adapter")
    assert JudgeSpec.read(judge).judgment == "script_verify"
