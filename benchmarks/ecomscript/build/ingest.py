"""The first stage: product metadata and reviews as they come, streamed into two tables.

Lines that cannot be read are set aside with the reason; products are told apart by parent_asin, the first one stays;
reviews that the filter leaves out are counted. Memory grows with the number of products (their ids and titles) and of
reviews (eight bytes each, as Python holds them), not with the size of the files.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.amazon_reviews.files import Line, Place, lines, metadata_files, review_files
from benchmarks.amazon_reviews.records import UselessLine, product_record, read_line, review_record
from benchmarks.ecomscript.build.config import ReviewsConfig
from benchmarks.ecomscript.build.mining import PRODUCT_SCHEMA, REVIEW_SCHEMA
from benchmarks.ecomscript.build.stages import REJECTS, Made, Reject, Stage, merge, read_notes, short_digest, write_part
from benchmarks.ecomscript.build.tables import Row, Rows
from models.runtime import this_process
from recipes.importing.files import clean

BATCH = 5000  # lines of a part
SHOWN = 3  # broken lines that are told as they are met
MEBIBYTE = 1 << 20
PRODUCTS, REVIEWS = "products.parquet", "reviews.parquet"


def ingest_identity(metadata: Sequence[str], reviews: Sequence[str]) -> dict[str, Any]:
    """What fixes the two tables beside the filter. Raises FileNotFoundError for what is not there."""
    files = _files(metadata, reviews)
    kinds = zip(("metadata", "reviews"), files, strict=True)
    return {kind: [file_fingerprint(path) for path in paths] for kind, paths in kinds}


def file_fingerprint(path: Path) -> dict[str, Any]:
    """A file's name, size, and sha256 of its first and last MiB: what tells two downloads apart without reading all."""
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(MEBIBYTE))
        file.seek(max(0, size - MEBIBYTE))
        digest.update(file.read(MEBIBYTE))
    return {"name": path.name, "size": size, "ends": digest.hexdigest()}


def ingest(stage: Stage, metadata: Sequence[str], reviews: Sequence[str], config: ReviewsConfig) -> None:
    """Make ``products.parquet`` and ``reviews.parquet``; the main process reads, the others wait."""
    if stage.begin() and this_process().is_main_process:
        product_files, files = _files(metadata, reviews)
        counts = {"products": _read(stage, "products", product_files, PRODUCT_SCHEMA, Products)}
        products = pq.read_table(stage.path / PRODUCTS, columns=["id", "title"])
        titles = dict(zip(products["id"].to_pylist(), products["title"].to_pylist(), strict=True))
        counts["reviews"] = _read(stage, "reviews", files, REVIEW_SCHEMA, lambda parts: Reviews(parts, titles, config))
        about: dict[str, Any] = {key: counts["products"][key] + counts["reviews"][key] for key in ("read", "kept")}
        for key in ("rejected", "left_out"):
            about[key] = {f"{kind}: {why}": number for kind in counts for why, number in counts[kind][key].items()}
        about |= counts
        stage.finish(about, [PRODUCTS, REVIEWS], {"processes": 1})
    stage.wait()
    for kind in ("products", "reviews"):
        found = stage.manifest[kind]
        if not found["kept"]:
            raise ValueError(
                f"ingest: no {kind} among {found['read']} lines ({found['rejected'] or found['left_out']}); "
                f"look into {stage.path}, mend the files or the filter, and give --redo ingest"
            )


