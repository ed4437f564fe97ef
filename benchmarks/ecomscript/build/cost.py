"""What a construction of any size would cost, by the rates of one that was made.

Each stage's manifest says how many rows it read in its last run, in how many seconds, and how many tokens they took. In
a larger construction rows grow with the reviews (goals, scripts, needs, keywords, alignment) or the products (intents,
index), at the same share of rows kept; time and tokens grow with the rows, and time falls with the processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table

from benchmarks.ecomscript.build.mining import MININGS
from benchmarks.ecomscript.build.stages import read_manifest
from models.limits import Limits

PER_PRODUCT = ("intents", "index")
STAGES = (*(mining.name for mining in MININGS), "index", "align")


@dataclass(frozen=True)
class CostConfig:
    """Project the cost of a construction from one that was made.

    Attributes:
        built: the folder of a construction whose stages have ended, up to align.
        products: of the larger one.
        reviews: of the larger one, behind the filter.
        processes: that work on it, each as fast as one was here.
    """

    built: str
    products: Annotated[int, Limits(1)] = 2_400_000
    reviews: Annotated[int, Limits(1)] = 3_700_000
    processes: Annotated[int, Limits(1)] = 1


@dataclass(frozen=True)
class Cost:
    """A stage's rows in the larger construction, the rate at which they were made (None where nothing was measured),
    hours, and tokens."""

    stage: str
    rows: float
    rate: float | None
    hours: float | None
    tokens: float


def project(config: CostConfig) -> list[Cost]:
    """The cost of each stage.

    Raises FileNotFoundError where a stage has not ended.
    """
    folder = Path(config.built)
    ingested = _manifest(folder, "ingest")
    grown = {
        "products": config.products / ingested["products"]["kept"],
        "reviews": config.reviews / ingested["reviews"]["kept"],
    }
    costs = []
    for stage in STAGES:
        found = _manifest(folder, stage)
        times = grown["products" if stage in PER_PRODUCT else "reviews"]
        rows, ran = found["read"] * times, found["cost"]
        # A process's own rate: those of a run with several are divided.
        rate = ran["rows"] / ran["seconds"] / ran["processes"] if ran["rows"] and ran["seconds"] else None
        hours = None if rate is None else rows / rate / config.processes / 3600
        costs.append(Cost(stage, rows, rate, hours, found["tokens"] * times))
    return costs


def show_cost(config: CostConfig) -> None:
    """Print the projection as a table."""
    title = f"{config.products:,} products, {config.reviews:,} reviews, processes: {config.processes}"
    table = Table("stage", "rows", "rows a second", "hours", "million tokens", title=title)
    costs = project(config)
    for cost in costs:
        rate, hours = (f"{value:,.1f}" if value is not None else "-" for value in (cost.rate, cost.hours))
        table.add_row(cost.stage, f"{cost.rows:,.0f}", rate, hours, f"{cost.tokens / 1e6:,.0f}")
    total = sum(cost.hours or 0 for cost in costs)
    table.add_row("all", "", "", f"{total:,.1f}", f"{sum(cost.tokens for cost in costs) / 1e6:,.0f}")
    Console(highlight=False).print(table)


def _manifest(folder: Path, stage: str) -> dict[str, Any]:
    found = read_manifest(folder / stage)
    if "files" not in found:
        raise FileNotFoundError(f"{folder / stage}: the stage has not ended; build up to align first")
    return found
