"""Long inputs: memory stays flat, and a run that is killed again and again ends as an undisturbed one."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from shop_rows import write_rows

ROOT = Path(__file__).resolve().parents[2]
COMMAND = """
import resource, sys
from scripts.judge import main
main()
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def started(base: Path, adapter: Path, data: Path, out: Path) -> subprocess.Popen[str]:
    flags = [f"--adapter={adapter}", f"--checkpoint={base}", f"--data={data}", f"--out={out}", "--threads=1"]
    flags += ["--window=512", "--token_budget=512"]
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *flags], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def peak(process: subprocess.Popen[str]) -> int:
    """The process's highest memory in KiB; it must end well."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return int(out.split()[-1])


@pytest.mark.slow
def test_memory_is_flat_from_twenty_thousand_to_two_hundred_thousand_rows(
    base: Path, adapter: Callable[..., Path], tmp_path: Path
) -> None:
    folder = adapter("step_product")
    peaks = []
    for count in (20_000, 200_000):
        data = write_rows(tmp_path / f"{count}.jsonl", count)
        peaks.append(peak(started(base, folder, data, tmp_path / f"judged-{count}.jsonl")))
        assert (tmp_path / f"judged-{count}.jsonl").read_bytes().count(b"\n") == count
    print(f"peak memory: {peaks[0] / 1024:.0f} MiB for 20,000 rows, {peaks[1] / 1024:.0f} MiB for 200,000")
    assert peaks[1] < 1.3 * peaks[0]


@pytest.mark.slow
def test_killed_three_times_at_random_moments_it_ends_the_same(
    base: Path, adapter: Callable[..., Path], tmp_path: Path
) -> None:
    folder, chance = adapter("step_product"), random.Random(0)
    data = write_rows(tmp_path / "rows.jsonl", 20_000)
    begun = time.monotonic()
    peak(started(base, folder, data, tmp_path / "whole.jsonl"))
    took = time.monotonic() - begun
    out, kept = tmp_path / "killed.jsonl", []
    for _ in range(3):
        process = started(base, folder, data, out)
        while process.poll() is None and len(list(out.with_name("killed.jsonl.parts").glob("*.jsonl"))) <= max(
            kept, default=0
        ):
            time.sleep(0.05)  # until it has got further than the last one
        time.sleep(chance.uniform(0, took / 8))
        assert process.poll() is None
        process.kill()
        process.communicate()
        kept.append(len(list(out.with_name("killed.jsonl.parts").glob("*.jsonl"))))
    assert 0 < kept[0] < kept[1] < kept[2] < 40
    peak(started(base, folder, data, out))
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
