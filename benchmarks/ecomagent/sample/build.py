"""The shipped shop as files in the form of Amazon Reviews 2023, and as a catalogue built on demand."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from benchmarks.ecomagent import catalogue_build
from benchmarks.ecomagent.sample.products import product
from benchmarks.ecomagent.sample.reviews import reviews
from benchmarks.ecomagent.sample.schema import Category, load_categories, load_opinions, source_files
from models.packaged import cache_folder

SEED = 0


def sample_catalogue() -> Path:
    """The shop's catalogue in the cache folder; built there on first use, and anew when its sources have changed."""
    path = cache_folder() / "ecomagent" / f"sample-{_version()}.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if not path.is_file():
            with tempfile.TemporaryDirectory() as folder:
                build_sample(path, Path(folder))
    return path


def build_sample(out: Path, files: Path, seed: int = SEED, overwrite: bool = False) -> dict[str, Any]:
    """Write the shop's files to a folder and build a catalogue of them; returns what `catalogue_build.build` does."""
    metadata, written = write_files(files, seed)
    return catalogue_build.build(catalogue_build.Plan(metadata, written), out, overwrite)


def write_files(folder: Path, seed: int = SEED) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """``meta_<category>.jsonl`` and ``reviews_<category>.jsonl`` of every category; returns both lists of files."""
    folder.mkdir(parents=True, exist_ok=True)
    metadata, written = [], []
    for category in load_categories():
        name = category.category.replace(" & ", "_and_").replace(" ", "_")
        records, opinions = [], []
        for record, of_it in _products(category, seed):
            records.append(record)
            opinions += of_it
        metadata.append(_write(folder / f"meta_{name}.jsonl", records))
        written.append(_write(folder / f"reviews_{name}.jsonl", opinions))
    return tuple(metadata), tuple(written)


def _products(category: Category, seed: int) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """(metadata, reviews) of the category's products; no product has fewer ratings than reviews."""
    opinions = load_opinions()
    for family in category.families:
        for name in family.names:
            record, attributes = product(category, family, name, seed)
            of_it = reviews(record, attributes, category, family, opinions, seed)
            record["rating_number"] = max(record["rating_number"], len(of_it))
            yield record, of_it


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@cache
def _version() -> str:
    digest = hashlib.sha256(f"{SEED} {catalogue_build.FORMAT}".encode())
    for path in source_files():
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
