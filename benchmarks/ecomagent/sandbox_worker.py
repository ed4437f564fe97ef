"""The process in which code of `python_execute` runs: it locks itself in, then runs what stands on its standard input.

`benchmarks.ecomagent.sandbox` starts it as ``python -I -S sandbox_worker.py CPU_SECONDS MEMORY_BYTES OUTPUT_BYTES``,
with an empty environment. It imports nothing of ours, as nothing of ours shall be within reach of the code.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import decimal
import fractions
import io
import json
import math
import os
import re
import resource
import statistics
import struct
import sys
import unicodedata

TYPE_CHECKING = False  # type checkers take it for typing's, whose import would cost each call some milliseconds
if TYPE_CHECKING:
    from typing import Any, NoReturn

# The six modules that code may import; unicodedata is what "\\N{...}" needs. Later no file can be opened any more.
MODULES = {module.__name__ for module in (math, statistics, decimal, fractions, json, re)}
LOADED = (unicodedata,)
TAKEN_AWAY = ("open", "input", "breakpoint")
SOURCE = "<code>"
FAILED, NOT_CONTAINED = 1, 78
PLACES = (
    *("argv", "orig_argv", "path", "path_importer_cache", "executable", "_base_executable", "_stdlib_dir"),
    *("prefix", "base_prefix", "exec_prefix", "base_exec_prefix"),
)

# linux/prctl.h, linux/sched.h, linux/seccomp.h, linux/filter.h, linux/audit.h
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
SIGKILL = 9
CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWIPC = 0x10000000, 0x40000000, 0x08000000
SECCOMP_MODE_FILTER = 2
RET_KILL_PROCESS, RET_ERRNO_EPERM, RET_ALLOW = 0x80000000, 0x00050000 | 1, 0x7FFF0000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER_AT, ARCHITECTURE_AT = 0, 4  # struct seccomp_data

# What a computation needs of the kernel: its three files as they are, memory, the clock, chance, and its own end.
# Nothing that opens, makes a process or a thread, or reaches another process or the network.
NEEDED = {
    "x86_64": (0xC000003E, {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
        "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24, "mremap": 25, "madvise": 28,
        "nanosleep": 35, "getpid": 39, "exit": 60, "gettimeofday": 96, "sigaltstack": 131, "gettid": 186, "futex": 202,
        "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231, "getrandom": 318,
    }),
    "aarch64": (0xC00000B7, {
        "close": 57, "read": 63, "write": 64, "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98,
        "nanosleep": 101, "clock_gettime": 113, "clock_nanosleep": 115, "sched_yield": 124, "sigaltstack": 132,
        "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "gettimeofday": 169, "getpid": 172,
        "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226, "madvise": 233,
        "getrandom": 278,
    }),
}  # fmt: skip
"""Machine -> (its audit number, its system calls), of the kernel's tables."""


def main() -> None:
    cpu_seconds, memory_bytes, output_bytes = map(int, sys.argv[1:4])
    only_tell = sys.argv[4:] == ["--tell"]
    code = sys.stdin.buffer.read().decode("utf-8", "replace")
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        libc.prctl(PR_SET_PDEATHSIG, SIGKILL)  # never outlive the process that waits for this one
        own_namespaces = leave_namespaces(libc)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), "utf-8", errors="backslashreplace", line_buffering=True)
        limit(cpu_seconds, memory_bytes, output_bytes)
        filter_system_calls(libc)
    except (OSError, ValueError, KeyError) as error:
        os.write(2, f"this machine cannot contain code: {error}".encode())
        os._exit(NOT_CONTAINED)
    if only_tell:
        os.write(1, json.dumps({"system_call_filter": True, "own_namespaces": own_namespaces}).encode())
        os._exit(0)
    forget_places()
    run(code)


def leave_namespaces(libc: ctypes.CDLL) -> bool:
    """Into namespaces of its own, without network or shared memory; False where the system does not let us."""
    return bool(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) == 0)


def limit(cpu_seconds: int, memory_bytes: int, output_bytes: int) -> None:
    for name, most in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, output_bytes),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(name, (most, most))


def filter_system_calls(libc: ctypes.CDLL) -> None:
    """From here on every system call but the needed ones fails with EPERM. Raises where that cannot be had."""
    if os.uname().machine not in NEEDED:
        raise ValueError(f"no system call filter for {os.uname().machine}")
    architecture, numbers = NEEDED[os.uname().machine]

    def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("HBBI", code, if_true, if_false, value)

    program = step(LOAD_WORD, ARCHITECTURE_AT) + step(JUMP_IF_EQUAL, architecture, 1, 0)
    program += step(RETURN, RET_KILL_PROCESS) + step(LOAD_WORD, NUMBER_AT)
    for number in numbers.values():
        program += step(JUMP_IF_EQUAL, number, 0, 1) + step(RETURN, RET_ALLOW)
    program += step(RETURN, RET_ERRNO_EPERM)
    steps = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(steps)))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), "no system call filter: " + os.strerror(ctypes.get_errno()))


def forget_places() -> None:
    """Empty what the interpreter tells of its arguments and of where it lies. Its memory still holds such paths."""
    for name in PLACES:
        setattr(sys, name, type(getattr(sys, name))())
    del globals()["__file__"]


def run(code: str) -> NoReturn:
    """Run the code; what it prints goes to standard output, what it raises to standard error, in one line."""
    offered = {name: value for name, value in vars(builtins).items() if name not in TAKEN_AWAY}
    space = {"__name__": "__main__", "__builtins__": offered | {"__import__": importing}}
    status = 0
    try:
        exec(compile(code, SOURCE, "exec"), space)
    except SystemExit:
        pass
    except BaseException as error:
        status = FAILED
        os.write(2, told(error).encode("utf-8", "replace"))
    with contextlib.suppress(Exception):  # the limit on output, or whatever the code made of standard output
        sys.stdout.flush()
    os._exit(status)


def importing(name: str, space: Any = None, own: Any = None, wanted: Any = (), level: int = 0) -> Any:
    if level or name.partition(".")[0] not in MODULES:
        raise ImportError(f"{name} cannot be imported here; there are {', '.join(sorted(MODULES))}")
    return __import__(name, space, own, wanted, level)


def told(error: BaseException) -> str:
    """An error as its name, its message, and the line of the code that it comes from."""
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SOURCE:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
    except BaseException:
        message = ""
    text = type(error).__name__ + (f": {message}" if message else "")
    return text[:2000] + (f" (line {line})" if line else "")


if __name__ == "__main__":
    main()
