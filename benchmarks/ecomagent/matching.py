"""How well a product meets what a rule-based agent knows: values that texts name, numbers that they bound."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.ecomagent.fields import AVOID_KEY, CANONICAL, PERSONA_KEYS, canonical
from benchmarks.ecomagent.wording import says

VOUCHER_AT_MOST = 1.5  # a price may be so many times the budget before a voucher
FIELD_OF = {key: name for name, key in PERSONA_KEYS.items()}
_PRICE = re.compile(r"(?:less than|cheaper than|under|below|at most)\s*\$(\d+(?:\.\d+)?)")
_COUNT = re.compile(r"at least (\d+) (?:ratings|people)")
_STARS = re.compile(r"(\d(?:\.\d)?) stars")
_QUOTED = re.compile(r'"([^"]+)"')
_DENIAL = re.compile(r"[^.?!]*\b(?:not|no|never|without)\b[^.?!]*")


@dataclass
class Wishes:
    """What an agent knows: the query, and where it asked, the profile's requirements and the shopper's answers."""

    query: str
    profile: dict[str, Any] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)

    @property
    def quoted(self) -> list[str]:
        """What the query wants to read in reviews."""
        return _QUOTED.findall(self.query)


def score(wishes: Wishes, product: Mapping[str, Any]) -> float:
    """How much of what is known a product meets. A hidden wish weighs more than a word of the query."""
    denied = " ".join(_DENIAL.findall(wishes.query))
    wanted = _QUOTED.sub("", wishes.query)
    met = 0.0
    for _, value in values(product):
        met += says(wanted, value) - 2 * says(denied, value)
        met += 3 * any(says(answer, value) for answer in wishes.answers)
    met += sum(3 * meets_profile(product, key, value) for key, value in wishes.profile.items())
    for text in (wanted, *wishes.answers):
        met -= sum(2 for broken in bounds_broken(text, product) if broken)
    return met


def values(product: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(canonical name, one value) of a product's details that tasks ask for."""
    for key, text in product["details"].items():
        name = canonical(key)
        if name in CANONICAL and isinstance(text, str):
            yield from ((name, value) for value in re.split(r"\s*[,/|]\s*", text) if value)


def meets_profile(product: Mapping[str, Any], key: str, wanted: Any) -> float:
    """1 where a product meets a requirement of a profile, -1 where it has what is to be avoided, else 0."""
    if key == AVOID_KEY:
        avoided = [entry.split(": ", 1) for entry in wanted]
        return -float(any(name == has and says(value, bad) for name, bad in avoided for has, value in values(product)))
    name = FIELD_OF.get(key)
    return float(any(has == name and says(value, str(wanted)) for has, value in values(product)))


def bounds_broken(text: str, product: Mapping[str, Any]) -> Iterator[bool]:
    """For each number that a text sets as a bound, whether a product breaks it."""
    if found := _PRICE.search(text):
        yield (
            product.get("price") is None
            or product["price"] >= 1.5 * float(found[1])
            or ("voucher" not in text and product["price"] >= float(found[1]))
        )
    if found := _COUNT.search(text):
        yield (product.get("rating_number") or 0) < int(found[1])
    if found := _STARS.search(text):
        yield (product.get("average_rating") or 0) < float(found[1])
