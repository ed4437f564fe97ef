"""Building a catalogue from metadata and reviews: streaming, resumable, the same file from the same input.

Everything goes into ``<out>.draft``, a batch of lines a transaction, so a killed build goes on behind its last whole
batch and ends with the same bytes (of one SQLite version). Lines that cannot be used are counted; the first thousand
are kept in the table ``set_aside`` with the reason.

Of a product with more than ``reviews_per_product`` reviews, that many are kept, chosen by a generator seeded with
"<product id>_<seed>": the same on every machine, whatever other products there are. Memory grows with the number of
products, whose ids and review counts are held while reviews are read.
"""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from benchmarks.amazon_reviews.files import Line, Place, lines
from benchmarks.amazon_reviews.records import (
    UselessLine,
    product_record,
    read_line,
    review_record,
    sound,
)
from benchmarks.ecomagent.catalogue import DRAFT
from benchmarks.ecomagent.catalogue_draft import Draft
from benchmarks.ecomagent.fields import HINTABLE
from models.manifest import sha256

FORMAT = 1
REVIEWS_PER_PRODUCT, SEED = 20, 42
BATCH = 5000
COUNTS = (
    "products",
    "products_repeated",
    "products_set_aside",
    "reviews",
    "reviews_left_out",
    "reviews_of_unknown_products",
    "reviews_set_aside",
)
NAMED = 3  # files that a refusal names
Row = tuple[Any, ...]
log = logging.getLogger(__name__)


class NothingUsable(ValueError):
    """Files of which not one line can be used; says why the first cannot."""


@dataclass(frozen=True)
class Plan:
    """What to build: metadata files, review files (in this order), how many reviews of a product to keep, and which.

    Raises ValueError for a negative number of reviews.
    """

    products: tuple[Path, ...]
    reviews: tuple[Path, ...] = ()
    reviews_per_product: int = REVIEWS_PER_PRODUCT
    seed: int = SEED

    def __post_init__(self) -> None:
        if self.reviews_per_product < 0:
            raise ValueError(f"reviews_per_product: {self.reviews_per_product}; give 0 or more")

    def inputs(self) -> dict[str, Any]:
        """What fixes the file, without saying where it lies: names and digests. Reads every file once."""
        return {
            "format": FORMAT,
            "products": [[path.name, sha256(path)] for path in self.products],
            "reviews": [[path.name, sha256(path)] for path in self.reviews],
            "reviews_per_product": self.reviews_per_product,
            "seed": self.seed,
        }


def build(plan: Plan, out: Path, overwrite: bool = False) -> dict[str, Any]:
    """Build the catalogue ``out``, or go on with what a killed build left; returns its counts and its digest.

    Counts: ``products``, ``products_repeated`` (an id again: the first one stays), ``products_set_aside``, ``reviews``,
    ``reviews_left_out`` (beyond the limit), ``reviews_of_unknown_products``, ``reviews_set_aside``.

    Raises FileExistsError where there is a catalogue already and ``overwrite`` is False; ValueError where ``out`` is no
    file, the draft was begun from something else, another build is writing it, a compressed file breaks off, or nothing
    of the metadata, or of the reviews that are given, can be used.
    """
    if out.exists() and not out.is_file():
        raise ValueError(f"{out}: a folder, or no ordinary file; give the file to write as --out")
    if out.exists() and not overwrite:
        raise FileExistsError(f"{out}: there is a catalogue already; give another --out, or --overwrite to replace it")
    draft_path = out.with_name(out.name + DRAFT)
    out.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{draft_path}.lock", timeout=0)
    try:
        with lock:
            with closing(_open(draft_path, plan, overwrite)) as draft:
                _run(draft, plan)
                summary = {name: draft.counts[name] for name in COUNTS} | {"digest": draft.digest}
            draft_path.replace(out)
    except NothingUsable:  # there is nothing in the draft to go on with
        draft_path.unlink()
        raise
    except Timeout:
        raise ValueError(f"{draft_path}: another build is writing it; wait for it, or give another --out") from None
    Path(lock.lock_file).unlink(missing_ok=True)
    return summary


def _open(path: Path, plan: Plan, overwrite: bool) -> Draft:
    inputs = plan.inputs()
    try:
        return Draft(path, inputs)
    except ValueError:
        if not overwrite:
            raise
        path.unlink()
        return Draft(path, inputs)


def _run(draft: Draft, plan: Plan) -> None:
    """The stages that are still to do."""
    stages: tuple[tuple[str, Callable[[Draft, Plan], None]], ...] = (
        ("products", _products),
        ("indexes of products", _product_indexes),
        ("reviews", _reviews),
        ("indexes of reviews", _review_indexes),
        ("text index of products", partial(_text_index, table="products_fts")),
        ("text index of reviews", partial(_text_index, table="reviews_fts")),
    )
    for name, stage in stages[draft.stage :]:
        log.info("%s ...", name)
        stage(draft, plan)


def _products(draft: Draft, plan: Plan) -> None:
    for batch in _batches(lines(plan.products, draft.place)):
        with draft.transaction():
            rows = list(_rows(draft, batch, plan.products, "products", _product_row))
            insert = "INSERT OR IGNORE INTO products VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
            new = draft.insert(insert, rows)
            draft.counts["products"] += new
            draft.counts["products_repeated"] += len(rows) - new
            draft.place = batch[-1].place
    if not draft.counts["products"]:
        raise _nothing_usable(draft, plan.products, "products")
    with draft.transaction():
        draft.end_stage()


