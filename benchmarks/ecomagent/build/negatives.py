"""Exclusions: of one or two attributes, values that other products of the kind have and the target clearly has not.

They are chosen here, before anything is given a source, so that an exclusion always excludes something.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from benchmarks.ecomagent.build.features import Feature, is_clean
from benchmarks.ecomagent.catalogue import Product
from benchmarks.ecomagent.fields import EXCLUDABLE, MULTI_OPTION, named
from benchmarks.ecomagent.grading.attributes import negative_attribute
from benchmarks.ecomagent.tasks import RubricItem
from benchmarks.ecomagent.wording import forms

MOST_EXCLUDED = 2  # values of an attribute
MOST_NEGATIVES = 2  # attributes
LONGEST_EXCLUDED, MOST_EXCLUDED_WORDS = 40, 4


def negate(
    features: Sequence[Feature], product: Product, others: Iterable[Product], rng: random.Random
) -> list[Feature]:
    """The features with one or two of them turned into exclusions; unchanged where no attribute has alternatives.

    Args:
        others: products that the shopper might have bought instead.
    """
    alternatives = list(others)
    order = [feature for feature in features if feature.name in EXCLUDABLE]
    rng.shuffle(order)
    wanted = rng.randint(1, MOST_NEGATIVES)
    negated: dict[str, Feature] = {}
    for feature in order:
        if len(negated) == wanted:
            break
        if excluded := _excluded(feature.name, product, alternatives, rng):
            negated[feature.field] = Feature(feature.field, "negative_attribute", excluded, excluded)
    return [negated.get(feature.field, feature) for feature in features]


def _excluded(name: str, product: Product, alternatives: Sequence[Product], rng: random.Random) -> list[str]:
    """Up to two values that alternatives have, and that the product clearly differs from."""
    seen: dict[tuple[str, ...], str] = {}
    for other in alternatives:
        for _, text in named(other.details, name):
            for option in text.split(",") if name in MULTI_OPTION else [text]:
                value = " ".join(option.split())
                short = len(value) <= LONGEST_EXCLUDED and len(value.split()) <= MOST_EXCLUDED_WORDS
                if short and is_clean(value, name):
                    seen.setdefault(tuple(forms(value)), value)
    fit = [value for _, value in sorted(seen.items()) if negative_attribute(product, name, [value]).satisfied]
    return sorted(rng.sample(fit, min(len(fit), rng.randint(1, MOST_EXCLUDED))))


def excludes(item: RubricItem) -> bool:
    return item.type == "negative_attribute"
