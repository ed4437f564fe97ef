"""Stage 4: the rubric, compiled from features and their sources; ids and values are final, words come later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.ecomagent.build.features import Feature
from benchmarks.ecomagent.build.intents import Intent
from benchmarks.ecomagent.build.kinds import Kind
from benchmarks.ecomagent.build.partition import Split
from benchmarks.ecomagent.catalogue import Product
from benchmarks.ecomagent.tasks import RubricItem, Source, Voucher
from benchmarks.ecomagent.wording import find


@dataclass(frozen=True)
class Plan:
    """Everything that a task means. Query items have no words yet (`surface` of the language stage gives them).

    Attributes:
        features: what was extracted and chosen, before the split.
        implicit: ids of the query items that are to be hinted at.
    """

    id: str
    intent: Intent
    product: Product
    kind: Kind
    features: tuple[Feature, ...]
    split: Split
    voucher: Voucher | None
    items: tuple[RubricItem, ...]
    implicit: tuple[str, ...]

    def told_by(self, source: Source) -> tuple[RubricItem, ...]:
        return tuple(item for item in self.items if item.info_source == source)

    @property
    def explicit(self) -> tuple[RubricItem, ...]:
        """Query items that are said plainly."""
        return tuple(item for item in self.told_by("query") if item.id not in self.implicit)


@dataclass(frozen=True)
class Words:
    """What the language stage writes: the query, which words of it say each query item, and the scripted answers."""

    query: str
    surfaces: dict[str, str]
    replies: dict[str, str] = field(default_factory=dict)


Faults = Callable[[Words], list[str]]
"""What the gate in code finds wrong with words."""


@dataclass(frozen=True)
class Written:
    """Words that passed the gate, and how many tries were refused before; or None, and what was wrong with the last."""

    words: Words | None
    refused: int
    problem: str = ""


def compile_plan(
    name: str,
    intent: Intent,
    product: Product,
    kind: Kind,
    features: Sequence[Feature],
    split: Split,
    voucher: Voucher | None,
) -> Plan:
    """The plan of a task. Ids run without gaps: query, persona, clarification, then the budget, the kind last."""
    items: list[RubricItem] = []
    sources: tuple[tuple[Source, Sequence[Feature]], ...] = (
        ("query", split.query),
        ("persona", split.persona),
        ("clarification", split.clarification),
    )
    implicit = []
    for source, told in sources:
        for feature in told:
            item_id = f"r{len(items) + 1}"
            items.append(_item(item_id, feature, source))
            if source == "query" and feature.field in split.implicit:
                implicit.append(item_id)
    if voucher is not None:
        budget = Feature("budget", "budget_match", voucher.budget, voucher.budget)
        items.append(_item(f"r{len(items) + 1}", budget, "query"))
    entity = {"canonical_entity": kind.name, "title_span": kind.span}
    entity_item = _item(f"r{len(items) + 1}", Feature("title", "entity_match", kind.name, kind.name), "query")
    items.append(entity_item.model_copy(update=entity))
    return Plan(name, intent, product, kind, tuple(features), split, voucher, tuple(items), tuple(implicit))


def _item(item_id: str, feature: Feature, source: Source) -> RubricItem:
    description = "" if source == "query" else describe(feature)
    return RubricItem(
        id=item_id,
        type=feature.type,
        field=feature.field,
        expected_value=feature.expected,
        description=description,
        info_source=source,
    )


def values_of(item: RubricItem) -> list[str]:
    """The values of a requirement as texts: what words that say it must have, and what hidden ones must not."""
    expected = item.expected_value
    if isinstance(expected, list | tuple):
        return list(expected)
    if isinstance(expected, dict):
        return [f"{expected.get('value', expected.get('min')):g}"]
    return [f"{expected:.2f}"] if isinstance(expected, float) else [str(expected)]


def says_values(item: RubricItem, text: str) -> bool:
    """Whether a text has every value of a requirement, word by word."""
    return all(any(find(text, value)) for value in values_of(item))


def describe(feature: Feature) -> str:
    """A hidden requirement in a sentence, as the rubric has it."""
    expected: Any = feature.expected
    if feature.type == "negative_attribute":
        return f"The product's {feature.name} must clearly differ from {' and '.join(map(repr, expected))}"
    if feature.type == "attribute_match":
        return f"The product's {feature.name} must be or contain {expected!r}"
    if feature.field == "price":
        return f"The product must cost less than ${expected['value']}"
    number = "an average rating" if feature.field == "average_rating" else "a number of ratings"
    return f"The product must have {number} of at least {expected['min']:g}"
