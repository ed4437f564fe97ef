"""One trial: the sweep file's command in a process of its own, and what it has measured so far."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args

GRACE = 15.0  # seconds that a stopped training has to end by itself


def command_of(command: Sequence[str] | None, program: str, args: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The words to start, W&B's macros replaced as its agent does.

    Args:
        command: the file's; None is W&B's default.
        args: name -> {"value": value}.

    Raises ValueError for a macro that is not known.
    """
    # Made for the agent: what wandb writes here is what `wandb agent` would start.
    words = create_sweep_command(list(command) if command else None)
    macros = create_sweep_command_args({"args": args})
    macros |= {"interpreter": [sys.executable], "program": [program], "env": ["/usr/bin/env"]}
    started: list[str] = []
    for word in words:
        if not (word.startswith("${") and word.endswith("}")):
            started.append(word)
        elif word[2:-1] in macros:
            started += macros[word[2:-1]]
        else:
            raise ValueError(f"command: {word} is not known; ${{args}} stands for the parameters as flags")
    return started


def environment(group: str) -> dict[str, str]:
    """The trial's environment: this interpreter's commands are found first, and its W&B run stays on this machine.

    ``group`` keeps the runs of a sweep together, should they be synchronised later.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "WANDB_MODE": "offline", "WANDB_RUN_GROUP": group}


class Process:
    """A started command, its output in ``log``, in a session of its own: it can be stopped with all its children.

    As a context: whatever ends the block, the process has ended too.
    """

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str]) -> None:
        self.log = log
        with log.open("ab") as output:
            fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)  # `in_use` until the last child has ended
            self.popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, start_new_session=True
            )

    def wait(self, seconds: float) -> int | None:
        """The exit status, or None where it is still running after so long."""
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """End the process and its children: asked to, then made to."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.popen.pid, sign)
            except ProcessLookupError:
                break
            self.wait(GRACE)
        end = time.monotonic() + GRACE
        while in_use(self.log) and time.monotonic() < end:  # a child's child ends a moment after it is made to
            time.sleep(0.01)

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def in_use(log: Path) -> bool:
    """Whether a process that writes to ``log``, or a child of it, still lives: a sweep that was killed leaves one."""
    with log.open("ab") as output:
        try:
            fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def measured(metrics: Path, name: str) -> list[float]:
    """The values of a metric in a run's metrics.jsonl, in order; a line that is half written is left for later."""
    if not metrics.is_file():
        return []
    values = []
    for line in metrics.read_text(encoding="utf-8").splitlines():
        try:
            value = json.loads(line).get(name)
        except (ValueError, AttributeError):
            continue
        if isinstance(value, int | float) and not isinstance(value, bool):
            values.append(float(value))
    return values


def complaint(log: Path) -> str:
    """What a failed command said last: our own sentence if there is one, else its last exception, else its last line.

    accelerate's word that its child has failed says nothing of why.
    """
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    lines = [line for line in lines if "CalledProcessError" not in line]
    ours = [line for line in lines if line.startswith(("error: ", "configuration: "))]
    exceptions = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception")) and " " in line]
    return next((found[-1] for found in (ours, exceptions, lines) if found), "it said nothing")
