"""A catalogue while it is built: its tables, and the place that was reached, which changes with every transaction."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

from benchmarks.amazon_reviews.files import Line, Place

SET_ASIDE_KEPT = 1000
SCHEMA = (
    """CREATE TABLE products (
        product_id TEXT PRIMARY KEY, title TEXT DEFAULT '', store TEXT DEFAULT '', brand TEXT DEFAULT '',
        main_category TEXT DEFAULT '', price REAL, average_rating REAL, rating_number INTEGER DEFAULT 0,
        detail_field_count INTEGER, implicit_eligible_count INTEGER,
        has_features INTEGER, has_description INTEGER, has_price INTEGER, data TEXT, review_count INTEGER DEFAULT 0)""",
    """CREATE TABLE reviews (
        review_id INTEGER PRIMARY KEY, product_id TEXT, rating REAL, title TEXT, text TEXT,
        helpful_vote INTEGER, verified_purchase INTEGER, timestamp INTEGER)""",
    "CREATE VIRTUAL TABLE products_fts USING fts5(title, content='products')",
    "CREATE VIRTUAL TABLE reviews_fts USING fts5(title, text, content='reviews', content_rowid='review_id')",
    "CREATE TABLE set_aside (source TEXT, line INTEGER, reason TEXT, beginning TEXT)",
    "CREATE TABLE build (key TEXT PRIMARY KEY, value TEXT)",
)


class Draft:
    """A draft file, opened to go on. ``stage``, ``place``, ``counts`` and ``digest`` are as of the last commit.

    The digest is a chain: each batch's rows are hashed onto that of the batches before.
    Raises ValueError where the file was begun from other ``inputs``, or is no draft; OSError where it cannot be opened.
    """

    def __init__(self, path: Path, inputs: Mapping[str, Any]) -> None:
        self.path = path
        self.stage, self.place, self.digest = 0, Place(), hashlib.sha256().hexdigest()
        self.counts: Counter[str] = Counter()
        try:
            self.connection = sqlite3.connect(path, isolation_level=None)  # transactions begin and end by our word
        except sqlite3.OperationalError as error:
            raise OSError(f"{path}: {error}; see that it may be written") from None
        try:
            self._begin_or_go_on(inputs)
        except (sqlite3.DatabaseError, json.JSONDecodeError, LookupError, TypeError) as error:
            self.close()
            raise ValueError(f"{path}: no draft of a catalogue ({error}); give --overwrite to start anew") from None
        except ValueError:
            self.close()
            raise

    def _begin_or_go_on(self, inputs: Mapping[str, Any]) -> None:
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("PRAGMA cache_size = -262144")  # 256 MiB: product ids arrive in no order
        begun = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not begun:
            with self.transaction():
                for statement in SCHEMA:
                    self.connection.execute(statement)
                self._note("inputs", inputs)
            return
        noted = {key: json.loads(value) for key, value in self.connection.execute("SELECT key, value FROM build")}
        if noted["inputs"] != inputs:
            raise ValueError(f"{self.path} was begun from other inputs or settings; give --overwrite to start anew")
        self.stage, self.place = noted["progress"]["stage"], Place(*noted["progress"]["place"])
        self.digest, self.counts = noted["digest"], Counter(noted["counts"])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what happens inside, with the place that was reached, or nothing of it.

        Raises OSError in words where there is no room for it.
        """
        self.connection.execute("BEGIN")
        try:
            yield
            self._note("progress", {"stage": self.stage, "place": astuple(self.place)})
            self._note("counts", self.counts)
            self._note("digest", self.digest)
            self.connection.execute("COMMIT")
        except BaseException as error:
            if self.connection.in_transaction:  # SQLite has ended it itself where the disk is full
                self.connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise OSError(f"{self.path}: {error}; mend that, and give the same command again to go on") from None
            raise

    def insert(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        """Insert rows and hash them onto the digest; returns how many were new."""
        chain = hashlib.sha256(self.digest.encode())
        for row in rows:
            chain.update(repr(tuple(row)).encode("utf-8"))
        self.digest = chain.hexdigest()
        return self.connection.executemany(statement, rows).rowcount if rows else 0

    def set_aside(self, what: str, source: str, line: Line, reason: str) -> None:
        """Count a line that cannot be used; the first ones are kept, with their beginning."""
        self.counts[f"{what}_set_aside"] += 1
        if self.counts["products_set_aside"] + self.counts["reviews_set_aside"] <= SET_ASIDE_KEPT:
            beginning = line.text[:200].decode("utf-8", "replace").replace("\0", "")
            self.connection.execute(
                "INSERT INTO set_aside VALUES (?, ?, ?, ?)", (source, line.place.line, reason, beginning)
            )

    def first_set_aside(self, sources: Sequence[str]) -> str | None:
        """Where the first line of these files that was set aside stands, and why; None where none was."""
        rows = self.connection.execute("SELECT source, line, reason FROM set_aside ORDER BY rowid")
        return next((f"{source}:{line}: {reason}" for source, line, reason in rows if source in sources), None)

    def end_stage(self) -> None:
        self.stage, self.place = self.stage + 1, Place()

    def close(self) -> None:
        self.connection.close()

    def _note(self, key: str, value: Any) -> None:
        self.connection.execute("INSERT OR REPLACE INTO build VALUES (?, ?)", (key, json.dumps(value)))
