"""Numeric requirements: ratings, number of ratings, price, or the number in a detail."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.ecomagent.catalogue import Product
from benchmarks.ecomagent.fields import named
from benchmarks.ecomagent.grading.verdict import Verdict

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "=": operator.eq,
}
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


def bounds(expected: Any) -> list[tuple[str, float]]:
    """What a number must be, as comparisons that must all hold: a scalar exactly, min, max and pairs inclusively."""
    if isinstance(expected, Mapping):
        if "value" in expected:
            return [(expected.get("op", "=="), expected["value"])]
        sides = ((">=", expected.get("min")), ("<=", expected.get("max")))
        return [(sign, bound) for sign, bound in sides if bound is not None]
    if isinstance(expected, list | tuple):
        return [(">=", expected[0]), ("<=", expected[1])]
    return [("==", expected)]


def numeric_range(product: Product, field: str, expected: Any) -> Verdict:
    """Whether a number of the product lies where it is asked to; an unknown number does not."""
    value = number_of(product, field)
    if value is None:
        return Verdict(False, f"the product has no {field}", None)
    asked = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds(expected))
    met = all(COMPARE[sign](value, bound) for sign, bound in bounds(expected))
    return Verdict(met, f"{field} is {value:g}, asked for {asked}", field)


def number_of(product: Product, field: str) -> float | None:
    """The number that a field holds; of a detail, the first in its text."""
    if field in ("price", "average_rating", "rating_number"):
        value = getattr(product, field)
        return None if value is None else float(value)
    for _, text in named(product.details, field.removeprefix("details.")):
        if match := _NUMBER.search(text):
            return float(match[0].replace(",", ""))
    return None
