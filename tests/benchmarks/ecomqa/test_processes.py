"""The command itself: killed while it answers, gone on with by two processes, the same files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ecomqa_questions import ROWS, rows, write
from tiny import tiny_checkpoint

from benchmarks.ecomqa.config import EcomQAConfig
from benchmarks.ecomqa.run import evaluate

ROOT = Path(__file__).resolve().parents[3]
KILLED_AT_THE_TWELFTH_LINE = """
import os, signal, sys
from benchmarks import completions
from scripts.evaluate import main

real, written = completions.Predictions.append, []

def mortal(self, process, lines):
    real(self, process, lines)
    written.append(lines)
    if len(written) == 12:
        os.kill(os.getpid(), signal.SIGKILL)

completions.Predictions.append = mortal
main()
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def config(tmp_path: Path) -> EcomQAConfig:
    """A tiny model with room for a judge's instruction answers 26 questions and judges its answers, one at a time."""
    folder = tiny_checkpoint(tmp_path / "tiny", "llama", chat=True)
    sizes = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**sizes, "max_position_embeddings": 4096}))
    brands = [f"***query***：{'某' * count}牌的创立年份？***答案***：" for count in range(2, 16)]
    more = [{**ROWS["BC"], "task": "BC", "prompt": brand} for brand in brands]
    return EcomQAConfig(
        data=write(tmp_path / "questions.jsonl", [*rows(), *more]),
        checkpoint=str(folder),
        judges=f"rules,{folder}",
        max_tokens=6,
        dtype="float32",
        rows=1,
        threads=1,
        resamples=20,
        out=str(tmp_path / "whole"),
    )


def arguments(config: EcomQAConfig, out: Path) -> list[str]:
    names = ("data", "checkpoint", "judges", "max_tokens", "dtype", "rows", "threads", "resamples")
    return ["ecomqa", *(f"--{name}={getattr(config, name)}" for name in names), f"--out={out}"]


def test_a_killed_evaluation_goes_on_with_two_processes_and_ends_with_the_same_bytes(
    config: EcomQAConfig, tmp_path: Path
) -> None:
    evaluate(config)
    whole, out = tmp_path / "whole", tmp_path / "killed"
    died = run("-c", KILLED_AT_THE_TWELFTH_LINE, *arguments(config, out))
    assert died.returncode == -signal.SIGKILL, died.stderr
    with (out / "answers.parts" / "process-0.jsonl").open("a") as file:
        file.write('{"id": "BC-0", "te')

    # On a CPU `accelerate launch --cpu --num_processes 2` starts one process; --multi_gpu is what starts several.
    launch = ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0")
    done = run(*launch, "scripts/evaluate.py", *arguments(config, out))
    assert done.returncode == 0, done.stderr
    assert re.search(r"going on: \d+ of 26 answers are there", done.stderr)
    assert done.stdout.count("unweighted mean") == 1
    for path in whole.glob("*.jsonl"):
        assert (out / path.name).read_bytes() == path.read_bytes(), path.name
    assert {path.name for path in out.iterdir()} == {path.name for path in whole.iterdir()}
    assert str(tmp_path) not in "".join(path.read_text() for path in out.glob("*.json"))
