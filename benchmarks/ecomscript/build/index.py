"""What alignment searches: each product's intents as vectors, their mean, and the product's text by its words.

Both averaging rules need only the mean m of a product's unit vectors: the mean of their cosines with a step s is s . m,
and the cosine of s with their mean is s . m / |m|. So the vectors of all intents are computed once, kept part by part,
and read once, a part at a time; alignment holds one vector a product.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.ecomscript.build.stages import Stage
from benchmarks.ecomscript.build.tables import Row, Rows
from models.embedding import Embedder, Vectors
from models.runtime import this_process

MEANS, WORDS = "means.npy", "catalogue.sqlite"
BATCH = 5000
LEAD = re.compile(r"^because (they want (to )?)?", re.IGNORECASE)


def embedded_text(intent: str) -> str:
    """An intent as it is embedded: what is wanted, without the words that intents begin with (docs/choices.md)."""
    return LEAD.sub("", intent)


def build_index(stage: Stage, source: Rows, embedder: Callable[[], Embedder], chunk: int) -> None:
    """Make ``parts/<number>.npy`` (vectors of the intents of ``chunk`` products each, [intents, dimension], float32),
    ``means.npy`` ([products, dimension], float32) and ``catalogue.sqlite``; rows are those of ``source``.
    """
    if stage.begin():
        state = this_process()
        count = -(-len(source) // chunk)
        before, started = stage.count("npy"), time.perf_counter()

        def make(number: int, path: Path) -> None:
            texts = [
                embedded_text(one)
                for row in source.read(number * chunk, (number + 1) * chunk)
                for one in row["intents"]
            ]
            draft = path.with_name(f".{path.name}.draft")
            with draft.open("wb") as file:
                np.save(file, embedder().embed(texts))
            draft.replace(path)

        stage.make(count, make, "npy")
        seconds = time.perf_counter() - started
        if state.is_main_process:
            sizes = np.asarray(source.column("intents").combine_chunks().value_lengths())
            parts = [stage.part(number, "npy") for number in range(count)]
            mean_vectors(parts, [sizes[k * chunk : (k + 1) * chunk] for k in range(count)], stage.path / MEANS)
            index_words(source, stage.path / WORDS)
            done = min(len(source), (count - before) * chunk)
            cost = {"rows": done, "seconds": round(seconds, 2), "processes": state.num_processes}
            counts = {"read": len(source), "kept": len(source), "rejected": {}, "left_out": {}, "tokens": 0}
            stage.finish({**counts, "intents": int(sizes.sum())}, [MEANS], cost)
    stage.wait(keep_parts=True)


def mean_vectors(parts: Sequence[Path], sizes: Sequence[NDArray[np.integer[Any]]], path: Path) -> None:
    """Write the mean vector of each product's intents, [products, dimension], reading a part at a time.

    Args:
        parts: files of vectors, [intents, dimension].
        sizes: of each part, the number of intents of each of its products; none is 0.
    """
    draft = path.with_name(f".{path.name}.draft")
    dimension = np.load(parts[0], mmap_mode="r").shape[1]
    shape = (sum(map(len, sizes)), dimension)
    means = np.lib.format.open_memmap(draft, mode="w+", dtype=np.float32, shape=shape)
    start = 0
    for part, own in zip(parts, sizes, strict=True):
        means[start : start + len(own)] = means_of(np.load(part), own)
        start += len(own)
    means.flush()
    del means
    draft.replace(path)


def means_of(vectors: Vectors, sizes: NDArray[np.integer[Any]]) -> Vectors:
    """The mean vector of each product, [products, dimension], of the vectors of its intents, one product's behind the
    other's, [intents, dimension]; ``sizes`` says how many each has."""
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    means: Vectors = (np.add.reduceat(vectors, begins, axis=0) / sizes[:, None]).astype(np.float32)
    return means


def index_words(source: Rows, path: Path) -> None:
    """A full-text index (SQLite FTS5) of the products' titles, features, categories and descriptions, by row."""
    try:
        _write_words(source, path)
    except sqlite3.Error as error:
        raise OSError(f"{path}: the full-text index cannot be written: {error}") from error


def _write_words(source: Rows, path: Path) -> None:
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    with closing(sqlite3.connect(draft)) as base, base:
        # Words are reduced to their stems. Nothing but row numbers is asked for, so no text is kept.
        base.execute(
            "CREATE VIRTUAL TABLE products USING fts5(title, features, category, description, content='',"
            " tokenize='porter unicode61')"
        )
        for start in range(0, len(source), BATCH):
            rows = source.read(start, start + BATCH)
            texts = [(start + k, *_texts(row)) for k, row in enumerate(rows)]
            base.executemany(
                "INSERT INTO products (rowid, title, features, category, description) VALUES (?, ?, ?, ?, ?)", texts
            )
        base.execute("INSERT INTO products (products) VALUES ('optimize')")
    draft.replace(path)


def _texts(row: Row) -> tuple[str, str, str, str]:
    return row["title"], "\n".join(row["features"] or ()), row["category"] or "", row["description"] or ""


class Words:
    """Finds products by words, in a file of `index_words`. Raises ValueError where that is missing or damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._telling():
            self._base = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ValueError(f"{self.path} cannot be read ({error}); give --redo index to make it anew") from error

    def search(self, texts: Sequence[str], limit: int) -> list[int]:
        """Rows of the products that have all words of at least one of the texts, best (bm25) first."""
        asked = [" AND ".join(f'"{word}"' for word in re.findall(r"\w+", text)) for text in texts]
        expression = " OR ".join(f"({words})" for words in asked if words)
        if not expression:
            return []
        with self._telling():
            found = self._base.execute(
                "SELECT rowid FROM products WHERE products MATCH ? ORDER BY bm25(products), rowid LIMIT ?",
                (expression, limit),
            )
            return [row for (row,) in found]
