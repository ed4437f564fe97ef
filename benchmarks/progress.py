"""How far something is: a bar on a terminal, and now and then a line where there is none (a log file, a pipe)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

EVERY = 60.0  # seconds between two lines, at least


@contextmanager
def progress(say: Console, what: str, total: int | None, before: int = 0) -> Iterator[Callable[[int], None]]:
    """What it yields is called with how much of ``total`` is done (None: nobody knows). A quiet console shows none.

    Args:
        before: how much was done already, by what was stopped; it says nothing of the time that the rest takes.
    """
    if say.is_terminal:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=say, disable=say.quiet or total == 0) as bar:
            task = bar.add_task(what, total=total, completed=before)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield _lines(say, what, total, before)


@contextmanager
def doing(say: Console, what: str) -> Iterator[None]:
    """What takes a while, by name: turning on a terminal for as long as it takes, a line elsewhere."""
    if say.is_terminal:
        with say.status(what):
            yield
    else:
        say.print(what)
        yield


def _lines(say: Console, what: str, total: int | None, before: int) -> Callable[[int], None]:
    started = told = time.monotonic()

    def update(done: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= EVERY:
            told = now
            after = f"{(now - started) / 60:.0f} min"
            if total is None:
                say.print(f"{what}: {done} after {after}")
            else:
                new = done - before
                left = f"{(now - started) / 60 * (total - done) / new:.0f} min" if new else "an unknown time"
                say.print(f"{what}: {done} of {total} after {after}, {left} to go")

    return update
