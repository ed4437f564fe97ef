"""The shop's catalogue: one SQLite file with full-text indexes, opened read-only.

`benchmarks.ecomagent.catalogue_build` writes it, with the tables of the published `product.db`, which opens as well:
``products`` (columns that eligibility needs, and the whole record as JSON in ``data``), ``reviews``, and the FTS5
indexes ``products_fts`` (title) and ``reviews_fts`` (title, text). ``build`` tells what a file was made of; a published
file has none.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.amazon_reviews.records import number, product_record, sound

REVIEWS_SHOWN = 20
COUNTS_REMEMBERED = 65_536
DRAFT = ".draft"
"""What the name of a catalogue ends with until its build is finished."""
COLUMNS = {
    "products": (
        *("product_id", "title", "store", "main_category", "average_rating", "rating_number", "detail_field_count"),
        *("implicit_eligible_count", "has_features", "has_description", "has_price", "data", "review_count"),
    ),
    "products_fts": ("title",),
    "reviews": (
        *("review_id", "product_id", "rating", "title", "text", "helpful_vote", "verified_purchase", "timestamp"),
    ),
    "reviews_fts": ("title", "text"),
}
"""The tables that a catalogue has, and the columns that playing, grading and construction read."""


@dataclass(frozen=True)
class Product:
    """A product as tasks and grading see it. ``details`` are strings; what is no string there becomes one."""

    id: str
    title: str
    store: str
    price: float | None
    average_rating: float | None
    rating_number: int
    main_category: str
    categories: tuple[str, ...]
    features: tuple[str, ...]
    description: tuple[str, ...]
    details: dict[str, str]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Product:
        """From a record of `benchmarks.amazon_reviews.records.product_record`."""
        return cls(
            id=record["parent_asin"],
            title=record["title"],
            store=record["store"],
            price=record["price"],
            average_rating=record["average_rating"],
            rating_number=record["rating_number"],
            main_category=record["main_category"],
            categories=tuple(record["categories"]),
            features=tuple(record["features"]),
            description=tuple(record["description"]),
            details={name: str(value) for name, value in record["details"].items()},
        )


@dataclass(frozen=True)
class Review:
    """A review as the catalogue keeps it; ``timestamp`` in milliseconds since 1970.

    Where a published file has nothing, ``rating`` is None, texts are empty, and counts 0.
    """

    product_id: str
    rating: float | None
    title: str
    text: str
    helpful_vote: int
    verified_purchase: bool
    timestamp: int


class Catalogue:
    """Read access to a catalogue file, from any number of threads and from read-only media.

    Search methods take FTS5 expressions; `benchmarks.ecomagent.tools.matching` makes them of what a model typed.
    Raises FileNotFoundError where there is no file, ValueError where it is no finished catalogue with all `COLUMNS`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"{self.path}: a folder, or no ordinary file; give the catalogue's file")
        if not self.path.exists():
            raise FileNotFoundError(
                f"no catalogue at {self.path}; make one with scripts/build.py ecomagent-catalogue --out {self.path}"
            )
        self._threads = threading.local()
        self._counted = lru_cache(maxsize=COUNTS_REMEMBERED)(self._count)
        self._refuse_what_is_none()

    def product(self, product_id: str) -> Product | None:
        record = self.record(product_id)
        return None if record is None else Product.from_record(record)

    def record(self, product_id: str) -> dict[str, Any] | None:
        """The product's metadata record in the form of Amazon Reviews 2023; None for an unknown id."""
        row = self._row("SELECT data FROM products WHERE product_id = ?", product_id)
        if row is None:
            return None
        try:
            return product_record({**json.loads(row[0]), "parent_asin": product_id})
        except (TypeError, ValueError) as error:
            raise self._damaged(f"product {product_id}: {error}") from None

    def reviews(self, product_id: str, limit: int = REVIEWS_SHOWN) -> list[Review]:
        """The product's first reviews, in the order in which they were built in."""
        rows = self._rows(
            "SELECT product_id, rating, title, text, helpful_vote, verified_purchase, timestamp FROM reviews"
            " WHERE product_id = ? ORDER BY review_id LIMIT ?",
            product_id,
            limit,
        )
        return [_review(row) for row in rows]

    def ids(self) -> Iterator[str]:
        """Every product id, in the order in which they were built in."""
        for (product_id,) in self._connection().execute("SELECT product_id FROM products ORDER BY rowid"):
            yield product_id

    def __len__(self) -> int:
        return int(self._rows("SELECT count(*) FROM products")[0][0])

    def search(self, expression: str, limit: int, offset: int = 0, ranked: bool = True) -> list[tuple[str, str]]:
        """(id, title) of the products whose title matches, best (bm25) first, equals in the order of the catalogue.

        Ranking looks at every match (about a microsecond each); unranked ones come in the order of the catalogue.
        Raises sqlite3.OperationalError for what is no FTS5 expression.
        """
        score = "bm25(products_fts)" if ranked else "0"
        return self._rows(
            f"SELECT product_id, ifnull(title, '') FROM products JOIN (SELECT rowid AS hit, {score} AS score"
            " FROM products_fts WHERE products_fts MATCH ? ORDER BY score, hit LIMIT ? OFFSET ?)"
            " ON products.rowid = hit ORDER BY score, hit",
            expression,
            limit,
            offset,
        )

    def count(self, expression: str) -> int:
        """How many titles match; remembered, as common words are asked for again and again."""
        return self._counted(expression)

    def _count(self, expression: str) -> int:
        return int(self._rows("SELECT count(*) FROM products_fts WHERE products_fts MATCH ?", expression)[0][0])

    def occurs(self, expression: str) -> bool:
        """Whether any title matches; much quicker than `count` where many do."""
        return bool(self._rows("SELECT 1 FROM products_fts WHERE products_fts MATCH ? LIMIT 1", expression))

    def search_reviews(self, product_id: str, expression: str, limit: int) -> list[Review]:
        """The product's reviews whose title or text matches, best (bm25 over all reviews) first."""
        # Asked for by its reviews' ids: from the words' side, a common word would cost all reviews that have it.
        rows = self._rows(
            "SELECT product_id, rating, title, text, helpful_vote, verified_purchase, timestamp FROM reviews"
            " JOIN (SELECT rowid AS hit, bm25(reviews_fts) AS score FROM reviews_fts WHERE reviews_fts MATCH ?"
            " AND rowid IN (SELECT review_id FROM reviews WHERE product_id = ?) ORDER BY score, hit LIMIT ?)"
            " ON review_id = hit ORDER BY score, hit",
            expression,
            product_id,
            limit,
        )
        return [_review(row) for row in rows]

    def store(self, name: str, limit: int, offset: int = 0) -> list[tuple[str, str]]:
        """(id, title) of the products of the store with exactly this name, in the order of the catalogue."""
        return self._rows(
            "SELECT product_id, ifnull(title, '') FROM products WHERE store = ? ORDER BY rowid LIMIT ? OFFSET ?",
            name,
            limit,
            offset,
        )

    def store_count(self, name: str) -> int:
        return int(self._rows("SELECT count(*) FROM products WHERE store = ?", name)[0][0])

    def fingerprint(self) -> str:
        """Says which catalogue this is: the digest of its content that the build wrote down.

        A file of another origin has none; there it is made of the file's size and its first and last MiB.
        """
        if (digest_built := self._built_digest()) is not None:
            return digest_built
        size, mebibyte = self.path.stat().st_size, 1 << 20
        digest = hashlib.sha256(str(size).encode())
        with self.path.open("rb") as file:
            digest.update(file.read(mebibyte))
            file.seek(max(0, size - mebibyte))
            digest.update(file.read(mebibyte))
        return digest.hexdigest()

    def _built_digest(self) -> str | None:
        """The digest that the build wrote down; None where the file is of another origin."""
        if not {"key", "value"} <= self._columns("build"):
            return None
        row = self._row("SELECT value FROM build WHERE key = 'digest'")
        try:
            return None if row is None else str(json.loads(row[0]))
        except (TypeError, ValueError) as error:
            raise self._damaged(f"the digest in its table build: {error}") from None

    def _columns(self, table: str) -> set[str]:
        """The names of a table's columns; none where there is no such table."""
        return {name for (name,) in self._rows("SELECT name FROM pragma_table_info(?)", table)}

    def _refuse_what_is_none(self) -> None:
        wal = self.path.with_name(self.path.name + "-wal")
        if wal.is_file() and wal.stat().st_size:
            raise ValueError(f"{self.path}: changes wait in {wal.name} beside it; let its writer finish and close it")
        if self.path.suffix == DRAFT:
            raise ValueError(f"{self.path}: a catalogue that is not finished; give its build's command again")
        found = {table: self._columns(table) for table in COLUMNS}
        if missing := [table for table in COLUMNS if not found[table]]:
            raise self._damaged(f"no table {', '.join(missing)}")
        if lacking := [
            f"{table}.{name}" for table, names in COLUMNS.items() for name in names if name not in found[table]
        ]:
            raise self._damaged(f"no column {', '.join(lacking)}")
        self._built_digest()

    def _row(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        rows = self._rows(query, *values)
        return rows[0] if rows else None

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._connection().execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            if type(error) is sqlite3.DatabaseError:  # the file itself, not what was asked of it
                raise self._damaged(str(error)) from None
            raise

    def _damaged(self, what: str) -> ValueError:
        return ValueError(f"{self.path}: no catalogue, or a damaged one ({what}); build it anew, or copy it again")

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection. "immutable" spares the lock and journal files, which a read-only folder refuses."""
        connection = getattr(self._threads, "connection", None)
        if connection is None:
            connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
            connection.execute("PRAGMA query_only = ON")
            self._threads.connection = connection
        return connection


def _review(row: tuple[Any, ...]) -> Review:
    product_id, rating, title, text, helpful_vote, verified_purchase, timestamp = row
    return Review(
        product_id=product_id,
        rating=number(rating),
        title=sound(str(title or "")),
        text=sound(str(text or "")),
        helpful_vote=int(number(helpful_vote) or 0),
        verified_purchase=bool(verified_purchase),
        timestamp=int(number(timestamp) or 0),
    )
