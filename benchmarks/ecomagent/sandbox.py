"""Running a model's Python, which may be hostile: a process of its own, locked in by the kernel, within limits.

What holds it (`sandbox_worker.py` puts the walls up before the code is read as code):

* A **system call filter** (seccomp) without which no code runs. Only reading, writing and closing what is open, memory,
  the clock, chance and exit are left; opening a file, a socket, a process or a thread, signalling or tracing another
  process fail with "not permitted", also for root, and whatever objects the code reaches within its interpreter.
* **Limits** of the kernel on computing time, memory and output; a deadline by the clock, kept from outside.
* An **empty environment**, no arguments, three open files: the code, its output, its error, all in memory. Paths that
  name where Python and the worker lie are taken out of `sys`; code that reads its process's memory finds them there.
* **Namespaces** of its own for users, network and shared memory where the system allows them (containers often do
  not): a second wall behind the first. Without them the filter alone stands between the code and the network.

Not held: what the kernel itself gets wrong within the calls that are left, and timing. Linux on x86-64 or arm64.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import BoundedSemaphore

MODULES = ("math", "statistics", "decimal", "fractions", "json", "re")
WORKER = Path(__file__).with_name("sandbox_worker.py")


class SandboxUnavailable(RuntimeError):
    """This machine cannot contain hostile code; says why."""


@dataclass(frozen=True)
class Outcome:
    """What code printed (cut at the limit), and why it did not end well: an error in words, or None."""

    output: str
    error: str | None


@dataclass(frozen=True)
class Sandbox:
    """Runs code, from any number of threads, at most ``parallel`` at a time; further ones wait their turn.

    ``seconds`` is the deadline by the clock, from the start of the process; ``output_bytes`` count as UTF-8.
    """

    cpu_seconds: int = 2
    seconds: float = 10.0
    memory_bytes: int = 256 << 20
    output_bytes: int = 20_000
    parallel: int = 32
    _turns: BoundedSemaphore = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_turns", BoundedSemaphore(self.parallel))

    def run(self, code: str) -> Outcome:
        """Run code to its end or its limits. Raises SandboxUnavailable where it cannot be contained."""
        _walls()
        with self._turns:
            status, output, error = self._run(code)
        text = output.decode("utf-8", "replace")
        if len(output) >= self.output_bytes:
            return Outcome(text, f"stopped: it printed more than {self.output_bytes:,} bytes")
        return Outcome(text, self._told(status, error.decode("utf-8", "replace")))

    @property
    def walls(self) -> dict[str, bool]:
        """Which walls this machine gives: ``system_call_filter`` (always true) and ``own_namespaces``."""
        return _walls()

    def _told(self, status: int | None, error: str) -> str | None:
        if status is None:
            return f"stopped after {self.seconds:g} seconds"
        if status == 0:
            return None
        if status == -signal.SIGKILL:
            return f"stopped after {self.cpu_seconds} seconds of computing"
        return error if status > 0 and error else f"the interpreter broke down (status {status})"

    def _run(self, code: str, *options: str) -> tuple[int | None, bytes, bytes]:
        """(exit status or None at the deadline, output, error) of a worker."""
        with _memory_file("code") as source, _memory_file("output") as output, _memory_file("error") as error:
            os.write(source, code.encode("utf-8", "replace"))
            os.lseek(source, 0, os.SEEK_SET)
            limits = [str(limit) for limit in (self.cpu_seconds, self.memory_bytes, self.output_bytes)]
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(WORKER), *limits, *options],
                stdin=source,
                stdout=output,
                stderr=error,
                env={},
                cwd="/",
                start_new_session=True,
            )
            try:
                ended = _ends_within(process.pid, self.seconds)
            finally:
                process.kill()
                status = process.wait()
            return status if ended else None, _content(output, self.output_bytes), _content(error, self.output_bytes)


@cache
def default_sandbox() -> Sandbox:
    """The one that all episodes of this process share."""
    return Sandbox()


@cache
def _walls() -> dict[str, bool]:
    """Asks a worker once; raises SandboxUnavailable with its reason."""
    if not hasattr(os, "memfd_create"):
        raise SandboxUnavailable(f"python_execute needs Linux to contain what it runs; this is {sys.platform}")
    status, output, error = Sandbox()._run("", "--tell")
    if status != 0:
        reason = error.decode("utf-8", "replace") or f"the worker ended with status {status}"
        raise SandboxUnavailable(f"python_execute is off: {reason}")
    return {name: bool(there) for name, there in json.loads(output).items()}


@contextmanager
def _memory_file(name: str) -> Iterator[int]:
    descriptor = os.memfd_create(name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _content(descriptor: int, most: int) -> bytes:
    return os.pread(descriptor, most, 0)


def _ends_within(pid: int, seconds: float) -> bool:
    """Wait for a child's end without collecting it; False at the deadline."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(math.ceil(seconds * 1000)))
    finally:
        os.close(descriptor)
