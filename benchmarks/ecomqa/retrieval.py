"""Finding passages: BM25 over Chinese words, sentence embeddings, or both fused by rank."""

from __future__ import annotations

import hashlib
import logging
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.ecomqa.corpus import Passage, corpus_fingerprint
from models.embedding import Embedder, Vectors

Method = Literal["bm25", "dense", "both"]
# Cormack, Clarke and Büttcher 2009, "Reciprocal rank fusion outperforms Condorcet and individual rank learning".
FUSION_CONSTANT = 60
# How deep each ranking is read before two are fused.
FUSION_DEPTH = 100
QUERIES = 256  # queries compared with all vectors at once


class Retriever(Protocol):
    """Finds passages. ``facts`` fix what is found and hold no path."""

    facts: Mapping[str, Any]

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The best passages of each query, best first, at most ``k``."""


def words(text: str) -> list[str]:
    """The words to search by: full-width forms folded, lower case, long words also in their parts.

    The dictionary alone divides (no hidden Markov model), so that a name which it lacks is divided the same way in
    a question and in a passage, into characters, and is found.
    """
    import jieba

    jieba.setLogLevel(logging.WARNING)
    folded = unicodedata.normalize("NFKC", text).lower()
    return [word for word in jieba.lcut_for_search(folded, HMM=False) if any(map(str.isalnum, word))]


class Bm25:
    """Okapi BM25 (k1 1.5, b 0.75, as Lucene computes it); a passage that shares no word with a query is not found."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        import bm25s

        self.passages = passages
        self.facts: Mapping[str, Any] = {"method": "bm25", "k1": 1.5, "b": 0.75}
        self._index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
        self._index.index([words(passage.content) for passage in passages], show_progress=False)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        found: list[list[Passage]] = []
        for query in queries:
            asked = words(query)
            scores = self._index.get_scores(asked) if asked else np.zeros(len(self.passages))
            found.append([self.passages[row] for row in _best(scores, k) if scores[row] > 0])
        return found


class Dense:
    """Cosine between sentence embeddings, over all passages.

    Args:
        store: a folder where the passages' vectors are kept (and found again), so that they need not fit in memory.
    """

    def __init__(self, passages: Sequence[Passage], embedder: Embedder, store: Path | None = None) -> None:
        self.passages, self.embedder = passages, embedder
        self.facts: Mapping[str, Any] = {"method": "dense", **embedder.facts}
        self._vectors = self._embedded(store)

    def _embedded(self, store: Path | None) -> Vectors:
        texts = [passage.content for passage in self.passages]
        if store is None:
            return self.embedder.embed(texts)
        key = hashlib.sha256(f"{sorted(self.embedder.facts.items())} {corpus_fingerprint(self.passages)}".encode())
        path = store / f"{self.embedder.name.replace('/', '--')}-{key.hexdigest()[:16]}.npy"
        if path.is_file():
            kept: Vectors = np.load(path, mmap_mode="r")
            return kept
        store.mkdir(parents=True, exist_ok=True)
        return self.embedder.embed_to(path, texts)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        asked = self.embedder.embed(queries)
        found: list[list[Passage]] = []
        for start in range(0, len(queries), QUERIES):
            for scores in asked[start : start + QUERIES] @ self._vectors.T:
                found.append([self.passages[row] for row in _best(scores, k)])
        return found


class Fused:
    """Several rankings in one: a passage's score is the sum of 1 / (60 + its rank) over those that hold it."""

    def __init__(self, retrievers: Sequence[Retriever]) -> None:
        self.retrievers = retrievers
        self.facts: Mapping[str, Any] = {
            "method": "both",
            "of": [dict(one.facts) for one in retrievers],
            "constant": FUSION_CONSTANT,
        }

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        rankings = [one.search(queries, max(k, FUSION_DEPTH)) for one in self.retrievers]
        return [fuse(list(of_one_query), k) for of_one_query in zip(*rankings, strict=True)]


def fuse(rankings: Sequence[Sequence[Passage]], k: int) -> list[Passage]:
    """Reciprocal rank fusion; equal scores stay in the order in which they were first met."""
    scores: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for ranking in rankings:
        for rank, passage in enumerate(ranking, 1):
            scores[passage.id] = scores.get(passage.id, 0.0) + 1 / (FUSION_CONSTANT + rank)
            passages[passage.id] = passage
    return [passages[name] for name in sorted(scores, key=lambda name: -scores[name])[:k]]


def make_retriever(
    method: Method, passages: Sequence[Passage], embedder: Embedder | None = None, store: Path | None = None
) -> Retriever:
    """The retriever of a name. Raises ValueError where embeddings are asked for and there is no embedder."""
    if method == "bm25":
        return Bm25(passages)
    if embedder is None:
        raise ValueError(f"retrieval {method!r} needs a sentence encoder; name its checkpoint (minilm, a folder ...)")
    dense = Dense(passages, embedder, store)
    return dense if method == "dense" else Fused([Bm25(passages), dense])


def _best(scores: NDArray[Any], k: int) -> NDArray[np.intp]:
    """Rows of the ``k`` highest scores, highest first; equal ones in the order of the corpus."""
    return np.argsort(-scores, kind="stable")[:k]
