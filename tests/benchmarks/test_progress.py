"""How far something is, as it is told where there is no terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks import progress as module
from benchmarks.progress import doing, progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_log_has_a_line_a_minute_at_most(clock: list[float]) -> None:
    file = io.StringIO()
    with progress(Console(file=file, width=200), "episodes", 8) as update:
        for done, seconds in ((1, 59.0), (2, 60.0), (3, 61.0), (4, 180.0)):
            clock[0] = 1000.0 + seconds
            update(done)
    # 2 in one minute: 6 more in three. 4 in three minutes: 4 more in three.
    told = ["episodes: 2 of 8 after 1 min, 3 min to go", "episodes: 4 of 8 after 3 min, 3 min to go"]
    assert file.getvalue().splitlines() == told


def test_what_was_done_before_says_nothing_of_the_time_to_go(clock: list[float]) -> None:
    file = io.StringIO()
    with progress(Console(file=file), "parts", 18, before=3) as update:
        for done, seconds in ((3, 60.0), (4, 120.0)):
            clock[0] = 1000.0 + seconds
            update(done)
    # One of its own in two minutes: 14 more in 28.
    told = ["parts: 3 of 18 after 1 min, an unknown time to go", "parts: 4 of 18 after 2 min, 28 min to go"]
    assert file.getvalue().splitlines() == told


def test_without_a_total_a_log_tells_what_is_done(clock: list[float]) -> None:
    file = io.StringIO()
    with progress(Console(file=file), "lines", None) as update:
        clock[0] += 120
        update(7)
    assert file.getvalue() == "lines: 7 after 2 min\n"


def test_nothing_done_yet_is_no_division(clock: list[float]) -> None:
    file = io.StringIO()
    with progress(Console(file=file), "parts", 4) as update:
        clock[0] += 60
        update(0)
    assert file.getvalue() == "parts: 0 of 4 after 1 min, an unknown time to go\n"


def test_a_terminal_has_a_bar_and_a_quiet_console_nothing(clock: list[float]) -> None:
    shown = io.StringIO()
    with progress(Console(file=shown, force_terminal=True, width=100), "episodes", 2) as update:
        update(2)
    assert "episodes" in shown.getvalue() and "2/2" in shown.getvalue()
    silent = io.StringIO()
    with progress(Console(file=silent, quiet=True), "episodes", 2) as update:
        clock[0] += 600
        update(1)
    assert silent.getvalue() == ""


def test_what_takes_a_while_is_named_in_a_log() -> None:
    file = io.StringIO()
    with doing(Console(file=file), "round 1 of 3: a tool"):
        assert file.getvalue() == "round 1 of 3: a tool\n"
    assert file.getvalue() == "round 1 of 3: a tool\n"
