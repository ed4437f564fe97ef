"""What alignment costs as a catalogue grows: time and memory over random unit vectors, a process of its own for each.

Random vectors have no neighbourhoods: speed and memory are those of any vectors, but what the approximate index misses
on them is the worst case, and no measure of real intents.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, get_args

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.ecomscript.build.align import Approximate, Exact, Search, write_approximate
from benchmarks.ecomscript.build.config import Averaging, Index
from benchmarks.ecomscript.build.index import MEANS, mean_vectors
from benchmarks.results import to_json, write_text
from models.embedding import Vectors
from models.limits import SEEDS, THREADS, Limits
from models.runtime import use_threads

PART = 10_000  # products whose intents lie in one file
COUNT = 3  # products asked for
AVERAGING: Averaging = "cosine_of_mean"


@dataclass(frozen=True)
class AlignSpeedConfig:
    """Measure alignment over random unit vectors.

    Attributes:
        products: catalogue sizes.
        intents: of each product.
        dimension: numbers of a vector; 384 is MiniLM's.
        queries: steps that are aligned, with candidates and with the whole catalogue.
        candidates: products that a step's keywords find.
        probes: lists that the approximate search looks into.
        folder: where the vectors are written for the while (4 bytes a number); None is the system's temporary folder.
        out: the file of the results.
    """

    products: list[int] = field(default_factory=lambda: [10_000, 100_000])
    intents: Annotated[int, Limits(1)] = 10
    dimension: Annotated[int, Limits(1)] = 384
    queries: Annotated[int, Limits(1)] = 200
    candidates: Annotated[int, Limits(1)] = 1000
    probes: Annotated[int, Limits(1)] = 32
    seed: Annotated[int, SEEDS] = 0
    threads: Annotated[int, THREADS] | None = None
    folder: str | None = None
    out: str = "results/ecomscript/align-speed.json"


def measure_speed(config: AlignSpeedConfig) -> list[dict[str, Any]]:
    """Measure each size and index, write them to ``config.out`` and show the table."""
    if min(config.products, default=0) < 1:
        raise ValueError(f"--products {config.products}: give sizes of 1 or more")
    measured: list[dict[str, Any]] = []
    for products in config.products:
        with TemporaryDirectory(dir=config.folder) as folder:
            parts = _apart(_write_intents, config, Path(folder), products)["parts"]
            averaging = _apart(_average, config, Path(folder), products, parts)
            for index in get_args(Index):
                found = _apart(_search, config, Path(folder), products, index)
                measured.append({"products": products, "index": index, "averaging": averaging, **found})
    out = Path(config.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, to_json({"settings": vars(config) | {"folder": None}, "measured": measured}))
    console = Console(highlight=False)
    console.width = max(console.width, 120)
    console.print(_table(measured))
    return measured


def _apart(work: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """What a function measures in a process of its own, with that process's peak of memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measured, work, *given).result()


def _measured(work: Callable[..., dict[str, Any]], config: AlignSpeedConfig, *given: Any) -> dict[str, Any]:
    import faiss

    threads = use_threads(config.threads)
    faiss.omp_set_num_threads(threads)
    before, started = _peak(), time.perf_counter()
    found = work(config, *given)
    seconds = round(time.perf_counter() - started, 2)
    return {"seconds": seconds, "threads": threads, **found, "mib_before": before, "mib_peak": _peak()}


def _peak() -> int:
    """The most memory that this process has held so far, mapped files that it has touched included, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _unit_vectors(chance: np.random.Generator, count: int, dimension: int) -> Vectors:
    vectors = chance.standard_normal((count, dimension), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _write_intents(config: AlignSpeedConfig, folder: Path, products: int) -> dict[str, Any]:
    """Files of vectors as the index stage leaves them; ``parts`` are (file, products)."""
    chance, parts = np.random.default_rng(config.seed), []
    for start in range(0, products, PART):
        count = min(PART, products - start)
        path = folder / f"{start:010}.npy"
        np.save(path, _unit_vectors(chance, count * config.intents, config.dimension))
        parts.append((path, count))
    return {"parts": parts}


def _average(config: AlignSpeedConfig, folder: Path, products: int, parts: list[tuple[Path, int]]) -> dict[str, Any]:
    sizes = [np.full(count, config.intents) for _, count in parts]
    mean_vectors([path for path, _ in parts], sizes, folder / MEANS)
    return {"intents": products * config.intents}


def _search(config: AlignSpeedConfig, folder: Path, products: int, index: Index) -> dict[str, Any]:
    """Seconds to build the index, a step with candidates, and a step against all; and what is found of what exact
    search finds."""
    means = np.load(folder / MEANS, mmap_mode="r")
    started = time.perf_counter()
    search: Search = Exact(means, AVERAGING)
    if index == "approximate":
        write_approximate(means, AVERAGING, folder / "index.faiss", config.seed)
        search = Approximate(folder / "index.faiss", config.probes)
    built = time.perf_counter() - started
    chance = np.random.default_rng(config.seed + 1)
    queries = _unit_vectors(chance, config.queries, config.dimension)
    count = min(config.candidates, products)
    among = [np.sort(chance.choice(products, count, replace=False)) for _ in queries]
    started = time.perf_counter()
    for query, rows in zip(queries, among, strict=True):
        search.among(query, rows, COUNT)
    filtered = time.perf_counter() - started
    started = time.perf_counter()
    found = search.everywhere(queries, COUNT)
    unfiltered = time.perf_counter() - started
    peak = _peak()  # before exact search is done once more to compare with
    right = found if index == "exact" else Exact(means, AVERAGING).everywhere(queries, COUNT)
    same = sum(len({row for row, _ in a} & {row for row, _ in b}) for a, b in zip(found, right, strict=True))
    return {
        "build_seconds": round(built, 2),
        "ms_with_candidates": round(1000 * filtered / config.queries, 3),
        "ms_whole_catalogue": round(1000 * unfiltered / config.queries, 3),
        "recall": round(same / sum(map(len, right)), 4),
        "mib_search": peak,
    }


def _table(measured: list[dict[str, Any]]) -> Table:
    shown = Table("products", "index", "averaging", "peak", "build", "a step: candidates", "all", "peak", "recall")
    for one in measured:
        mean = one["averaging"]
        shown.add_row(
            f"{one['products']:,}",
            one["index"],
            f"{mean['seconds']:.1f} s",
            f"{mean['mib_peak']:,} MiB",
            f"{one['build_seconds']:.1f} s",
            f"{one['ms_with_candidates']:.2f} ms",
            f"{one['ms_whole_catalogue']:.2f} ms",
            f"{one['mib_search']:,} MiB",
            f"{one['recall']:.3f}",
        )
    return shown
