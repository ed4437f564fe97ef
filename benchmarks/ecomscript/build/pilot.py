"""Why products are aligned by intents: a step as a search query against alignment, where the right products are known.

The catalogue is the shipped sample's: every product that fits some step. For each step that needs a purchase, three
products are found in four ways; a hit is a step among whose three is one that the sample lists for it. The sample's
words and intents were written by the same hands, so that this compares ways on one catalogue, not on others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.ecomscript.build.align import Exact, Hit, kept
from benchmarks.ecomscript.build.config import Averaging
from benchmarks.ecomscript.build.index import WORDS, Words, embedded_text, index_words, means_of
from benchmarks.ecomscript.build.mining import INTENT_SCHEMA
from benchmarks.ecomscript.build.pilot_report import pilot_page
from benchmarks.ecomscript.build.tables import Row, Rows, write_table
from benchmarks.results import to_json, write_text
from models.checkpoint import resolve
from models.embedding import Embedder
from models.limits import SEEDS, THREADS, Limits
from models.runtime import this_process, use_threads
from recipes.intervals import ratio
from recipes.sample.schema import load_departments
from recipes.sample.variants import as_product

SEARCH, TEXT = "search", "text"
WAYS = {
    SEARCH: "the step's words as a query, full-text search (bm25) over title, features and category",
    TEXT: "cosine of the step with the product's own text",
    "cosine_of_mean": "cosine of the step with the mean of the product's intents",
    "mean_of_cosines": "mean of the step's cosines with the product's intents",
}


@dataclass(frozen=True)
class PilotConfig:
    """Compare search and intent alignment on the shipped sample's catalogue.

    Attributes:
        embedder: the sentence encoder: a packaged name, a folder, or a hub id.
        products: found for each step.
        threshold: the similarity from which alignment keeps a product; told beside, and not applied to the hit rate.
        resamples: bootstrap resamples of the goals.
        seed: fixes the resamples and the examples that are shown.
        out: the folder of the report.
    """

    embedder: str = "minilm"
    products: Annotated[int, Limits(1)] = 3
    threshold: Annotated[float, Limits(-1, 1)] = 0.45
    resamples: Annotated[int, Limits(1)] = 2000
    seed: Annotated[int, SEEDS] = 0
    threads: Annotated[int, THREADS] | None = None
    out: str = "results/ecomscript/pilot"


@dataclass(frozen=True)
class Step:
    """A step that needs a purchase; ``right`` are the rows of the products that the sample lists for it."""

    goal: str
    group: str
    text: str
    right: frozenset[int]


def pilot(config: PilotConfig) -> dict[str, Any]:
    """Run the comparison, write ``pilot.json`` and ``report.html``, and show the table."""
    use_threads(config.threads)
    out = Path(config.out)
    out.mkdir(parents=True, exist_ok=True)
    steps, products = sample_catalogue()
    embedder = Embedder(resolve(config.embedder), device=this_process().device)
    found = find(steps, products, embedder, config.products, out)
    results = {
        "steps": len(steps),
        "goals": len({step.group for step in steps}),
        "products": len(products),
        "encoder": embedder.facts,
        "settings": {key: getattr(config, key) for key in ("products", "threshold", "resamples", "seed")},
        "ways": {name: measure(steps, hits, found[SEARCH], config) for name, hits in found.items()},
    }
    write_text(out / "pilot.json", to_json(results))
    write_text(out / "report.html", pilot_page(results, WAYS, _examples(steps, products, found, config.seed)))
    Console(highlight=False).print(_table(results))
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"{out}: report.html, pilot.json")
    return results


def sample_catalogue() -> tuple[list[Step], list[Row]]:
    """The steps that need a purchase, and all products that fit one, with their intents."""
    steps: list[Step] = []
    products: list[Row] = []
    for goal in (goal for department in load_departments() for goal in department.goals):
        for step in goal.steps:
            if step.needs_purchase:
                rows = frozenset(range(len(products), len(products) + len(step.products)))
                steps.append(Step(goal.goal, goal.id, step.step, rows))
            for product in step.products:
                fields = as_product(product).model_dump()
                products.append({**fields, "id": str(len(products)), "intents": list(product.intents)})
    return steps, products


def find(
    steps: Sequence[Step], products: Sequence[Row], embedder: Embedder, count: int, folder: Path
) -> dict[str, list[list[Hit]]]:
    """The best ``count`` products of each step, by way; ``folder`` takes the word index."""
    write_table(folder / "products.parquet", list(products), INTENT_SCHEMA)
    index_words(Rows(folder / "products.parquet"), folder / WORDS)
    words, queries = Words(folder / WORDS), embedder.embed([step.text for step in steps])
    sizes = np.array([len(product["intents"]) for product in products])
    intents = embedder.embed([embedded_text(intent) for product in products for intent in product["intents"]])
    texts = embedder.embed([_text(product) for product in products])
    searched = [words.search(re.findall(r"\w+", step.text), count) for step in steps]
    averagings: tuple[Averaging, ...] = get_args(Averaging)
    return {
        SEARCH: [[(row, 0.0) for row in rows] for rows in searched],
        TEXT: Exact(texts, "mean_of_cosines").everywhere(queries, count),
        **{each: Exact(means_of(intents, sizes), each).everywhere(queries, count) for each in averagings},
    }


def measure(
    steps: Sequence[Step], hits: Sequence[Sequence[Hit]], searched: Sequence[Sequence[Hit]], config: PilotConfig
) -> dict[str, Any]:
    """Hit rate, its difference to search (paired by step), and what the threshold would keep, with 95 % intervals over
    goals."""
    groups = [step.group for step in steps]
    own, other = _outcomes(steps, hits), _outcomes(steps, searched)
    above = [[*kept(found, config.threshold)] for found in hits]
    ones = np.ones(len(steps))
    drawn = (config.resamples, config.seed)
    return {
        "hit_rate": asdict(ratio(own, ones, groups, *drawn)),
        "difference": asdict(ratio(own - other, ones, groups, *drawn)),
        "with_products": float(np.mean([bool(found) for found in above])),
        "hit_rate_above": asdict(ratio(_outcomes(steps, above), ones, groups, *drawn)),
    }


def _outcomes(steps: Sequence[Step], hits: Sequence[Sequence[Hit]]) -> Any:
    """1 where one of a step's hits is right, else 0; [steps]."""
    return np.array([any(row in step.right for row, _ in found) for step, found in zip(steps, hits, strict=True)], int)


