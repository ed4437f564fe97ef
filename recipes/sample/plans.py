"""Holistic verification from the sample: plans that hold together, and whole-plan defects of three named kinds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from recipes.base import Product, Record
from recipes.holistic_verify import HolisticRecord, PlannedStep
from recipes.sample.schema import SampleGoal
from recipes.sample.variants import Variant, as_product, feasible, goal_words, optional_count

KINDS = ("unsuitable_product", "conflicting_products", "missing_product")
PER_KIND = 3
TWO_PRODUCTS = 0.15  # chance that a step lists two products

Chosen = dict[int, list[str]]  # 0-based step number -> letters of its products


def records(goal: SampleGoal, others: Sequence[SampleGoal], rng: random.Random) -> list[Record]:
    """For each kind of defect ``PER_KIND`` plans that have it, each with a sound twin drawn in the same way."""
    made: list[Record] = []
    for kind in KINDS:
        for turn in range(PER_KIND):
            left_out = rng.randint(0, min(1, optional_count(goal)))
            script = feasible(goal, rng, left_out)
            chosen = _choose(goal, script, rng)
            if kind == "missing_product" and all(len(letters) == 1 for letters in chosen.values()):
                chosen = _second(goal, chosen, rng)
            made.append(_record(goal, len(made), rng, script, _products(goal, chosen), 1, "sound"))
            script = feasible(goal, rng, left_out)
            made.append(_record(goal, len(made), rng, script, _defect(kind, turn, goal, others, script, rng), 0, kind))
    return made


def _choose(goal: SampleGoal, script: Variant, rng: random.Random) -> Chosen:
    """Products for every step that needs one, none in conflict with another."""
    while True:
        chosen: Chosen = {}
        for number in sorted(script.numbers):
            letters = [chr(ord("a") + place) for place in range(len(goal.steps[number].products))]
            if letters:
                chosen[number] = sorted(rng.sample(letters, 2 if rng.random() < TWO_PRODUCTS else 1))
        if not _conflicts(goal, chosen):
            return chosen


def _conflicts(goal: SampleGoal, chosen: Chosen) -> bool:
    keys = {f"{number + 1}{letter}" for number, letters in chosen.items() for letter in letters}
    return any(set(conflict.products) <= keys for conflict in goal.conflicts)


def _second(goal: SampleGoal, chosen: Chosen, rng: random.Random) -> Chosen:
    """The choice with a second product at one step, where that makes no conflict."""
    for number in rng.sample(sorted(chosen), len(chosen)):
        letters = [chr(ord("a") + place) for place in range(len(goal.steps[number].products))]
        wider = {**chosen, number: sorted(rng.sample(letters, 2))}
        if len(chosen[number]) == 1 and not _conflicts(goal, wider):
            return wider
    return chosen


def _products(goal: SampleGoal, chosen: Chosen) -> dict[int, list[Product]]:
    return {
        number: [as_product(goal.product(f"{number + 1}{letter}")) for letter in letters]
        for number, letters in chosen.items()
    }


def _defect(
    kind: str, turn: int, goal: SampleGoal, others: Sequence[SampleGoal], script: Variant, rng: random.Random
) -> dict[int, list[Product]]:
    """Products for a script, with one defect; ``turn`` cycles through the kinds of unsuitable product."""
    if kind == "conflicting_products":
        conflicts = [c for c in goal.conflicts if all(int(key[:-1]) - 1 in script.numbers for key in c.products)]
        conflict = rng.choice(conflicts or list(goal.conflicts))
        chosen = _choose(goal, script, rng)
        for key in conflict.products:
            number = int(key[:-1]) - 1
            if key[-1] not in chosen.setdefault(number, [key[-1]]):
                chosen[number] = sorted([*chosen[number][1:], key[-1]])
        return _products(goal, chosen)
    chosen = _choose(goal, script, rng)
    if kind == "missing_product":
        chosen = _second(goal, _second(goal, chosen, rng), rng)
        products = _products(goal, chosen)
        single = [number for number, letters in chosen.items() if len(letters) == 1]
        del products[rng.choice(single or list(products))]
        return products
    products = _products(goal, chosen)
    lookalikes = [item for item in goal.lookalikes if item.step - 1 in products]
    if turn % 3 == 0 and lookalikes:
        lookalike = rng.choice(lookalikes)
        products[lookalike.step - 1][0] = as_product(lookalike)
        return products
    number = rng.choice(list(products))
    if turn % 3 == 1:
        other = rng.choice([step for step in products if step != number])
        products[number][0] = as_product(rng.choice(goal.steps[other].products))
    else:
        foreign = rng.choice([step for step in rng.choice(list(others)).steps if step.needs_purchase])
        products[number][0] = as_product(rng.choice(foreign.products))
    return products


def _record(
    goal: SampleGoal,
    number: int,
    rng: random.Random,
    script: Variant,
    products: dict[int, list[Product]],
    label: int,
    kind: str,
) -> HolisticRecord:
    steps = tuple(
        PlannedStep(step=text, products=tuple(products.get(step, ())))
        for step, text in zip(script.numbers, script.texts, strict=True)
    )
    return HolisticRecord(
        id=f"{goal.id}-{number}",
        goal=goal_words(goal, rng),
        script=steps,
        label=label,
        group=goal.id,
        meta={"kind": kind},
    )
