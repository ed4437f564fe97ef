"""Which products serve a step: similarity of the step with the products' purchase intents, among candidates or all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.ecomscript.build.config import AlignConfig, Averaging
from benchmarks.ecomscript.build.index import Words
from benchmarks.ecomscript.build.mining import NEED_SCHEMA
from benchmarks.ecomscript.build.stages import Made
from benchmarks.ecomscript.build.tables import Row
from models.embedding import Embedder, Vectors

Ints = NDArray[np.int64]
Hit = tuple[int, float]  # a product's row, and its similarity
# A product that serves a step: its row in the table of intents, its id, its similarity.
FOUND = pa.list_(pa.struct({"row": pa.int64(), "product": pa.string(), "similarity": pa.float64()}))
ALIGNED_SCHEMA = pa.schema([*NEED_SCHEMA, ("candidates", pa.list_(pa.int64())), ("products", pa.list_(FOUND))])

# Similarities are compared as they are kept, with six decimals: what float32 leaves behind them depends on the order of
# additions, and so would ties, and what lies exactly on the threshold.
DECIMALS = 6
# Hits asked for beyond those wanted, so that equal ones at the end of the list are put in the order of the products.
SPARE = 8
BLOCK = 65_536  # products compared at once
TRAINING = 64  # vectors a list by which the approximate index learns its lists
FEWEST = 39  # vectors a list below which faiss finds that too few


class Search(Protocol):
    """Products by the similarity of their intents with queries (vectors of length 1)."""

    def among(self, query: Vectors, rows: Ints, count: int) -> list[Hit]:
        """The best of some products for one query, [dimension]."""

    def everywhere(self, queries: Vectors, count: int) -> list[list[Hit]]:
        """The best of all products for each query, [queries, dimension]."""


class Exact:
    """Compares with every product that is in question, read from a memory map.

    Args:
        means: mean vectors of the products' intents, [products, dimension].
    """

    def __init__(self, means: Vectors, averaging: Averaging) -> None:
        self.means, self.averaging = means, averaging

    def among(self, query: Vectors, rows: Ints, count: int) -> list[Hit]:
        if not len(rows):
            return []
        scores, places = _knn(query[None], averaged(self.means[rows], self.averaging), count + SPARE)
        return ranked(scores[0], rows[places[0]], count)

    def everywhere(self, queries: Vectors, count: int) -> list[list[Hit]]:
        scores, found = [], []
        for start in range(0, len(self.means), BLOCK):
            block = averaged(self.means[start : start + BLOCK], self.averaging)
            best, places = _knn(queries, block, count + SPARE)
            scores.append(best)
            found.append(places + start)
        every, rows = np.concatenate(scores, axis=1), np.concatenate(found, axis=1)
        return [ranked(*one, count) for one in zip(every, rows, strict=True)]


class Approximate:
    """Looks into the inverted lists (faiss IVF, vectors uncompressed) that are nearest to a query.

    The index lies in a file and is read as it is needed. See `write_approximate`.
    """

    def __init__(self, path: Path, probes: int) -> None:
        import faiss

        self._faiss: Any = faiss
        self._index = self._faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
        self.probes = min(probes, self._index.nlist)

    def among(self, query: Vectors, rows: Ints, count: int) -> list[Hit]:
        selector = self._faiss.IDSelectorBatch(rows)
        return self._search(query[None], count, sel=selector)[0]

    def everywhere(self, queries: Vectors, count: int) -> list[list[Hit]]:
        return self._search(queries, count)

    def _search(self, queries: Vectors, count: int, **how: Any) -> list[list[Hit]]:
        asked = self._faiss.SearchParametersIVF(nprobe=self.probes, **how)
        scores, rows = self._index.search(np.ascontiguousarray(queries), count + SPARE, params=asked)
        return [ranked(*one, count) for one in zip(scores, rows, strict=True)]


def write_approximate(means: Vectors, averaging: Averaging, path: Path, seed: int = 0) -> None:
    """Build the index of `Approximate`: about four times the root of the number of products in lists.

    It needs memory for all mean vectors once (4 bytes a number).
    """
    import faiss

    products, dimension = means.shape
    lists = max(1, min(int(4 * products**0.5), products // FEWEST))
    index = faiss.index_factory(dimension, f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
    count = min(products, TRAINING * lists)
    chosen = np.sort(np.random.default_rng(seed).choice(products, count, replace=False))
    index.train(averaged(means[chosen], averaging))
    for start in range(0, products, BLOCK):
        index.add(averaged(means[start : start + BLOCK], averaging))
    draft = path.with_name(f".{path.name}.draft")
    faiss.write_index(index, str(draft))
    draft.replace(path)


def averaged(means: Vectors, averaging: Averaging) -> Vectors:
    """Vectors whose product with a step's is the similarity, of mean vectors [products, dimension] (see index.py)."""
    vectors = np.ascontiguousarray(means, dtype=np.float32)
    if averaging == "cosine_of_mean":
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    return vectors


