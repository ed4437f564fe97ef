"""Code of a model is computed, and hostile code is contained, whatever it reaches within its own interpreter."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.ecomagent import sandbox as module
from benchmarks.ecomagent.sandbox import MODULES, Outcome, Sandbox, SandboxUnavailable
from benchmarks.ecomagent.tools import Toolbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")

# How code gets past the language: json leads to codecs, that to sys and builtins, and those to everything loaded.
REACH = """
import json
sys, builtins = json.codecs.sys, json.codecs.builtins
os, ctypes = sys.modules["os"], sys.modules["ctypes"]
libc = ctypes.CDLL(None, use_errno=True)
def kernel(name, *arguments):
    got = getattr(libc, name)(*arguments)
    print(name, got, ctypes.get_errno())
"""
ONE = Sandbox()
NOT_PERMITTED = "-1 1\n"  # what a filtered system call returns, and EPERM


@pytest.fixture(scope="module", params=["with namespaces", "without"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox with the namespaces that this system gives, and one that has only the filter and the limits."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "without":
            text = module.WORKER.read_text(encoding="utf-8")
            assert text.count("own_namespaces = leave_namespaces(libc)") == 1
            worker = tmp_path_factory.mktemp("worker") / "worker.py"
            worker.write_text(text.replace("own_namespaces = leave_namespaces(libc)", "own_namespaces = False"))
            patch.setattr(module, "WORKER", worker)
        yield Sandbox(cpu_seconds=1, seconds=5)


def test_this_machine_gives_the_filter() -> None:
    assert Sandbox().walls["system_call_filter"]


def test_code_computes_and_prints(box: Sandbox) -> None:
    code = "price = 49.9\nprint(round(price * 0.85, 2))\nfor n in range(2):\n    print('n', n)"
    assert box.run(code) == Outcome("42.41\nn 0\nn 1\n", None)
    assert box.run("") == Outcome("", None)
    assert box.run("print('caf\\u00e9 \\N{GREEK SMALL LETTER ALPHA}')") == Outcome("café α\n", None)


def test_the_six_modules_can_be_imported_and_no_other(box: Sandbox) -> None:
    code = (
        "import math, statistics as s, json\nfrom decimal import Decimal\nfrom fractions import Fraction\nimport re\n"
    )
    code += "print(math.sqrt(9), s.mean([1, 2]), Decimal('0.1') * 3, Fraction(1, 3) * 3)\n"
    code += "print(json.loads('[1]'), re.sub('a', 'b', 'aa'))"
    assert box.run(code) == Outcome("3.0 1.5 0.3 1\n[1] bb\n", None)
    for name in ("os", "sys", "subprocess", "socket", "ctypes", "builtins", "os.path"):
        outcome = box.run(f"print('before')\nimport {name}")
        assert outcome.output == "before\n"
        assert outcome.error is not None and outcome.error.startswith(f"ImportError: {name} cannot be imported here")
        assert all(allowed in outcome.error for allowed in MODULES)


def test_errors_come_with_their_line_and_can_be_caught(box: Sandbox) -> None:
    assert box.run("x = 1\nprint(x)\nx / 0") == Outcome("1\n", "ZeroDivisionError: division by zero (line 3)")
    assert box.run("def f(:\n  pass").error == "SyntaxError: invalid syntax (line 1)"
    assert box.run("try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    print('caught', error)").error is None
    assert box.run("class Sly(Exception):\n    def __str__(self): raise self\nraise Sly").error == "Sly (line 3)"
    assert box.run("raise SystemExit(3)") == Outcome("", None)


def test_runs_share_nothing(box: Sandbox) -> None:
    box.run("import math\nmath.pi = 3\nkept = 1")
    assert box.run("import math\nprint(math.pi > 3.1, 'kept' in globals())").output == "True False\n"


def test_what_is_taken_away_is_not_there(box: Sandbox) -> None:
    for name in ("open", "input", "breakpoint", "exit"):
        assert box.run(f"{name}()").error == f"NameError: name '{name}' is not defined (line 1)"


def test_no_file_is_read_listed_or_made(box: Sandbox, tmp_path: Path) -> None:
    secret, made = tmp_path / "secret.txt", tmp_path / "made"
    secret.write_text("TARGET-PRODUCT")
    ways = [
        "builtins.open(path)",
        "type(sys.stdin.buffer.raw)(path)",
        "os.open(path, 0)",
        "os.stat(path)",
        "os.listdir('/')",
        "os.mkdir(made)",
        "os.readlink('/proc/self/exe')",
        "builtins.__import__('linecache')",
    ]
    lines = [f"path, made = {str(secret)!r}, {str(made)!r}"]
    for way in ways:
        lines.append(f"try: print({way})\nexcept (PermissionError, ModuleNotFoundError) as error: print('refused')")
    assert box.run(REACH + "\n".join(lines)) == Outcome("refused\n" * len(ways), None)
    assert not made.exists()


def test_the_kernel_refuses_even_what_comes_without_python(box: Sandbox) -> None:
    """Calls of the C library itself, through the ctypes that the worker has loaded."""
    calls = ["'socket', 2, 1, 0", "'open', b'/etc/passwd', 0", "'fork'", "'kill', 1, 0", "'unlink', b'/tmp/x'"]
    calls += ["'ptrace', 16, 1, 0, 0", "'memfd_create', b'x', 0", "'dup', 1", "'pipe', ctypes.create_string_buffer(8)"]
    calls += ["'execve', b'/bin/sh', None, None", "'setrlimit', 0, ctypes.create_string_buffer(16)", "'unshare', 0"]
    calls += ["'mount', b'x', b'/', b'tmpfs', 0, None", "'syscall', 425, 1, None"]  # 425: io_uring_setup
    outcome = box.run(REACH + "\n".join(f"kernel({call})" for call in calls))
    lines = outcome.output.splitlines(keepends=True)
    assert len(lines) == len(calls)
    assert all(line.endswith(NOT_PERMITTED) for line in lines), outcome


def test_another_abi_does_not_get_around_the_filter(box: Sandbox) -> None:
    """x86-64 kernels may know each call under a second number (x32): open is 0x40000002."""
    assert box.run(REACH + "kernel('syscall', 0x40000002, b'/etc/passwd', 0)").output.endswith(NOT_PERMITTED)


def test_no_socket_is_opened(box: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        tried = box.run(
            f"{REACH}\nsocket = builtins.__import__('_socket')\nsocket.socket().connect(('127.0.0.1', {port}))"
        )
        assert tried.error is not None and tried.output == ""
        with pytest.raises(TimeoutError):
            server.accept()


def test_no_process_and_no_thread_is_started(box: Sandbox, tmp_path: Path) -> None:
    assert "Operation not permitted" in str(box.run(REACH + "while True: os.fork()").error)
    assert "Operation not permitted" in str(box.run(REACH + "os.posix_spawn('/bin/true', ['true'], {})").error)
    assert "can't start new thread" in str(
        box.run(REACH + "thread = builtins.__import__('_thread')\nthread.start_new_thread(print, ())").error
    )
    assert box.run(REACH + f"print(os.system('touch {tmp_path}/made') != 0)").output == "True\n"
    assert list(tmp_path.iterdir()) == []


def test_neither_environment_nor_arguments_tell_anything(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.chdir(tmp_path)
    # LC_CTYPE is what Python itself sets where there is no locale.
    code = REACH + "print(set(os.environ) - {'LC_CTYPE'}, sys.argv, [m for m in sys.modules if 'benchmarks' in m])"
    assert box.run(code).output == "set() [] []\n"


def test_the_interpreter_says_nothing_of_where_it_lies(box: Sandbox) -> None:
    # Modules know the files that they were read from; what sys says of the machine and the project is gone.
    code = REACH + "print([n for n in dir(sys) if n not in ('__doc__', 'modules') and '/' in str(getattr(sys, n))])\n"
    code += "print(hasattr(sys.modules['__main__'], '__file__'))"
    assert box.run(code).output == "[]\nFalse\n"


def test_our_process_is_out_of_reach(box: Sandbox) -> None:
    code = f"{REACH}\nprint(libc.kill({os.getpid()}, 9))\nprint(libc.ptrace(16, {os.getpid()}, 0, 0))"
    assert box.run(code).output == "-1\n-1\n"
    memory = box.run(f"{REACH}\nbuiltins.open('/proc/{os.getpid()}/mem', 'rb')")
    assert memory.error is not None and memory.error.startswith("PermissionError")


def test_no_other_file_is_open(box: Sandbox, tmp_path: Path) -> None:
    """Files that this process has open, such as the catalogue, are not inherited."""
    with (tmp_path / "catalogue.db").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        code = REACH + "for n in range(3, 64):\n    try: os.fstat(n); print(n)\n    except OSError: pass"
        assert box.run(code) == Outcome("", None)


FORK_BOMB = REACH + "while True:\n    try: os.fork()\n    except BaseException: pass"
LOOPS = {
    "plain": "while True: pass",
    "catching": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "in C": "10 ** 10 ** 9",
    "regular expression": "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    "ignoring signals": REACH
    + "s = builtins.__import__('_signal')\nfor n in (1, 2, 15, 24): s.signal(n, s.SIG_IGN)\nwhile True: pass",
    "raising limits": REACH
    + "try: sys.modules['resource'].setrlimit(0, (-1, -1))\nexcept (OSError, ValueError): pass\nwhile True: pass",
    "fork bomb": FORK_BOMB,
}


def test_computing_time_ends_before_the_deadline() -> None:
    assert Sandbox(cpu_seconds=1, seconds=60).run("while True: pass").error == "stopped after 1 seconds of computing"


def test_endless_computing_ends() -> None:
    """All at once: each is stopped, by its computing time or, on a busy machine, by the clock."""
    quick = Sandbox(cpu_seconds=1, seconds=8)
    start = time.monotonic()
    with ThreadPoolExecutor(len(LOOPS)) as pool:
        outcomes = dict(
            zip(LOOPS, pool.map(lambda code: quick.run("print('begun')\n" + code), LOOPS.values()), strict=True)
        )
    assert time.monotonic() - start < 12
    assert {kind: outcome.output for kind, outcome in outcomes.items()} == dict.fromkeys(LOOPS, "begun\n")
    assert {str(outcome.error) for outcome in outcomes.values()} <= {
        "stopped after 1 seconds of computing",
        "stopped after 8 seconds",
    }


def test_waiting_ends_at_the_deadline() -> None:
    start = time.monotonic()
    code = REACH + "print('waiting')\nbuiltins.__import__('time').sleep(60)"
    assert Sandbox(seconds=1).run(code) == Outcome("waiting\n", "stopped after 1 seconds")
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "code",
    [
        "x = 'x' * 10**12",
        "x = [0] * 10**9",
        "x = []\nwhile True: x.append('x' * 10**6)",
        "x = b'x'\nwhile True: x += x",
        "x = {n: str(n) for n in range(10**8)}",
    ],
)
def test_memory_ends(code: str) -> None:
    error = ONE.run(code).error
    assert error is not None and error.startswith("MemoryError")


@pytest.mark.parametrize(
    "code", ["(" * 100_000, "def f(): f()\nf()", "x = []\nfor n in range(10**5): x = [x]\nrepr(x)"]
)
def test_depth_ends(code: str) -> None:
    assert ONE.run(code).error is not None


@pytest.mark.parametrize(
    "flood",
    [
        "while True: print('x' * 1000)",
        "print('x' * 10**8)",
        REACH + "while True: os.write(1, b'x' * 10**6)",
    ],
)
def test_output_floods_are_cut(flood: str) -> None:
    outcome = ONE.run(flood)
    assert len(outcome.output) == 20_000 and set(outcome.output) <= {"x", "\n"}
    assert outcome.error == "stopped: it printed more than 20,000 bytes"


def test_a_flood_of_errors_is_cut() -> None:
    outcome = ONE.run(REACH + "while True: os.write(2, b'e' * 10**6)")
    assert outcome.output == "" and outcome.error is not None and len(outcome.error) <= 20_000


@pytest.mark.parametrize("end", ["os._exit(78)", "os._exit(0)", "os.abort()", "ctypes.string_at(0)"])
def test_no_end_of_the_process_passes_for_ours(box: Sandbox, end: str) -> None:
    """Status 78 is how a worker says that it cannot contain code; code that ends so must not switch the tool off."""
    outcome = box.run(REACH + end)
    assert outcome.output == ""
    assert (outcome.error is None) == (end == "os._exit(0)")
    assert box.run("print(1)").output == "1\n"


def episodes(count: int, box: Sandbox) -> list[tuple[bool, Outcome]]:
    """(hostile, outcome) of episodes side by side, every second one hostile."""
    hostile = [
        "while True: pass",
        "x = []\nwhile True: x.append('x' * 10**6)",
        "while True: print('x' * 1000)",
        FORK_BOMB,
        REACH + "builtins.open('/etc/passwd')",
        REACH + "builtins.__import__('_socket').socket()",
        *LOOPS.values(),
    ]

    def run(number: int) -> tuple[bool, Outcome]:
        is_hostile = number % 2 == 1
        return is_hostile, box.run(hostile[number // 2 % len(hostile)] if is_hostile else f"print({number} * 2)")

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def expect(outcomes: list[tuple[bool, Outcome]]) -> None:
    """Every hostile one was stopped or refused, and every other one has its result."""
    assert all(outcome.error for is_hostile, outcome in outcomes if is_hostile)
    fair = [(number, outcome) for number, (is_hostile, outcome) in enumerate(outcomes) if not is_hostile]
    assert all(outcome == Outcome(f"{number * 2}\n", None) for number, outcome in fair)


def test_others_go_on_beside_hostile_code() -> None:
    expect(episodes(12, Sandbox(cpu_seconds=1)))


@pytest.mark.slow
def test_64_episodes_half_of_them_hostile() -> None:
    expect(episodes(64, Sandbox(seconds=60, parallel=64)))


def test_a_machine_without_the_filter_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = tmp_path / "worker.py"
    text = module.WORKER.read_text(encoding="utf-8")
    assert text.count("os.uname().machine not in NEEDED") == 1
    worker.write_text(text.replace("os.uname().machine not in NEEDED", "True"))
    monkeypatch.setattr(module, "WORKER", worker)
    module._walls.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable, match="cannot contain code: no system call filter for"):
            Sandbox().run("print(1)")
        visit = Toolbox(SimpleNamespace(), SimpleNamespace(), sandbox=Sandbox())  # type: ignore[arg-type]
        result = visit.call("python_execute", {"code": "print(1)"})
        assert result["output"] == "" and "not available here" in result["error"]
    finally:
        module._walls.cache_clear()


def test_the_tool_gives_output_and_error() -> None:
    visit = Toolbox(SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    assert visit.call("python_execute", {"code": "print(6 * 7)"}) == {"output": "42\n", "error": None}
    assert visit.call("python_execute", {"code": "print(1)\n1 / 0"}) == {
        "output": "1\n",
        "error": "ZeroDivisionError: division by zero (line 2)",
    }
    assert "give at most 20000" in visit.call("python_execute", {"code": "x" * 20_001})["error"]
