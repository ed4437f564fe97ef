"""Completions kept on disk, so that a server is not asked the same thing twice."""

from __future__ import annotations

import functools
import json
import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

from models import json_text
from models.generation import Completion, as_completion

log = logging.getLogger(__name__)


class AnswerCache:
    """Completions under a key, for any number of threads and processes.

    A cache is a convenience: one that cannot be read or written is left alone after a warning.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.usable, self.lock = path, True, threading.Lock()
        with self._at_no_cost():
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as base, base:
                base.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, completion TEXT)")

    def _open(self) -> sqlite3.Connection:
        base = sqlite3.connect(self.path, timeout=60)
        base.text_factory = bytes  # what is spoilt is for the reader to find, not for SQLite
        return base

    def get(self, key: str) -> Completion | None:
        """What was kept under the key; None where nothing was, or nothing that can be read."""
        found = None
        if self.usable:
            with self._at_no_cost(), closing(self._open()) as base:
                found = base.execute("SELECT completion FROM answers WHERE key = ?", (key,)).fetchone()
        try:
            return as_completion(json_text.loads(found[0])) if found else None
        except (ValueError, TypeError):
            return None

    def put(self, key: str, completion: Completion, replace: bool = False) -> None:
        """Keep a completion; the first one that can be read stays, unless it is to be replaced."""
        line = json.dumps(asdict(completion), ensure_ascii=False)
        instead = "IGNORE" if not replace and self.get(key) else "REPLACE"
        if self.usable:
            with self.lock, self._at_no_cost(), closing(self._open()) as base, base:
                base.execute(f"INSERT OR {instead} INTO answers VALUES (?, ?)", (key, line))

    @contextmanager
    def _at_no_cost(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self.usable = False
            _warn(self.path, str(error))


@functools.cache
def _warn(path: Path, reason: str) -> None:
    """Once, however many servers' answers are kept there."""
    log.warning(
        "%s: no answers are kept or looked up from here on (%s); free the disk, remove the file, or set "
        "ECOMJUDGE_CACHE to another folder",
        path,
        reason,
    )
