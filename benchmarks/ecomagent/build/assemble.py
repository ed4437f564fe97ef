"""From one product to one task, stage by stage; a product that drops out says at which stage and why."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from benchmarks.ecomagent.build import sampling, vouchers
from benchmarks.ecomagent.build.features import Feature, choose, extract
from benchmarks.ecomagent.build.gates import meaning_faults, word_faults
from benchmarks.ecomagent.build.intents import Intent
from benchmarks.ecomagent.build.kinds import Kind, Kinds, same_kind
from benchmarks.ecomagent.build.negatives import negate
from benchmarks.ecomagent.build.opinions import OPINIONS, opinions
from benchmarks.ecomagent.build.partition import split
from benchmarks.ecomagent.build.persona import write_persona
from benchmarks.ecomagent.build.phrases import clues, keywords, name_of
from benchmarks.ecomagent.build.plan import Faults, Plan, Words, Written, compile_plan
from benchmarks.ecomagent.build.template import DEFAULT_RESPONSE
from benchmarks.ecomagent.catalogue import Catalogue, Product
from benchmarks.ecomagent.fields import HINTABLE
from benchmarks.ecomagent.tasks import RubricItem, Task
from benchmarks.ecomagent.wording import find, key_form

POOL = 2000  # products of a category that are looked at for kinds and alternatives
TURNS = 10  # questions that a shopper answers
TRIES = 3  # wordings of a task that a judge may see


class Realiser(Protocol):
    """Writes the words of a plan."""

    def write(self, plan: Plan, rng: random.Random, faults: Faults) -> Written:
        """Words that the gate in code lets pass, or what it found wrong with the last try."""


class Gate(Protocol):
    """A second opinion on a whole task."""

    def issues(self, task: Task) -> list[str]:
        """What is wrong with a task; nothing if it may pass."""


@dataclass(frozen=True)
class Dropped:
    """A product that became no task: the stage, the reason, and the task as far as it was written."""

    stage: str
    reason: str
    task: Task | None = None


@dataclass(frozen=True)
class Settings:
    seed: int = 42
    min_features: int = 8
    max_features: int = 12


@dataclass
class Shop:
    """A catalogue with what construction looks up in it again and again."""

    catalogue: Catalogue
    seed: int
    _pools: dict[str, list[Product]] = field(default_factory=dict)
    _kinds: dict[str, Kinds] = field(default_factory=dict)

    def pool(self, category: str) -> list[Product]:
        """A sample of a category's products."""
        if category not in self._pools:
            ids = sampling.pool(self.catalogue, category, POOL, self.seed)
            self._pools[category] = [found for one in ids if (found := self.catalogue.product(one)) is not None]
        return self._pools[category]

    def kind(self, product: Product) -> Kind | None:
        if product.main_category not in self._kinds:
            self._kinds[product.main_category] = Kinds(self.pool(product.main_category))
        return self._kinds[product.main_category].of(product)

    def how_common(self, statement: str) -> int:
        """How many products have a review with these very words."""
        return sampling.products_saying(self.catalogue, statement)

    def alternatives(self, product: Product, kind: Kind) -> list[Product]:
        """Other products of the kind; of the category where there are none."""
        others = [other for other in self.pool(product.main_category) if other.id != product.id]
        return [other for other in others if same_kind(other, kind)] or others


@dataclass(frozen=True)
class Assembler:
    """Makes tasks. Every draw follows from the seed, the intent and the product alone, but for which fields were used
    least before."""

    shop: Shop
    settings: Settings
    realiser: Realiser
    gate: Gate | None = None

    def make(self, name: str, intent: Intent, product_id: str, used: Mapping[str, int]) -> Task | Dropped:
        """The task of a product, or why there is none. ``used`` counts how many tasks have each field so far."""
        product = self.shop.catalogue.product(product_id)
        assert product is not None
        rng = random.Random(f"{self.settings.seed}:{intent.name}:{product_id}")
        planned = self.plan(name, intent, product, used, rng)
        return planned if isinstance(planned, Dropped) else self._worded(planned, rng)

    def plan(
        self, name: str, intent: Intent, product: Product, used: Mapping[str, int], rng: random.Random
    ) -> Plan | Dropped:
        """Stages 2 to 4: features, sources, rubric."""
        kind = self.shop.kind(product)
        if kind is None:
            return Dropped("kind", "the title does not tell what kind of product it is")
        most = rng.randint(self.settings.min_features + 1, self.settings.max_features)
        features = choose(extract(product, rng), intent, used, most, rng)
        if intent.name == "negative_constraint":
            features = negate(features, product, self.shop.alternatives(product, kind), rng)
            if not any(feature.type == "negative_attribute" for feature in features):
                return Dropped("features", "no attribute has a value to exclude")
        if intent.name == "review_driven":
            said = opinions(self.shop.catalogue.reviews(product.id), self.shop.how_common, rng)
            if len(said) < OPINIONS:
                return Dropped("features", f"its reviews have fewer than {OPINIONS} short opinions")
            features += said
        if len(features) < self.settings.min_features:
            return Dropped("features", f"fewer than {self.settings.min_features} features")
        dealt = split(features, product.title, intent, partial(hintable, kind=kind), rng)
        if dealt is None:
            return Dropped("split", "no deal of its features meets every source's minimum")
        voucher = None
        if intent.name == "coupon_budget":
            assert product.price is not None
            voucher = vouchers.draw(product.price, rng)
        return compile_plan(name, intent, product, kind, features, dealt, voucher)

    def _worded(self, plan: Plan, rng: random.Random) -> Task | Dropped:
        """Stages 5 and 6: words that pass the gate in code, a task that its target fulfils and the judge lets pass."""
        dropped = Dropped("words", "not tried")
        for attempt in range(TRIES if self.gate is not None else 1):
            persona = write_persona(plan, rng)
            written = self.realiser.write(plan, rng, partial(word_faults, plan, persona))
            if written.words is None:
                return Dropped("words", written.problem)
            task = make_task(plan, written.words, persona, attempt + written.refused)
            if faults := meaning_faults(plan, self.shop.catalogue.reviews(plan.product.id), task):
                return Dropped("meaning", "; ".join(faults), refused(task, faults))
            if self.gate is None:
                return task
            if not (issues := self.gate.issues(task)):
                return task.model_copy(update={"judge_passed": True})
            dropped = Dropped("judge", "; ".join(issues), refused(task, issues, by_judge=True))
        return dropped


