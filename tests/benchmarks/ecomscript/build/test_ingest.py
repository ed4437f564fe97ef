"""Ingest: metadata and reviews as they come become two tables, with every line accounted for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.ecomscript.build import ingest as module
from benchmarks.ecomscript.build.config import ReviewsConfig
from benchmarks.ecomscript.build.ingest import file_fingerprint, ingest, ingest_identity
from benchmarks.ecomscript.build.stages import Stage
from benchmarks.ecomscript.build.tables import Rows

LONG = "It served us well on every single evening of that long summer"


def product(name: str, **more: Any) -> dict[str, Any]:
    return {"parent_asin": name, "title": f"Title {name}", **more}


def review(name: str, text: str = LONG, **more: Any) -> dict[str, Any]:
    return {"parent_asin": name, "text": text, "rating": 4, "verified_purchase": True, **more}


def write(path: Path, rows: Sequence[dict[str, Any] | str]) -> str:
    lines = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines.encode()))
    else:
        path.write_text(lines, encoding="utf-8")
    return str(path)


def run(
    folder: Path, metadata: Sequence[str], reviews: Sequence[str], **filters: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """(products, reviews, manifest)"""
    stage = Stage(folder / "ingest", {}, Console(quiet=True))
    ingest(stage, metadata, reviews, ReviewsConfig(**filters))
    tables = [Rows(stage.path / f"{kind}.parquet") for kind in ("products", "reviews")]
    products, found = (table.read(0, len(table)) for table in tables)
    return products, found, stage.manifest


def test_products_are_read_as_amazon_has_them(tmp_path: Path) -> None:
    line = product(
        "B1",
        title="  Lamp <b>Bright</b> ",
        main_category="Tools",
        categories=["Home", "Lamps &amp; Lights"],
        features=["<br>", "12 V"],
        description=["First.", "<p>Second.</p>"],
        price="$1,299.00",
    )
    bare = {**product("B2", main_category="Tools"), "price": "from 9.99", "features": None, "description": []}
    found, _, _ = run(
        tmp_path, [write(tmp_path / "m.jsonl.gz", [line, bare])], [write(tmp_path / "r.jsonl", [review("B1")])]
    )
    assert found == [
        {
            "id": "B1",
            "title": "Lamp Bright",
            "features": ["12 V"],
            "category": "Lamps & Lights",
            "description": "First. Second.",
            "price": 1299.0,
        },
        {"id": "B2", "title": "Title B2", "features": [], "category": "Tools", "description": None, "price": None},
    ]


def test_every_line_is_kept_set_aside_or_counted(tmp_path: Path) -> None:
    metadata = write(
        tmp_path / "meta.jsonl",
        [
            product("A"),
            '{"parent_asin": "cut',
            "",
            product("B"),
            product("A", title="Again"),
            '["no object"]',
            {"title": "x"},
        ],
    )
    reviews = write(
        tmp_path / "rev.jsonl",
        [
            review("A"),
            review("Z"),
            review("A", "Too short"),
            review("B", verified_purchase=False),
            review("A", f" {LONG} "),
            {"parent_asin": "A", "text": LONG},
            "null",
            review("B"),
        ],
    )
    products, found, manifest = run(tmp_path, [metadata], [reviews])
    assert [(row["id"], row["title"]) for row in products] == [("A", "Title A"), ("B", "Title B")]
    assert [(row["id"], row["product"], row["product_title"]) for row in found] == [
        ("rev.jsonl:1", "A", "Title A"),
        ("rev.jsonl:8", "B", "Title B"),
    ]
    assert manifest["products"]["left_out"] == {"repeats an earlier product": 1}
    assert sum(manifest["products"]["rejected"].values()) == 3
    assert manifest["reviews"]["left_out"] == {
        "of a product that the metadata lack": 1,
        "shorter than 10 words": 1,
        "of no verified purchase": 1,
        "repeats an earlier review of the product": 1,
    }
    aside = Rows(tmp_path / "ingest" / "reviews-rejects.parquet").read(0, 9)
    assert [(row["id"], row["reason"], row["reply"].strip()) for row in aside] == [
        ("rev.jsonl:6", "no rating", json.dumps({"parent_asin": "A", "text": LONG})),
        ("rev.jsonl:7", "JSON, but no object: NoneType", "null"),
    ]
    for kind in ("products", "reviews"):
        about = manifest[kind]
        assert about["read"] == about["kept"] + sum(about["rejected"].values()) + sum(about["left_out"].values())
    assert manifest["left_out"]["reviews: of no verified purchase"] == 1


@pytest.mark.parametrize("killed_at", range(1, 9))
def test_a_killed_ingest_goes_on_to_the_same_tables(
    tmp_path: Path, killed_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    first = write(tmp_path / "a.jsonl", [product(f"P{k % 7}") for k in range(8)])
    second = write(tmp_path / "b.jsonl.gz", [product(f"Q{k}") for k in range(4)])
    # Two reviews in three repeat an earlier one, also of another part.
    reviews = write(tmp_path / "r.jsonl", [review(f"P{k % 4}") for k in range(10)])
    whole = run(tmp_path / "whole", [first, second], [reviews])
    real, written = module.write_part, []

    def mortal(*given: Any) -> None:
        written.append(given)
        if len(written) == killed_at:
            raise KeyboardInterrupt
        real(*given)

    monkeypatch.setattr(module, "write_part", mortal)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed", [first, second], [reviews])
    monkeypatch.setattr(module, "write_part", real)
    killed = run(tmp_path / "killed", [first, second], [reviews])
    assert killed == whole
    assert [len(killed[0]), len(killed[1])] == [11, 4]


def test_reading_ends_with_the_reviews_that_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    metadata = write(tmp_path / "m.jsonl", [product(f"P{k}") for k in range(9)])
    reviews = write(tmp_path / "r.jsonl", [review(f"P{k}") for k in range(9)])
    _, found, manifest = run(tmp_path, [metadata], [reviews], limit=3)
    assert [row["product"] for row in found] == ["P0", "P1", "P2"]
    assert manifest["reviews"]["read"] == 4 and manifest["reviews"]["left_out"] == {"beyond the limit": 1}


def test_what_cannot_be_ingested_is_told(tmp_path: Path) -> None:
    metadata, empty = write(tmp_path / "m.jsonl", [product("A")]), write(tmp_path / "r.jsonl", ["broken"])
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        ingest_identity([metadata], [str(tmp_path / "none.jsonl")])
    with pytest.raises(FileNotFoundError, match="give --reviews"):
        ingest_identity([metadata], [])
    (tmp_path / "other").mkdir()
    with pytest.raises(ValueError, match=r"reviews: two files are called r\.jsonl"):
        ingest_identity([metadata], [empty, write(tmp_path / "other" / "r.jsonl", [])])
    for _ in range(2):
        with pytest.raises(ValueError, match="ingest: no reviews among 1 lines"):
            run(tmp_path, [metadata], [empty])


def test_a_file_is_known_by_its_beginning_end_and_size(tmp_path: Path) -> None:
    def known(text: str) -> str:
        path = tmp_path / "f"
        path.write_text(text)
        return json.dumps(file_fingerprint(path))

    assert len({known("ab"), known("ac"), known("cb"), known("aab"), known("")}) == 5