def ranked(scores: NDArray[np.float32], rows: Ints, count: int) -> list[Hit]:
    """The best hits, equal ones in the order of the products; rows below 0 are faiss's word for none."""
    real = rows >= 0
    rounded = np.round(scores[real].astype(np.float64), DECIMALS)
    order = np.lexsort((rows[real], -rounded))[:count]
    return [(int(rows[real][place]), float(rounded[place])) for place in order]


def kept(hits: Sequence[Hit], threshold: float) -> list[Hit]:
    """The hits at or above the threshold."""
    return [hit for hit in hits if hit[1] >= threshold]


def _knn(queries: Vectors, vectors: Vectors, count: int) -> tuple[NDArray[np.float32], Ints]:
    import faiss

    found: tuple[NDArray[np.float32], Ints] = faiss.knn(
        np.ascontiguousarray(queries), vectors, min(count, len(vectors)), metric=faiss.METRIC_INNER_PRODUCT
    )
    return found


class Aligner:
    """Finds the products of the steps that need some, best first.

    Args:
        ids: of the products, by row.
    """

    def __init__(
        self, search: Search, words: Words, embedder: Embedder, ids: pa.ChunkedArray, config: AlignConfig
    ) -> None:
        self.search, self.words, self.embedder, self.ids, self.config = search, words, embedder, ids, config

    def work(self, rows: list[Row]) -> Made:
        """The rows with ``products`` (a list for each step) and ``candidates`` (how many each step was compared with;
        null where it needs none)."""
        steps = [(row, step) for row in rows for step, need in enumerate(row["needs"]) if need]
        hits, counts = self._hits(steps)
        products: dict[tuple[str, int], list[Row]] = {}
        candidates: dict[tuple[str, int], int] = {}
        made = Made()
        for (row, step), found, count in zip(steps, hits, counts, strict=True):
            good = kept(found, self.config.threshold)
            candidates[row["id"], step] = count
            products[row["id"], step] = [
                {"row": place, "product": self.ids[place].as_py(), "similarity": similarity}
                for place, similarity in good
            ]
            empty = "without a product at the threshold" if count else "without candidates"
            made.counts[f"steps {'with products' if good else empty}"] += 1
        for row in rows:
            own = [(row["id"], step) for step in range(len(row["steps"]))]
            row = {name: row[name] for name in NEED_SCHEMA.names}
            made.rows.append(
                {
                    **row,
                    "candidates": [candidates.get(step) for step in own],
                    "products": [products.get(step, []) for step in own],
                }
            )
        return made

    def _hits(self, steps: Sequence[tuple[Row, int]]) -> tuple[list[list[Hit]], list[int]]:
        """The best products of each step, and with how many it was compared."""
        wanted = self.config.products
        if not steps:
            return [], []
        queries = self.embedder.embed([row["steps"][step] for row, step in steps])
        if self.config.among == "all":
            return self.search.everywhere(queries, wanted), [len(self.ids)] * len(steps)
        among = [self.words.search(row["keywords"][step], self.config.candidates) for row, step in steps]
        places = [np.sort(np.asarray(rows, np.int64)) for rows in among]
        hits = [self.search.among(query, rows, wanted) for query, rows in zip(queries, places, strict=True)]
        return hits, list(map(len, among))