def _text(product: Row) -> str:
    return ". ".join([product["title"], *(product["features"] or ()), product["category"] or ""])


def _examples(
    steps: Sequence[Step], products: Sequence[Row], found: Mapping[str, list[list[Hit]]], seed: int, count: int = 8
) -> list[dict[str, Any]]:
    """Some steps with what search and alignment find for them."""
    chosen = sorted(np.random.default_rng(seed).choice(len(steps), min(count, len(steps)), replace=False))
    return [
        {
            "goal": steps[place].goal,
            "step": steps[place].text,
            **{
                way: [(products[row]["title"], row in steps[place].right) for row, _ in found[way][place]]
                for way in (SEARCH, "cosine_of_mean")
            },
        }
        for place in chosen
    ]


def _table(results: Mapping[str, Any]) -> Table:
    title = f"{results['steps']} steps of {results['goals']} goals, {results['products']} products"
    shown = Table("way", "hit rate at 3", "less search", "steps with products", "hit rate above", title=title)
    for name, one in results["ways"].items():
        more = ["-", "-"] if name == SEARCH else [f"{one['with_products']:.3f}", _cell(one["hit_rate_above"])]
        shown.add_row(name, _cell(one["hit_rate"]), "-" if name == SEARCH else _cell(one["difference"]), *more)
    return shown


def _cell(interval: Mapping[str, float]) -> str:
    return f"{interval['value']:.3f} [{interval['low']:.3f}, {interval['high']:.3f}]"
