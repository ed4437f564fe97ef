"""How a command ends: a sentence and a status for what a person can mend or stop, a traceback for what only we can.

0 is done, 1 what data, settings or files do not allow, 2 wrong usage, 130 stopped by Ctrl-C (as a shell says it).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")
DONE, FAILED, STOPPED = 0, 1, 130
FAULTS = (ValueError, OSError)  # in data or settings; files that are absent, forbidden or find no room


def interrupted(goes_on: bool) -> str:
    """What to tell of Ctrl-C: whether the same command goes on from what is there, or has to begin again."""
    return f"interrupted; the same command {'goes on from here' if goes_on else 'starts again'}"


def in_words(error: BaseException) -> str:
    """What to tell of an error: the system's as "/data/run: Permission denied", any other in its own words."""
    if isinstance(error, OSError) and error.strerror:
        where = error.filename2 or error.filename
        return f"{where}: {error.strerror}" if where else error.strerror
    return str(error)


def ends_in_words(
    goes_on: bool = False, also: tuple[type[Exception], ...] = ()
) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Make a command's main function return 1 with a sentence for faults, and 130 where it is interrupted.

    Commands that a launcher starts as several processes have `models.runtime.one_of_many` instead.

    Args:
        goes_on: the same command goes on from where it was stopped.
        also: what else is a fault here, beside ValueError and OSError.
    """

    faults: tuple[type[Exception], ...] = (*FAULTS, *also)

    def wrap(main: Callable[P, int]) -> Callable[P, int]:
        @wraps(main)
        def ended(*args: P.args, **kwargs: P.kwargs) -> int:
            try:
                return main(*args, **kwargs)
            except faults as error:
                print(f"error: {in_words(error)}", file=sys.stderr)
                return FAILED
            except KeyboardInterrupt:
                print(interrupted(goes_on), file=sys.stderr)
                return STOPPED

        return ended

    return wrap
