"""Programs that a comparison starts: each ends with whoever waits for it, and all that it started with it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_child(name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a command in the repository's root to its end.

    Whatever ends the wait (Ctrl-C, and SIGTERM where that is an exception as in scripts/bench.py) ends the command too:
    it has a session of its own, because some tools compute in children of theirs. Only SIGKILL leaves it behind.

    Args:
        name: what the sentence calls it.
        environment: variables beside those of this process.

    Raises ChildProcessError with the end of what the command said, where its status is not 0.
    """
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            said = process.communicate()[1]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise ChildProcessError(f"{name} ended with status {process.returncode}:\n{said[-2000:]}")
