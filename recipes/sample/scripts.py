"""Script verification from the sample: feasible variants, and defects of five named kinds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from recipes.base import Record
from recipes.sample.schema import SampleGoal
from recipes.sample.variants import Variant, feasible, goal_words, optional_count
from recipes.script_verify import ScriptRecord

KINDS = ("missing_step", "broken_order", "foreign_step", "defeating_step", "wrong_goal")
PER_KIND = 2


def records(goal: SampleGoal, others: Sequence[SampleGoal], rng: random.Random) -> list[Record]:
    """For each kind of defect ``PER_KIND`` records that have it, each with a feasible twin of as many steps."""
    made: list[Record] = []
    for kind in KINDS:
        for _ in range(PER_KIND):
            left_out = rng.randint(1 if kind == "missing_step" else 0, min(2, optional_count(goal)))
            twin = feasible(goal, rng, left_out)
            made.append(_record(goal, len(made), goal_words(goal, rng), twin, 1, "feasible"))
            words, script = _defect(kind, goal, others, rng, left_out)
            made.append(_record(goal, len(made), words, script, 0, kind))
    return made


def _defect(
    kind: str, goal: SampleGoal, others: Sequence[SampleGoal], rng: random.Random, left_out: int
) -> tuple[str, Variant]:
    """The goal's words and a script with one defect."""
    words = goal_words(goal, rng)
    if kind == "missing_step":
        essential = rng.choice([number for number, step in enumerate(goal.steps) if not step.optional])
        return words, feasible(goal, rng, left_out - 1, missing=essential)
    script = feasible(goal, rng, left_out)
    if kind == "broken_order":
        pairs = [pair for pair in goal.order if pair[0] - 1 in script.numbers and pair[1] - 1 in script.numbers]
        first, second = rng.choice(pairs or [goal.order[0]])
        if not pairs:
            script = feasible(goal, rng, 0)
        return words, script.exchange(script.numbers.index(first - 1), script.numbers.index(second - 1))
    if kind == "foreign_step":
        other = _other(goal, others, rng)
        place = rng.choice([at for at, number in enumerate(script.numbers) if not goal.steps[number].optional])
        step = rng.choice(other.steps)
        return words, script.replace(place, rng.choice((step.step, step.also)))
    if kind == "defeating_step":
        defeats = [defeat for defeat in goal.defeats if defeat.replaces - 1 in script.numbers]
        if not defeats:
            script, defeats = feasible(goal, rng, 0), list(goal.defeats)
        defeat = rng.choice(defeats)
        return words, script.replace(script.numbers.index(defeat.replaces - 1), defeat.step)
    return rng.choice((rng.choice(goal.near), goal_words(_other(goal, others, rng), rng))), script


def _other(goal: SampleGoal, others: Sequence[SampleGoal], rng: random.Random) -> SampleGoal:
    """Another goal: of the same department two times in three, where there is one."""
    near = [other for other in others if other.id.split("-")[0] == goal.id.split("-")[0]]
    return rng.choice(near) if near and rng.random() < 2 / 3 else rng.choice(list(others))


def _record(goal: SampleGoal, number: int, words: str, script: Variant, label: int, kind: str) -> ScriptRecord:
    return ScriptRecord(
        id=f"{goal.id}-{number}",
        goal=words,
        script=script.texts,
        label=label,
        group=goal.id,
        meta={"kind": kind},
    )
