"""The command itself against a real server: killed in the middle, gone on with by two processes, the same files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from plan_server import plan_server
from plan_writer import INTENTS, write_shop
from tiny import tiny_checkpoint

from benchmarks.ecomscript.build.config import AlignConfig, EcomScriptBuildConfig
from benchmarks.ecomscript.build.run import build

ROOT = Path(__file__).resolve().parents[4]
KILLED = """
import os, signal
from benchmarks.ecomscript.build import stages
from scripts.build import main

real, written = stages.write_part, []

def mortal(path, made, *more):
    if path.parent.parent.name == "scripts":
        written.append(path)
        if len(written) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    real(path, made, *more)

stages.write_part = mortal
main()
"""


def command(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )


def made(folder: Path) -> dict[str, bytes]:
    """The tables, vectors and sheets of a construction."""
    wanted = (path for path in folder.rglob("*") if path.suffix in (".parquet", ".npy", ".csv", ".jsonl"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in wanted}


def test_killed_and_finished_by_two_processes_it_ends_with_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata, reviews = write_shop(tmp_path / "shop", copies=3)
    encoder = tiny_checkpoint(tmp_path / "encoder", "bert")
    with plan_server() as server:
        config = EcomScriptBuildConfig(
            [metadata],
            [reviews],
            server.reference,
            intents_per_product=INTENTS,
            align=AlignConfig(embedder=str(encoder), threshold=-1.0),
            chunk=2,
            threads=1,
            out=str(tmp_path / "whole"),
        )
        monkeypatch.setenv("ECOMJUDGE_CACHE", str(tmp_path / "first-cache"))
        assert not build(config)
        asked, whole = len(server.asked), made(tmp_path / "whole")

        server.asked.clear()
        monkeypatch.setenv("ECOMJUDGE_CACHE", str(tmp_path / "cache"))
        given = [
            "ecomscript",
            f"--metadata=[{metadata}]",
            f"--reviews=[{reviews}]",
            f"--generator={server.reference}",
            f"--intents_per_product={INTENTS}",
            f"--align.embedder={encoder}",
            "--align.threshold=-1",
            "--chunk=2",
            "--threads=1",
            f"--out={tmp_path / 'killed'}",
        ]
        died = command("-c", KILLED, *given)
        assert died.returncode == -signal.SIGKILL, died.stderr
        parts = sorted(path.name for path in (tmp_path / "killed" / "scripts" / "parts").glob("*.parquet"))
        assert parts == ["00000000.parquet", "00000001.parquet"]
        assert 0 < len(server.asked) < asked

        # On a CPU `accelerate launch --cpu --num_processes 2` starts one process; --multi_gpu is what starts several.
        launch = ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0")
        done = command(*launch, "scripts/build.py", *given)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("keywords") == 1  # one table
        assert "fill in the votes of script_verify" in done.stderr
        assert made(tmp_path / "killed") == whole and len(whole) > 25
        # What had been answered before the kill lies in the cache, so that nothing was asked twice.
        assert len(server.asked) == asked
