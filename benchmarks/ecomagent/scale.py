"""What a large catalogue costs: `python -m benchmarks.ecomagent.scale --products 1000000 --folder DIR`.

Writes synthetic metadata and reviews (words drawn as in real titles: a few very common, most rare), builds a catalogue,
and searches it as agents do. Prints one JSON object: seconds of the build, size of the file, milliseconds of
`search_products` (p50, p95, worst, warm) for each kind of query, and peak memory of the process.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.catalogue_build import Plan, build
from benchmarks.ecomagent.tools import Mode, Toolbox

MODES: tuple[Mode, ...] = ("strict", "compat")
Queries = dict[str, list[str]]
WORDS = 60_000
TEXTS = 20_000
SYLLABLES = (
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su", "ta", "ve", "wi",
    "xo", "zy", "cra", "dre", "fli", "glo", "pru", "sta", "tre",
)  # fmt: skip
COMMON = (
    "for", "with", "and", "of", "set", "pack", "black", "inch", "case", "women", "men", "compatible", "cable",
    "portable", "large", "steel", "cover", "usb",
)  # fmt: skip
ZIPF = 1.05
"""Exponent of the word frequencies: that of English text is about 1."""


class Vocabulary:
    """Words with Zipf's frequencies: the commonest stands in about half of the titles, most in a handful."""

    def __init__(self, seed: int) -> None:
        random_words = random.Random(seed)
        made = dict.fromkeys(COMMON)
        while len(made) < WORDS:
            made["".join(random_words.choices(SYLLABLES, k=random_words.randint(2, 4)))] = None
        self.words = list(made)
        self.weights = list(accumulate(1 / (rank + 10) ** ZIPF for rank in range(WORDS)))

    def draw(self, source: random.Random, count: int) -> list[str]:
        return source.choices(self.words, cum_weights=self.weights, k=count)


def metadata(count: int, vocabulary: Vocabulary, seed: int) -> Iterator[dict[str, Any]]:
    """Products in the form of Amazon Reviews 2023, titles of 8 to 22 words."""
    source = random.Random(f"{seed}:products")
    texts = [" ".join(vocabulary.draw(source, source.randint(8, 30))) for _ in range(TEXTS)]
    for number in range(count):
        yield {
            "parent_asin": f"S{number:09d}",
            "title": " ".join(vocabulary.draw(source, source.randint(8, 22))).title(),
            "main_category": f"Department {source.randrange(12)}",
            "store": f"Store {source.randrange(1 + count // 30)}",
            "average_rating": round(source.uniform(2, 5), 1),
            "rating_number": int(10 ** source.uniform(0, 4)),
            "price": round(10 ** source.uniform(0.7, 2.5), 2) if source.random() < 0.7 else None,
            "features": [source.choice(texts) for _ in range(4)],
            "description": [source.choice(texts)],
            "details": {f"Detail {field}": source.choice(vocabulary.words) for field in range(9)},
        }


def reviews(count: int, vocabulary: Vocabulary, seed: int, each: float = 0.5) -> Iterator[dict[str, Any]]:
    """``each`` reviews a product on average."""
    source = random.Random(f"{seed}:reviews")
    texts = [" ".join(vocabulary.draw(source, source.randint(8, 80))) for _ in range(TEXTS)]
    for _ in range(int(count * each)):
        yield {
            "parent_asin": f"S{source.randrange(count):09d}",
            "rating": source.randint(1, 5),
            "title": " ".join(vocabulary.draw(source, 4)),
            "text": source.choice(texts),
            "helpful_vote": source.randrange(5),
            "verified_purchase": True,
            "timestamp": 1_600_000_000_000 + source.randrange(10**10),
        }


def queries(titles: Sequence[str], vocabulary: Vocabulary, seed: int, count: int = 300) -> Queries:
    """Queries of several kinds.

    The first two are how agents search: two to five words of a product's title; and words that do not all go together,
    as a shopper's wishes do not, which makes strict mode look for those that do. The third is the worst case: a single
    word that stands in up to a fifth of all titles, each of which compat must rank.
    """
    source = random.Random(f"{seed}:queries")
    return {
        "words of a title": [
            " ".join(source.sample(words, min(len(words), source.randint(2, 5))))
            for words in (source.choice(titles).split() for _ in range(count))
        ],
        "words that do not go together": [
            " ".join(vocabulary.draw(source, source.randint(4, 8))) for _ in range(count)
        ],
        "one common word": [source.choice(vocabulary.words[:40]) for _ in range(count)],
    }


def milliseconds(call: Callable[[str], Any], warming: Sequence[str], asked: Sequence[str]) -> dict[str, float]:
    """p50, p95 and worst of queries asked once each, after other queries of the kind have warmed the caches.

    By the clock, and by the computing time of this thread, which tells the same on a busy machine as on an idle one.
    """
    for query in warming:
        call(query)
    clock, computing = [], []
    for query in asked:
        start, begun = time.perf_counter(), time.thread_time()
        call(query)
        computing.append(time.thread_time() - begun)
        clock.append(time.perf_counter() - start)
    return _percentiles(clock, "") | _percentiles(computing, "cpu_")


def _percentiles(seconds: list[float], prefix: str) -> dict[str, float]:
    ranked = sorted(seconds)
    places = {"p50": len(ranked) // 2, "p95": int(len(ranked) * 0.95), "worst": -1}
    return {prefix + name: round(ranked[place] * 1000, 1) for name, place in places.items()}


def measure(count: int, folder: Path, seed: int = 0) -> dict[str, Any]:
    """Build a catalogue of ``count`` products in a folder and search it; see the module for what is measured."""
    vocabulary = Vocabulary(seed)
    plan = _write_files(count, folder, vocabulary, seed)
    out = folder / "catalogue.db"
    start = time.perf_counter()
    built = build(plan, out, overwrite=True)
    seconds = time.perf_counter() - start
    build_peak = _peak_mib()
    catalogue = Catalogue(out)
    source = random.Random(f"{seed}:titles")
    ids = [f"S{source.randrange(count):09d}" for _ in range(1000)]
    titles = [product.title for product in map(catalogue.product, ids) if product is not None]
    warming, asked = (queries(titles, vocabulary, seed + which) for which in (1, 2))
    return {
        "products": built["products"],
        "reviews": built["reviews"],
        "build_seconds": round(seconds, 3),
        "file_mib": out.stat().st_size >> 20,
        "build_peak_mib": build_peak,
        "search_ms": {mode: _search_times(catalogue, mode, warming, asked) for mode in MODES},
        "peak_mib": _peak_mib(),
    }


def _search_times(catalogue: Catalogue, mode: Mode, warming: Queries, asked: Queries) -> dict[str, dict[str, float]]:
    box = Toolbox(catalogue, SimpleNamespace(), mode)  # searching looks at no task

    def search(query: str) -> Any:
        return box.call("search_products", {"query": query})

    return {kind: milliseconds(search, warming[kind], asked[kind]) for kind in asked}


def _write_files(count: int, folder: Path, vocabulary: Vocabulary, seed: int) -> Plan:
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / "meta_synthetic.jsonl", folder / "synthetic.jsonl")
    for path, rows in zip(paths, (metadata, reviews), strict=True):
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows(count, vocabulary, seed))
    return Plan(paths[:1], paths[1:])


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", type=int, default=1_000_000, help="how many (%(default)s)")
    parser.add_argument("--folder", type=Path, required=True, help="where the files go; a million takes 4 GB")
    chosen = parser.parse_args()
    print(json.dumps(measure(chosen.products, chosen.folder), indent=2))


if __name__ == "__main__":
    main()
