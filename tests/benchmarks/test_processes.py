"""The command itself: killed, then gone on with by two processes; and what it says when it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from tiny import tiny_checkpoint

from benchmarks.ecomscript.config import EcomScriptConfig
from benchmarks.ecomscript.run import evaluate
from scripts import evaluate as command

ROOT = Path(__file__).resolve().parents[2]
KILLED_AT_THE_FOURTH_BATCH = """
import os, signal, sys
from models.scoring import Scoring
from scripts.evaluate import main

real, batches = Scoring.margins, []

def mortal(scoring, rows):
    batches.append(rows)
    if len(batches) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(scoring, rows)

Scoring.margins = mortal
main()
"""


@pytest.fixture
def config(tmp_path: Path) -> EcomScriptConfig:
    tiny_checkpoint(tmp_path / "tiny", "llama")
    rows = [
        {"id": f"r{k}", "goal": f"bake {k}", "script": ["mix"] * (1 + k % 5), "label": k % 2, "group": f"g{k % 6}"}
        for k in range(30)
    ]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return EcomScriptConfig(
        judgment="script_verify",
        data=str(tmp_path / "test.jsonl"),
        checkpoint=str(tmp_path / "tiny"),
        dtype="float32",
        token_budget=100,
        resamples=20,
        threads=1,
        out=str(tmp_path / "whole"),
    )


def arguments(config: EcomScriptConfig, out: Path) -> list[str]:
    given = {**asdict(config), "out": str(out)}
    return ["ecomscript", *(f"--{key}={value}" for key, value in given.items() if value not in (None, False, ()))]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


def test_a_killed_evaluation_goes_on_with_two_processes_and_ends_with_the_same_bytes(
    config: EcomScriptConfig, tmp_path: Path
) -> None:
    evaluate(config)
    whole = (tmp_path / "whole" / "predictions.jsonl").read_bytes()

    out = tmp_path / "killed"
    died = run("-c", KILLED_AT_THE_FOURTH_BATCH, *arguments(config, out))
    assert died.returncode == -signal.SIGKILL, died.stderr
    part = out / "predictions.parts" / "process-0.jsonl"
    kept = len(part.read_text().splitlines())
    assert 3 <= kept < 30
    with part.open("a") as file:
        file.write('{"id": "r7", "gro')

    # On a CPU `accelerate launch --cpu --num_processes 2` starts one process; --multi_gpu is what starts several.
    launch = ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0")
    done = run(*launch, "scripts/evaluate.py", *arguments(config, out))
    assert done.returncode == 0, done.stderr
    assert f"going on: {kept} of 30 predictions are there" in done.stderr
    assert done.stdout.count("majority") == 2  # one table, and its caption
    results = json.loads((out / "results.json").read_text())
    assert (results["cost"]["processes"], results["cost"]["records"]) == (2, 30 - kept)
    assert (out / "predictions.jsonl").read_bytes() == whole
    files = ["evaluation.json", "predictions.jsonl", "report.html", "results.json"]
    assert sorted(path.name for path in out.iterdir()) == files


def main(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["evaluate.py", *words])
    command.main()


def test_a_fault_ends_the_command_with_a_sentence(
    config: EcomScriptConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="1"):
        main(monkeypatch, *arguments(config, tmp_path / "out"), "--method", "judge")
    assert capsys.readouterr().err.startswith(f"error: {config.checkpoint} is no trained judge")


def test_an_unknown_benchmark_names_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(monkeypatch, "ecomscrip")
    assert "did you mean 'ecomscript'?" in capsys.readouterr().err
    main(monkeypatch)
    assert "ecomscript" in capsys.readouterr().out
