"""What people are to judge: items drawn for each of the three judgments, as unlabelled records.

A script, a step with one of its aligned products, a script with the products of its steps: each is drawn evenly from
all there are, without replacement. Nothing is made wrong on purpose; both labels come from people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.ecomscript.build.config import AnnotationConfig
from benchmarks.ecomscript.build.tables import Row, Rows
from recipes.base import Product, Record
from recipes.holistic_verify import HolisticRecord, PlannedStep
from recipes.script_verify import ScriptRecord
from recipes.step_product import StepProductRecord

ITEM_SCHEMA = pa.schema({"id": pa.string(), "record": pa.string()})
Ints = NDArray[np.int64]


def draw(judgment: str, aligned: Rows, products: Rows, config: AnnotationConfig, seed: int) -> list[Record]:
    """Up to ``config.items`` records of a judgment, in the order of the scripts; fewer where there are fewer."""
    # Judgments are drawn independently: what is annotated for one says nothing of what is for another.
    chance = np.random.default_rng([seed, list(DRAWN).index(judgment)])
    return list(DRAWN[judgment](aligned, products, config, chance))


def _scripts(aligned: Rows, products: Rows, config: AnnotationConfig, chance: np.random.Generator) -> Iterator[Record]:
    for place in _some(np.arange(len(aligned)), config.items, chance):
        row = _row(aligned, int(place))
        yield ScriptRecord(id=row["id"], goal=row["goal"], script=row["steps"], group=row["id"])


def _pairs(aligned: Rows, products: Rows, config: AnnotationConfig, chance: np.random.Generator) -> Iterator[Record]:
    """Steps with a product each: of every (script, step, product) as likely as any other."""
    ends = np.cumsum(_product_counts(aligned))
    for number in _some(np.arange(ends[-1] if len(ends) else 0), config.items, chance):
        place = int(np.searchsorted(ends, number, side="right"))
        row = _row(aligned, place)
        pairs = [(step, found) for step, one in enumerate(row["products"]) for found in one]
        step, found = pairs[int(number) - (int(ends[place - 1]) if place else 0)]
        yield StepProductRecord(
            id=f"{row['id']}#{step + 1}#{found['product']}",
            goal=row["goal"],
            step=row["steps"][step],
            product=_product(products, found["row"]),
            group=row["id"],
            meta={"similarity": found["similarity"]},
        )


def _plans(aligned: Rows, products: Rows, config: AnnotationConfig, chance: np.random.Generator) -> Iterator[Record]:
    """Scripts of which at least one step has a product; a step shows its best ``config.shown`` products."""
    for place in _some(np.flatnonzero(_product_counts(aligned)), config.items, chance):
        row = _row(aligned, int(place))
        steps = tuple(
            PlannedStep(step=step, products=tuple(_product(products, one["row"]) for one in found[: config.shown]))
            for step, found in zip(row["steps"], row["products"], strict=True)
        )
        yield HolisticRecord(id=row["id"], goal=row["goal"], script=steps, group=row["id"])


DRAWN: dict[str, Callable[[Rows, Rows, AnnotationConfig, np.random.Generator], Iterator[Record]]] = {
    "script_verify": _scripts,
    "step_product": _pairs,
    "holistic_verify": _plans,
}


def item_row(record: Record) -> Row:
    return {"id": record.id, "record": record.model_dump_json(exclude_defaults=True)}


def _some(places: Ints, count: int, chance: np.random.Generator) -> Ints:
    """``count`` of the places, in their order."""
    return np.sort(chance.choice(places, min(count, len(places)), replace=False))


def _product_counts(aligned: Rows) -> Ints:
    """How many products the steps of each script have together; no Python object a script is made for it."""
    per_step = pc.list_value_length(pc.list_flatten(aligned.column("products")))
    steps = np.asarray(pc.list_value_length(aligned.column("products")))
    sums = np.concatenate([[0], np.cumsum(np.asarray(per_step))])
    ends = np.cumsum(steps)
    return np.asarray(sums[ends] - sums[ends - steps], np.int64)


def _row(table: Rows, place: int) -> Row:
    return table.read(place, place + 1)[0]


def as_product(row: Row) -> Product:
    """A row of the products as a record shows it: without its intents, which are learned from and not judged by."""
    shown = {name: value for name, value in row.items() if value is not None and name != "intents"}
    return Product.model_validate(shown)


def _product(products: Rows, place: int) -> Product:
    return as_product(_row(products, place))
