"""The command itself: gone on with by two processes, stopped by Ctrl-C; and how it ends for faults."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shop_rows import write_rows

from judging import bulk
from judging.bulk import judge_rows
from judging.config import BulkConfig
from scripts import judge

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def config(base: Path, adapter: Callable[..., Path], tmp_path: Path) -> BulkConfig:
    return BulkConfig(
        adapter=(str(adapter("step_product")),),
        checkpoint=str(base),
        data=str(write_rows(tmp_path / "rows.jsonl", 60)),
        out=str(tmp_path / "whole.jsonl"),
        window=8,
        threads=1,
    )


def flags(config: BulkConfig) -> list[str]:
    return [
        f"--adapter={config.adapter[0]}",
        *(f"--{name}={getattr(config, name)}" for name in ("checkpoint", "data", "out", "window", "threads")),
    ]


def test_a_stopped_run_goes_on_with_two_processes_and_ends_with_the_same_bytes(
    config: BulkConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_rows(config)
    stopped = replace(config, out=str(tmp_path / "stopped.jsonl"))
    real = bulk.record_lines

    def mortal(judges: Any, window: Any, budget: int) -> Any:
        return pytest.fail("killed") if window.number == 2 else real(judges, window, budget)

    with monkeypatch.context() as patched, pytest.raises(pytest.fail.Exception):
        patched.setattr(bulk, "record_lines", mortal)
        judge_rows(stopped)
    assert len(list((tmp_path / "stopped.jsonl.parts").glob("*.jsonl"))) == 2

    # On a CPU `accelerate launch --cpu --num_processes 2` starts one process; --multi_gpu is what starts several.
    launch = ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0")
    done = run(*launch, "scripts/judge.py", *flags(stopped))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("stopped.jsonl: 60 rows in") == 1
    assert (tmp_path / "stopped.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    """The status with which the command ends."""
    monkeypatch.setattr(sys, "argv", ["judge.py", *words])
    with pytest.raises(SystemExit) as stopped:
        judge.main()
    return stopped.value.code


def test_ctrl_c_says_how_to_go_on(
    config: BulkConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = bulk.record_lines

    def interrupted(judges: Any, window: Any, budget: int) -> Any:
        if window.number == 2:
            raise KeyboardInterrupt
        return real(judges, window, budget)

    monkeypatch.setattr(bulk, "record_lines", interrupted)
    assert ended(monkeypatch, *flags(config)) == 130
    assert capsys.readouterr().err == "interrupted; the same command goes on from here\n"
    assert ended(monkeypatch, *flags(replace(config, out="-"))) == 130
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 16
    assert said.err == "interrupted; the same command starts again\n"


def test_faults_end_it_with_a_sentence(
    config: BulkConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "--adapter", str(tmp_path)) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}: no judge.json")
    assert ended(monkeypatch, *flags(config), "--treshold", "0.3") == 2
    assert "configuration: treshold: unknown key; did you mean threshold?" in capsys.readouterr().err
