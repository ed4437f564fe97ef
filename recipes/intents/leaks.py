"""Keeping what a judge is examined on out of what it is told: no product of an evaluation set, and no intent that is
the very text which one of its records asks about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipes.base import Product, Record
from recipes.intents.judgment import IntentRecord, text_key

FEWEST_WORDS = 3  # of a text that counts as the same: fewer stand at the end of many a sentence
BOND = re.compile(r"^(because|so that as a result) (they want to )?")


@dataclass(frozen=True)
class Leaks:
    """The intents that tell of an evaluation set: ``products`` (title -> the set's name) and ``intents`` likewise."""

    products: dict[str, str]
    intents: dict[str, str]
    clean: list[IntentRecord]

    def sentence(self) -> str:
        """What leaks, with the first of each kind by name; empty where nothing does."""
        told = []
        for found, what in ((self.products, "products"), (self.intents, "intents")):
            if found:
                shown = "; ".join(f"{text!r} ({name})" for text, name in list(found.items())[:5])
                told.append(f"{len(found)} {what} are also in what is to be judged: {shown}{' ...' * (len(found) > 5)}")
        return ". ".join(told)


def find_leaks(known: Sequence[IntentRecord], judged: Mapping[str, Sequence[Record]]) -> Leaks:
    """What of the intents tells of the records that are to be judged.

    Args:
        judged: the evaluation sets by the name that a person gave them.
    """
    titles: dict[str, str] = {}
    asked: dict[str, str] = {}
    for name, records in judged.items():
        for record in records:
            for product in products_of(record):
                titles.setdefault(text_key(product.title), name)
            for text in texts_of(record):
                words = text_key(text).split()
                for start in range(len(words) - FEWEST_WORDS + 1):
                    asked.setdefault(" ".join(words[start:]), name)
    leaks = Leaks({}, {}, [])
    for one in known:
        title, intent = text_key(one.product.title), BOND.sub("", text_key(one.intent))
        if intent in asked:
            leaks.intents.setdefault(one.intent, asked[intent])
        elif title in titles:
            leaks.products.setdefault(one.product.title, titles[title])
        else:
            leaks.clean.append(one)
    return leaks


def products_of(record: Any) -> Iterator[Product]:
    """Every product that a record of any judgment shows; none in a bare script."""
    if isinstance(product := getattr(record, "product", None), Product):
        yield product
    for step in getattr(record, "script", ()):
        yield from getattr(step, "products", ())


def texts_of(record: Any) -> Iterator[str]:
    """The record's goal and its steps."""
    yield record.goal
    if isinstance(step := getattr(record, "step", None), str):
        yield step
    for step in getattr(record, "script", ()):
        yield step if isinstance(step, str) else step.step
