"""Stage 2: what a product can be asked for, with values that are fit to be asked for.

A feature is one detail (or number) of a product with the value that a task will require. Values that no shopper would
ask for (markup, part numbers, cut-off texts, denials) are left out, and so is a number that the title contradicts.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from benchmarks.ecomagent.build.intents import Intent
from benchmarks.ecomagent.catalogue import Product
from benchmarks.ecomagent.fields import CANONICAL, MULTI_OPTION, named
from benchmarks.ecomagent.grading.attributes import attribute_match
from benchmarks.ecomagent.tasks import ItemType
from benchmarks.ecomagent.wording import UNITS, forms

LONGEST_VALUE = 120
LONGEST_OPTION, MOST_OPTION_WORDS = 40, 4
BARE_NUMBERS = ("Number of Items", "Screen Size")
RATING_STEP, LOWEST_RATING, FEWEST_RATINGS = 0.5, 1.0, 10
RATING_COUNTS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
PRICES = (5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
PRICE_STEP = 50
KEPT = {"details.Brand": 0.2, "average_rating": 0.3, "rating_number": 0.2, "price": 0.4}
CAPACITIES = ("RAM", "Memory Storage Capacity", "Hard Drive")

_DIRTY = re.compile(
    r"see (?:more|less)|https?:|www\.|&[a-z]+;|&#\d+;|›|»|-[a-z]\d{2}\b|[\U0001f000-\U0001faff\u2600-\u27bf]",
    re.IGNORECASE,
)
_ASIN = re.compile(r"B0[A-Z0-9]{8}")
_OPTION = re.compile(r"\s*[,/|]\s*")


@dataclass(frozen=True)
class Feature:
    """Something that a task requires: ``expected`` as its rubric says it, ``bare`` as the task file lists it."""

    field: str
    type: ItemType
    expected: Any
    bare: Any

    @property
    def name(self) -> str:
        """The attribute's canonical name, or the field's where it is none."""
        return self.field.removeprefix("details.")


def extract(product: Product, rng: random.Random) -> list[Feature]:
    """Every feature of a product, one value each, in the order of the canonical names, numbers last."""
    found = [
        Feature(f"details.{name}", "attribute_match", value, value)
        for name in CANONICAL
        if (value := _value(product, name, rng)) is not None
    ]
    return [*_consistent(found, product), *numeric(product)]


def _value(product: Product, name: str, rng: random.Random) -> str | None:
    """The value that a detail is asked for with; None where it has none that is fit."""
    for _, text in named(product.details, name):
        options = [text]
        if name in MULTI_OPTION:
            options = [option for option in _OPTION.split(text) if _is_short(option)]
            rng.shuffle(options)
        for option in options:
            value = " ".join(option.split())
            # What grading would not find again in the product itself is no requirement.
            if is_clean(value, name) and attribute_match(product, name, value).satisfied:
                return value
    return None


def _is_short(option: str) -> bool:
    return 0 < len(option) <= LONGEST_OPTION and len(option.split()) <= MOST_OPTION_WORDS


def is_clean(value: str, name: str) -> bool:
    """Whether a value is one that a shopper could ask for."""
    words = forms(value)
    if not words or len(value) > LONGEST_VALUE or _DIRTY.search(value) or _ASIN.search(value):
        return False
    if value.replace(".", "").isdigit() and (name not in BARE_NUMBERS or value == "1"):
        return False
    if any(value.count(a) != value.count(b) for a, b in ("()", "[]", "{}")) or words[0] in ("not", "no"):
        return False
    # "4*Charger+4*6FT Cable", "V30+": arithmetic and model codes, not attributes.
    if re.search(r"[*+=<>~^_\\]", value):
        return False
    return len(set(words)) * 2 > len(words)  # "Red Red Red" repeats itself


def _consistent(features: list[Feature], product: Product) -> Iterator[Feature]:
    """Features that neither repeat another's value nor contradict the title in a capacity."""
    capacities: dict[str, tuple[str, ...]] = {}
    for feature in features:
        if feature.name in CAPACITIES:
            form = tuple(forms(feature.expected))
            if form in capacities.values() or _contradicts(product.title, feature.expected):
                continue
            capacities[feature.name] = form
        yield feature


def _contradicts(title: str, value: str) -> bool:
    """Whether a title names amounts in the value's unit, but never this one."""
    amounts, wanted = _amounts(title), _amounts(value)
    same_unit = {amount for amount in amounts if amount[1] in {unit for _, unit in wanted}}
    return bool(same_unit) and not wanted & same_unit


def _amounts(text: str) -> set[tuple[str, str]]:
    return {(number, unit) for number, unit in pairwise(forms(text)) if number[0].isdigit() and unit in UNITS}


def numeric(product: Product) -> Iterator[Feature]:
    """The numbers of a product as round bounds that it keeps."""
    if product.average_rating is not None and product.average_rating >= LOWEST_RATING:
        floor = math.floor(product.average_rating / RATING_STEP) * RATING_STEP
        yield Feature("average_rating", "numeric_range", {"min": floor}, floor)
    if product.rating_number >= FEWEST_RATINGS:
        count = max(bound for bound in RATING_COUNTS if bound <= product.rating_number)
        yield Feature("rating_number", "numeric_range", {"min": count}, count)
    if product.price is not None:
        cap = price_cap(product.price)
        yield Feature("price", "numeric_range", {"value": cap, "op": "<"}, cap)


def price_cap(price: float) -> int:
    """The next round price above: the published list takes an equal one, of which the target then is not below."""
    above = (bound for bound in PRICES if bound > price)
    return next(above, (math.floor(price / PRICE_STEP) + 1) * PRICE_STEP)


def choose(
    features: list[Feature], intent: Intent, used: Mapping[str, int], most: int, rng: random.Random
) -> list[Feature]:
    """Up to ``most`` features of a task: the five fields least used so far, then others by chance.

    ``rating_quality`` always keeps the ratings, which are what it asks for; a coupon task has a budget and no price.
    """
    always = ("average_rating", "rating_number") if intent.name == "rating_quality" else ()
    never = ("price",) if intent.name == "coupon_budget" else ()
    kept = [
        feature
        for feature in features
        if feature.field not in never and (rng.random() < KEPT.get(feature.field, 1.0) or feature.field in always)
    ]
    rng.shuffle(kept)
    kept.sort(key=lambda feature: used.get(feature.field, 0))
    rest = kept[5:]
    rng.shuffle(rest)
    chosen = [*kept[:5], *rest]
    chosen.sort(key=lambda feature: feature.field not in always)
    return chosen[:most]