def _reviews(draft: Draft, plan: Plan) -> None:
    known = {product_id for (product_id,) in draft.connection.execute("SELECT product_id FROM products")}
    selection = _Selection(Counter(_products_reviewed(plan, known)), plan.reviews_per_product, plan.seed)
    # Which reviews are kept depends on how many came before: a build that goes on counts those again.
    for product in _products_reviewed(plan, known, until=draft.place):
        selection.takes(product)
    for batch in _batches(lines(plan.reviews, draft.place)):
        with draft.transaction():
            rows = list(_rows(draft, batch, plan.reviews, "reviews", _review_row))
            of_known = [row for row in rows if row[0] in known]
            kept = [row for row in of_known if selection.takes(row[0])]
            draft.insert("INSERT INTO reviews VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", kept)
            draft.counts["reviews"] += len(kept)
            draft.counts["reviews_left_out"] += len(of_known) - len(kept)
            draft.counts["reviews_of_unknown_products"] += len(rows) - len(of_known)
            draft.place = batch[-1].place
    usable = sum(draft.counts[name] for name in ("reviews", "reviews_left_out", "reviews_of_unknown_products"))
    if not usable and draft.counts["reviews_set_aside"]:
        raise _nothing_usable(draft, plan.reviews, "reviews")
    with draft.transaction():
        draft.end_stage()


def _nothing_usable(draft: Draft, files: Sequence[Path], what: str) -> NothingUsable:
    named = ", ".join(str(path) for path in files[:NAMED]) + (f" and {len(files) - NAMED} more" * (len(files) > NAMED))
    aside = draft.counts[f"{what}_set_aside"]
    first = draft.first_set_aside([path.name for path in files])
    told = f"{aside} lines cannot be used, the first, {first}" if first else "they hold no line"
    return NothingUsable(f"{named}: no {what} in there: {told}; give JSON lines in the form of Amazon Reviews 2023")


def _product_indexes(draft: Draft, plan: Plan) -> None:
    with draft.transaction():
        draft.connection.execute("CREATE INDEX products_store ON products (store)")
        draft.connection.execute("CREATE INDEX products_brand ON products (brand COLLATE NOCASE)")
        draft.connection.execute("CREATE INDEX products_main_category ON products (main_category)")
        draft.end_stage()


def _review_indexes(draft: Draft, plan: Plan) -> None:
    with draft.transaction():
        draft.connection.execute("CREATE INDEX reviews_product ON reviews (product_id)")
        draft.connection.execute(
            "UPDATE products SET review_count = counted.number"
            " FROM (SELECT product_id, count(*) AS number FROM reviews GROUP BY product_id) AS counted"
            " WHERE counted.product_id = products.product_id"
        )
        draft.end_stage()


def _text_index(draft: Draft, plan: Plan, table: str) -> None:
    with draft.transaction():
        draft.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
        draft.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
        draft.end_stage()


class _Selection:
    """Which of a product's reviews are kept: all, or ``limit`` of them by their number among the product's reviews."""

    def __init__(self, totals: Counter[str], limit: int, seed: int) -> None:
        self.totals, self.limit, self.seed = totals, limit, seed
        self.seen: Counter[str] = Counter()
        self.chosen: dict[str, frozenset[int]] = {}

    def takes(self, product: str) -> bool:
        """Whether the product's next review is kept."""
        number, total = self.seen[product], self.totals[product]
        self.seen[product] += 1
        if total <= self.limit:
            return True
        if number == 0:
            generator = random.Random(f"{product}_{self.seed}")
            self.chosen[product] = frozenset(generator.sample(range(total), self.limit))
        takes = number in self.chosen[product]
        if number == total - 1:
            del self.chosen[product]
        return takes


def _products_reviewed(plan: Plan, known: set[str], until: Place | None = None) -> Iterator[str]:
    """The known product of every usable review, up to a place."""
    for line in lines(plan.reviews):
        if until is not None and line.place > until:
            return
        try:
            product = review_record(read_line(line.text))["product_id"]
        except UselessLine:
            continue
        if product in known:
            yield product


def _batches(source: Iterator[Line]) -> Iterator[list[Line]]:
    while batch := list(islice(source, BATCH)):
        yield batch


def _rows(
    draft: Draft, batch: list[Line], files: Sequence[Path], what: str, make: Callable[[dict[str, Any]], Row]
) -> Iterator[Row]:
    for line in batch:
        try:
            yield make(read_line(line.text))
        except UselessLine as error:
            draft.set_aside(what, files[line.place.file].name, line, str(error))


def _product_row(raw: dict[str, Any]) -> Row:
    record = product_record(raw)
    for name in ("parent_asin", "title"):
        if not record[name]:
            raise UselessLine(f"no {name}")
    details = record["details"]
    return (
        record["parent_asin"],
        record["title"],
        record["store"],
        sound(str(details.get("Brand", ""))),
        record["main_category"],
        record["price"],
        record["average_rating"],
        record["rating_number"],
        len(details),
        sum(1 for name, value in details.items() if name in HINTABLE and value),
        int(bool(record["features"])),
        int(bool(record["description"])),
        int(record["price"] is not None),
        sound(json.dumps(record, ensure_ascii=False, separators=(",", ":"))),
    )


def _review_row(raw: dict[str, Any]) -> Row:
    return tuple(review_record(raw).values())