def hintable(feature: Feature, kind: Kind) -> bool:
    """Whether a query that names the kind of product can hide the feature's value behind a clue."""
    if feature.type != "attribute_match" or feature.name not in HINTABLE:
        return False
    return bool(clues(feature.name, feature.expected)) and not any(find(kind.name, feature.expected))


def refused(task: Task, issues: list[str], by_judge: bool = False) -> Task:
    """A task as failures are written down."""
    whose = "judge" if by_judge else "validation"
    status = {"sample_status": "final_validation_failed"}
    return task.model_copy(update={f"{whose}_passed": False, f"{whose}_issues": tuple(issues), **status})


def make_task(plan: Plan, words: Words, persona: dict[str, Any], attempt: int) -> Task:
    """Plan and words as a task line has them."""
    items = [
        item.model_copy(update={"description": words.surfaces[item.id], "query_surface": words.surfaces[item.id]})
        if item.info_source == "query"
        else item
        for item in plan.items
    ]
    split_counts = {
        "query_count": len(plan.split.query),
        "persona_count": len(plan.split.persona),
        "clarification_count": len(plan.split.clarification),
    }
    fields = {
        "id": plan.id,
        "intent_category": plan.intent.name,
        "user_query": words.query,
        "user_persona": persona,
        "clarification_script": {
            "clarification_slots": slots(plan.told_by("clarification"), words),
            "default_response": DEFAULT_RESPONSE,
            "max_clarification_turns": TURNS,
        },
        "target_product": target(plan.product),
        "rubrics": [item.model_dump() for item in items],
        "implicit_rubric_ids": plan.implicit,
        "difficulty_metrics": {"implicit_count": len(plan.implicit)},
        "generation_artifacts": {"sample_retry_count": attempt, "judge_issues": []},
        "extracted_features": [
            {"field": feature.field, "value": feature.bare, "type": feature.type} for feature in plan.features
        ],
        "feature_partition": split_counts,
        "voucher": None if plan.voucher is None else plan.voucher.model_dump(exclude_unset=True),
        "validation_passed": True,
        "validation_issues": [],
        "judge_passed": None,
        "judge_issues": [],
        "sample_status": "ok",
    }
    return Task.model_validate(fields)


def slots(items: tuple[RubricItem, ...], words: Words) -> list[dict[str, Any]]:
    """The scripted answers. A keyword that would bring out two of them, or that holds the value, is left out."""
    asked = {item.id: keywords(item) for item in items}
    made = []
    for number, item in enumerate(items, 1):
        others = {key_form(word) for other, theirs in asked.items() if other != item.id for word in theirs}
        value = item.expected_value if isinstance(item.expected_value, str) else ""
        own = [word for word in asked[item.id] if not (value and any(find(word, value)))]
        made.append(
            {
                "slot_id": f"cl_{number}",
                "linked_rubric_ids": [item.id],
                "hidden_info": f"{name_of(item)}: {item.expected_value}",
                "trigger_keywords": [word for word in own if key_form(word) not in others] or own,
                "user_response": words.replies[item.id],
                "revealed": False,
            }
        )
    return made


def target(product: Product) -> dict[str, Any]:
    """The target as a task line has it."""
    return {
        "product_id": product.id,
        "title": product.title,
        "main_category": product.main_category,
        "store": product.store,
        "average_rating": product.average_rating,
        "rating_number": product.rating_number,
        "price": product.price,
        "features": list(product.features),
        "description": list(product.description),
        "details": product.details,
    }
