"""Purchase intents beside the products that a judgment shows."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

from recipes.base import Judgment, Product, Record
from recipes.intents.judgment import IntentRecord, text_key
from recipes.intents.leaks import find_leaks
from recipes.intents.reading import read_intents

R = TypeVar("R", bound=Record)
Known = dict[str, tuple[str, ...]]


def read_beside(judgment: Judgment[Any], references: Sequence[str], judged: Sequence[Record]) -> list[IntentRecord]:
    """Purchase intents from files, to be shown beside the products of records that are to be judged.

    Raises ValueError where the judge reads none, or where an intent is the very text of a goal or step to be judged.
    """
    if not judgment.intents:
        raise ValueError("intents: the judge was not taught with purchase intents beside products; leave them out")
    known, _ = read_intents(references)
    if said := find_leaks(known, {"the records": judged}).intents:
        raise ValueError(f"intents: {len(said)} say what is to be judged, first {next(iter(said))!r}; take them out")
    return known


def by_product(known: Sequence[IntentRecord]) -> Known:
    """The right intents of each product, by the key of its title."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for one in known:
        if one.label == 1:
            found[text_key(one.product.title)].append(one.intent)
    return {title: tuple(intents) for title, intents in found.items()}


def with_known(records: Sequence[R], known: Known, hidden: float = 0.0, seed: int = 0) -> list[R]:
    """The records with what is known of their products; a product's own intents stay, one that nobody knows has none.

    Args:
        hidden: the share of the records, drawn by the seed, that get nothing: a judge that will meet unknown products
            must have learned from some.
    """
    if not known:
        return list(records)
    rng = random.Random(f"{seed}:hidden")
    return [record if rng.random() < hidden else _told(record, known) for record in records]


def _told(record: R, known: Known) -> R:
    shown: Any = record
    if hasattr(shown, "product"):
        return record.model_copy(update={"product": _knowing(shown.product, known)})
    steps = [
        step.model_copy(update={"products": tuple(_knowing(product, known) for product in step.products)})
        for step in shown.script
    ]
    return record.model_copy(update={"script": tuple(steps)})


def _knowing(product: Product, known: Known) -> Product:
    intents = product.intents or known.get(text_key(product.title), ())
    return product.model_copy(update={"intents": intents})