def _files(metadata: Sequence[str], reviews: Sequence[str]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    found = metadata_files([Path(one) for one in metadata]), review_files([Path(one) for one in reviews])
    for kind, files in zip(("metadata", "reviews"), found, strict=True):
        if not files:
            raise FileNotFoundError(f"no {kind}: give --{kind} with files in .jsonl or .jsonl.gz")
        if twice := [name for name, count in Counter(path.name for path in files).items() if count > 1]:
            raise ValueError(f"{kind}: two files are called {twice[0]}, which names their lines; rename one")
    return found


class Products:
    """Takes each product once, by its id."""

    enough = False

    def __init__(self, parts: Iterable[Path]) -> None:
        self.seen = {identity for part in parts for identity in _column(part, "id")}

    def take(self, name: str, raw: dict[str, Any], made: Made) -> None:
        row = product_row(raw)
        if row["id"] in self.seen:
            made.left_out["repeats an earlier product"] += 1
        else:
            self.seen.add(row["id"])
            made.rows.append(row)


class Reviews:
    """Takes the reviews of known products that pass the filter, none twice.

    Args:
        titles: of the known products, by id.
    """

    def __init__(self, parts: Iterable[Path], titles: dict[str, str], config: ReviewsConfig) -> None:
        self.titles, self.config = titles, config
        self.seen = {
            short_digest(row["product"] + row["text"])
            for part in parts
            for row in Rows(part).read(0, BATCH)
            if row["text"]
        }

    @property
    def enough(self) -> bool:
        return self.config.limit is not None and len(self.seen) >= self.config.limit

    def take(self, name: str, raw: dict[str, Any], made: Made) -> None:
        review = review_record(raw)
        text, product = clean(review["text"]) or "", review["product_id"]
        digest = short_digest(product + text)
        if self.enough:
            reason = "beyond the limit"
        elif product not in self.titles:
            reason = "of a product that the metadata lack"
        elif self.config.verified and not review["verified_purchase"]:
            reason = "of no verified purchase"
        elif len(text.split()) < self.config.fewest_words:
            reason = f"shorter than {self.config.fewest_words} words"
        elif digest in self.seen:
            reason = "repeats an earlier review of the product"
        else:
            self.seen.add(digest)
            made.rows.append(
                {
                    "id": name,
                    "product": product,
                    "product_title": self.titles[product],
                    "rating": review["rating"],
                    "text": text,
                }
            )
            return
        made.left_out[reason] += 1


def product_row(raw: dict[str, Any]) -> Row:
    """A product of a metadata line, its texts without HTML. Raises UselessLine without an id or a title."""
    record = product_record(raw)
    title = clean(record["title"])
    if not record["parent_asin"] or title is None:
        raise UselessLine("no parent_asin" if not record["parent_asin"] else "no title")
    description = " ".join(filter(None, map(clean, record["description"])))
    return {
        "id": record["parent_asin"],
        "title": title,
        "features": [text for feature in record["features"] if (text := clean(feature))],
        "category": clean(next(reversed(record["categories"]), record["main_category"])),
        "description": description or None,
        "price": record["price"],
    }


def _read(
    stage: Stage, kind: str, files: Sequence[Path], schema: pa.Schema, taker: Callable[[list[Path]], Products | Reviews]
) -> dict[str, Any]:
    """Read files line by line into parts, behind the last whole part of an earlier run, and put the parts together."""
    parts = sorted(stage.parts.glob(f"{kind}-*.parquet"))
    take = taker(parts)
    notes: dict[str, Any] = read_notes(parts[-1]) if parts else {"read": 0, "place": astuple(Place())}
    read, place, told = notes["read"], Place(*notes["place"]), 0
    with stage.progress(None) as update:
        for batch in _batches(iter(()) if take.enough else lines(files, place)):
            made = Made()
            for line in batch:
                name = f"{files[line.place.file].name}:{line.place.line}"
                try:
                    take.take(name, read_line(line.text), made)
                except UselessLine as error:
                    made.rejects.append(Reject(name, str(error), line.text[:200].decode("utf-8", "replace")))
                    told += 1
                    if told <= SHOWN:
                        stage.say.print(f"{name}: {error}; set aside")
            read += len(batch)
            update(read)
            parts.append(stage.parts / f"{kind}-{len(parts):08}.parquet")
            write_part(parts[-1], made, schema, {"read": read, "place": astuple(batch[-1].place)})
            if take.enough:
                break
    rejects = stage.path / f"{kind}-{REJECTS}"
    return {"read": read, **merge(parts, stage.path / f"{kind}.parquet", schema, rejects)}


def _batches(source: Iterator[Line]) -> Iterator[list[Line]]:
    while batch := list(islice(source, BATCH)):
        yield batch


def _column(path: Path, name: str) -> list[str]:
    """The values of a column that are there: a part has rejects too, which have none."""
    values: list[str | None] = pq.read_table(path, columns=[name]).column(0).to_pylist()
    return [value for value in values if value is not None]
