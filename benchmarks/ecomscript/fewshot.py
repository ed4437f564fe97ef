"""Solved examples for a prompt: balanced over the labels, and from no group that is judged."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from recipes.base import Record

R = TypeVar("R", bound=Record)


def draw_shots(
    pool: Sequence[R], count: int, seed: int, judged: Iterable[Record], where: str = "the pool"
) -> tuple[R, ...]:
    """``count`` labelled records of ``pool`` in random order, half of them yes, each of another group.

    With an odd count the seed decides which label has one more. All records of ``judged`` get the same examples, so
    that every prompt begins alike; hence no example comes from a group that any of them belongs to.

    Args:
        where: the pool's name in messages.

    Raises ValueError where the pool holds too few groups of a label.
    """
    if count < 0:
        raise ValueError(f"shots: {count}; give 0 or more")
    chance = random.Random(seed)
    barred = {record.group_key for record in judged}
    more = chance.randrange(2)
    shots: list[R] = []
    for label in (more, 1 - more):
        wanted = (count + (label == more)) // 2
        found: list[R] = []
        for record in chance.sample(pool, len(pool)):
            if len(found) < wanted and record.label == label and record.group_key not in barred:
                found.append(record)
                barred.add(record.group_key)
        if len(found) < wanted:
            raise ValueError(
                f"{where}: {count} shots need {wanted} records labelled {label}, each in a group that is not "
                f"judged, one a group; there are {len(found)}: give fewer --shots or another --shots_from"
            )
        shots += found
    chance.shuffle(shots)
    return tuple(shots)
