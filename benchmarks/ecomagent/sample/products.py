"""From a family to its products, as records of Amazon Reviews 2023, with the untidiness of real catalogues.

A name is sometimes written as other shops write it, some attributes are missing, some have two values, some prices are
unknown, and beside what matters stand weights, ranks and dates.
"""

from __future__ import annotations

import base64
import hashlib
import math
import random
import re
from collections.abc import Mapping
from typing import Any

from benchmarks.ecomagent.fields import ALIASES
from benchmarks.ecomagent.sample.schema import Category, Family, fitting

OTHER_NAMES = {name: alias for alias, name in ALIASES.items()}
MAY_HAVE_TWO = ("Material", "Special Feature", "Material Feature", "Recommended Uses For Product", "Compatible Devices")
RESELLERS = ("Northgate Supply", "Everyday Depot", "Harbour Lane Trading", "Second Street Goods")
ENDINGS = (0.99, 0.95, 0.5, 0.0, 0.99)
MISSING, TWO, ALIASED, UNPRICED, UNDESCRIBED, RESOLD = 0.07, 0.15, 0.12, 0.12, 0.15, 0.12
SLOT = re.compile(r"\{([^}]+)\}")


def product(category: Category, family: Family, name: str, seed: int) -> tuple[dict[str, Any], dict[str, str]]:
    """(metadata record, all attributes as they really are) of one product; the same for the same seed."""
    source = random.Random(f"{seed}:{family.family}:{name}")
    brand, _, own_name = name.rpartition("|")
    brand = brand or source.choice(family.brands or category.brands)
    attributes = {"Brand": brand} | _attributes(family, source)
    values = frozenset(one for value in attributes.values() for one in value.split(", "))
    record = {
        "parent_asin": _identifier(family.family, name),
        "title": _title(family, {"brand": brand, "name": own_name} | attributes, source),
        "main_category": category.category,
        "average_rating": round(min(4.9, max(2.8, source.gauss(4.2, 0.45))), 1),
        "rating_number": int(10 ** source.uniform(0.9, 3.7)),
        "features": _features(family, values, source),
        "description": [] if source.random() < UNDESCRIBED else _description(family, values, source),
        "price": None if source.random() < UNPRICED else _price(family, source),
        "images": [],
        "videos": [],
        "store": _store(brand, source),
        "categories": [category.category, family.entity.title()],
        "details": _details(family, attributes, source),
        "bought_together": None,
    }
    return record, attributes


def _attributes(family: Family, source: random.Random) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for field, options in family.details.items():
        count = 2 if field in MAY_HAVE_TWO and len(options) > 2 and source.random() < TWO else 1
        chosen[field] = ", ".join(source.sample(options, count))
    for bundles in (family.sets, *family.pairs):
        chosen |= source.choice(bundles)
    return chosen


def _title(family: Family, words: Mapping[str, str], source: random.Random) -> str:
    """A template filled in; attributes of two values show the first. One piece is no "pack of 1"."""

    def value(slot: str) -> str:
        if slot in words:
            return words[slot].split(", ")[0]
        field = next(name for name in words if name.lower() == slot)
        return words[field].split(", ")[0].lower()

    known = {word.lower() for word in words}
    usable = [
        title
        for title in family.titles
        if all(slot.lower() in known for slot in SLOT.findall(title))
        and not ("{Number of Items}" in title and words.get("Number of Items") == "1")
    ]
    return SLOT.sub(lambda match: value(match[1]), source.choice(usable))


def _features(family: Family, values: frozenset[str], source: random.Random) -> list[str]:
    """Three to five: first what is special of this product, then what is true of all."""
    special = fitting(tuple(line for line in family.features if " >> " in line), values)
    always = [line for line in family.features if " >> " not in line]
    source.shuffle(special)
    source.shuffle(always)
    chosen = [*special[:3], *always][: source.randint(3, 5)]
    source.shuffle(chosen)
    return chosen


def _description(family: Family, values: frozenset[str], source: random.Random) -> list[str]:
    lines = fitting(family.description, values)
    return source.sample(lines, min(len(lines), source.randint(1, 2)))


def _price(family: Family, source: random.Random) -> float:
    low, high = (math.log(bound) for bound in family.price)
    return max(1, math.floor(math.exp(source.uniform(low, high)))) + source.choice(ENDINGS)


def _store(brand: str, source: random.Random) -> str:
    if source.random() < RESOLD:
        return source.choice(RESELLERS)
    return source.choice((brand, brand, brand, brand, f"{brand} Store"))


def _details(family: Family, attributes: Mapping[str, str], source: random.Random) -> dict[str, Any]:
    always = {"Brand"}.union(*(bundle for bundle in family.sets))
    kept = [name for name in attributes if name in always or source.random() >= MISSING]
    named = {
        OTHER_NAMES[name] if name in OTHER_NAMES and source.random() < ALIASED else name: attributes[name]
        for name in kept
    }
    beside = _beside(family, attributes["Brand"], source)
    entries = [*named.items(), *source.sample(list(beside.items()), source.randint(2, 4))]
    source.shuffle(entries)
    return dict(entries)


def _beside(family: Family, brand: str, source: random.Random) -> dict[str, Any]:
    """What catalogues tell as well and nobody asks for."""
    sides = " x ".join(f"{source.uniform(1, 20):.1f}" for _ in range(3))
    month = source.choice(("January", "March", "April", "June", "August", "October", "November"))
    return {
        "Product Dimensions": f"{sides} inches",
        "Item Weight": f"{source.uniform(1, 60):.1f} ounces",
        "Manufacturer": brand,
        "Item model number": f"{brand[:2].upper()}-{source.randint(100, 9999)}",
        "Date First Available": f"{month} {source.randint(1, 28)}, {source.randint(2017, 2023)}",
        "Best Sellers Rank": {family.entity.title(): source.randint(3, 90000)},
        "Is Discontinued By Manufacturer": "No",
    }


def _identifier(*parts: str) -> str:
    """Ten characters as product ids have them, with a beginning that no real one has."""
    digest = hashlib.sha256("|".join(parts).encode()).digest()
    return "EJ" + base64.b32encode(digest).decode()[:8]
