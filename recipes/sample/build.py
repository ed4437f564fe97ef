"""From the departments' goals to the three judgment sets: a seeded builder, the same records on every machine.

Every negative has a positive twin of the same goal, drawn in the same way and with as many steps and products, so that
neither length nor a word list tells the classes apart; what decides is whether the parts fit together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

from recipes.base import Record
from recipes.sample import plans, scripts, step_products
from recipes.sample.schema import SampleGoal, load_departments

SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}
# How often each goal is drawn: other wordings, other defects. Training has more of them; repeats are left out.
DRAWS = {"train": 3, "validation": 1, "test": 1}
Builder = Callable[[SampleGoal, Sequence[SampleGoal], random.Random], list[Record]]
BUILDERS: dict[str, Builder] = {
    "script_verify": scripts.records,
    "step_product": step_products.records,
    "holistic_verify": plans.records,
}


def build_split(judgment: str, split: str, seed: int = 0) -> list[Record]:
    """The records of one judgment and split (train, validation or test), in an order shuffled by the seed.

    Raises ValueError for an unknown judgment or split.
    """
    if judgment not in BUILDERS or split not in SHARES:
        raise ValueError(
            f"sample: give one of {', '.join(BUILDERS)} and of {', '.join(SHARES)}, not {judgment!r} and {split!r}"
        )
    goals = split_goals(seed)[split]
    records: list[Record] = []
    for goal in goals:
        # What a goal borrows comes from its own split, so that no step or product crosses it.
        others = [other for other in goals if other.id != goal.id]
        records += _draw(BUILDERS[judgment], goal, others, DRAWS[split], f"{seed}:{judgment}:{goal.id}")
    random.Random(f"{seed}:{judgment}:{split}").shuffle(records)
    return records


def _draw(build: Builder, goal: SampleGoal, others: Sequence[SampleGoal], draws: int, seed: str) -> list[Record]:
    """The goal's records from several draws, numbered through, each content once, as many yes as no."""
    unique: dict[str, Record] = {}
    for draw in range(draws):
        for record in build(goal, others, random.Random(f"{seed}:{draw}")):
            content = record.model_dump_json(exclude={"id", "meta", "label"})
            unique.setdefault(content, record.model_copy(update={"id": f"{goal.id}-{len(unique)}"}))
    sides = [[record for record in unique.values() if record.label == label] for label in (0, 1)]
    count = min(map(len, sides))
    return [record for side in sides for record in side[:count]]


@cache
def split_goals(seed: int = 0) -> dict[str, list[SampleGoal]]:
    """The goals of each split, 70/10/20 by goal, every department in proportion."""
    parts: dict[str, list[SampleGoal]] = {split: [] for split in SHARES}
    ranked: list[tuple[float, str, SampleGoal]] = []
    for department in load_departments():
        goals = list(department.goals)
        random.Random(f"{seed}:{department.department}").shuffle(goals)
        # Spread each department evenly over 0..1, so that cutting at the shares takes from each in proportion.
        offset = random.Random(f"{seed}:{department.department}:offset").random()
        ranked += [((place + offset) / len(goals), goal.id, goal) for place, goal in enumerate(goals)]
    ranked.sort(key=lambda item: item[:2])
    start = 0.0
    for split, share in SHARES.items():
        parts[split] = [
            goal for _, _, goal in ranked[round(start * len(ranked)) : round((start + share) * len(ranked))]
        ]
        start += share
    return parts
