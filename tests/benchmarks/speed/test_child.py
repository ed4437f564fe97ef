"""Programs that a comparison starts end with it, and what they said is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.speed.child import ROOT, run_child


def test_a_child_that_fails_is_told_of_with_its_last_words() -> None:
    with pytest.raises(ChildProcessError, match=r"(?s)the tool ended with status 1:.*no such kernel"):
        run_child("the tool", [sys.executable, "-c", "raise SystemExit('no such kernel')"])


# As scripts/bench.py does; the tool computes in a child of its own.
BENCH = """
import signal, sys
from benchmarks.speed.child import run_child
signal.signal(signal.SIGTERM, signal.default_int_handler)
run_child("tool", ["sh", "-c", 'sleep 60 & echo $! > "$0.draft"; mv "$0.draft" "$0"; wait', sys.argv[1]])
"""


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_bench_that_is_ended_ends_what_it_started(tmp_path: Path, sign: signal.Signals) -> None:
    told = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", BENCH, str(told)], cwd=ROOT, stderr=subprocess.DEVNULL) as bench:
        while not told.exists():
            assert bench.poll() is None
            time.sleep(0.01)
        bench.send_signal(sign)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{told.read_text().strip()}/cmdline").exists() and time.monotonic() < deadline:
        if not Path(f"/proc/{told.read_text().strip()}/cmdline").read_bytes():
            break  # ended, and nobody has asked for its status
        time.sleep(0.01)
    assert time.monotonic() < deadline
    assert os.listdir(tmp_path) == ["pid"]
