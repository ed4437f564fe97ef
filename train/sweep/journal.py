"""Optuna's journal of a sweep, in which a full disk or a power loss may have left a part of a line.

Lines are only ever added: without its last ones, a journal tells of the sweep as it once was, which goes on from there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend


def open_journal(path: Path) -> JournalStorage:
    """The journal, begun or gone on with. A torn last line is cut off: what it told of is done again.

    Raises ValueError, with the way out, for a journal that is spoilt elsewhere.
    """
    if path.is_file():
        _cut_torn_line(path)
    try:
        return JournalStorage(JournalFileBackend(str(path)))
    except OSError:
        raise
    except Exception as error:  # Optuna trusts its lines: what they lack may end in any kind of error
        raise ValueError(f"{path} does not tell of a sweep ({error!r}); give another --out") from error


def _cut_torn_line(path: Path) -> None:
    with path.open("rb") as file:
        lines = list(file)
    spoilt = [number for number, line in enumerate(lines, 1) if not _is_whole(line)]
    if not spoilt:
        return
    if spoilt[0] < len(lines):
        raise ValueError(
            f"{path}:{spoilt[0]}: no line of a journal; remove this line and all below it (what they tell of is done "
            "again), or give another --out"
        )
    os.truncate(path, path.stat().st_size - len(lines[-1]))


def _is_whole(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and isinstance(json.loads(line), dict)
    except ValueError:
        return False
