"""Step-product discrimination from the sample: fitting products, and negatives of four named kinds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from recipes.base import Product, Record
from recipes.sample.schema import SampleGoal
from recipes.sample.variants import as_product, goal_words
from recipes.step_product import StepProductRecord

# Shares of the negatives: hard ones (right kind for another step, right words for the wrong use) beside easy ones.
KINDS = {"other_step": 0.4, "lookalike": 0.35, "other_goal": 0.15, "no_purchase": 0.1}


def records(goal: SampleGoal, others: Sequence[SampleGoal], rng: random.Random) -> list[Record]:
    """One positive for each fitting product, and as many negatives."""
    buying = [number for number, step in enumerate(goal.steps) if step.needs_purchase]
    pairs: list[tuple[int, Product, int, str]] = [
        (number, as_product(product), 1, "fits") for number in buying for product in goal.steps[number].products
    ]
    kinds = _quotas(len(pairs), rng)
    lookalikes = rng.sample(goal.lookalikes, len(goal.lookalikes))
    own = [(number, product) for number in buying for product in goal.steps[number].products]
    rng.shuffle(own)
    for kind in kinds:
        if kind == "lookalike" and lookalikes:
            lookalike = lookalikes.pop()
            pairs.append((lookalike.step - 1, as_product(lookalike), 0, kind))
        elif kind == "other_goal":
            other = rng.choice([step for step in rng.choice(list(others)).steps if step.needs_purchase])
            pairs.append((rng.choice(buying), as_product(rng.choice(other.products)), 0, kind))
        elif kind == "no_purchase" and len(buying) < len(goal.steps):
            idle = rng.choice([number for number in range(len(goal.steps)) if number not in buying])
            pairs.append((idle, as_product(rng.choice(own)[1]), 0, kind))
        else:
            own_step, spare = own.pop()
            pairs.append(
                (rng.choice([step for step in buying if step != own_step]), as_product(spare), 0, "other_step")
            )
    made: list[Record] = []
    for number, product, label, kind in pairs:
        step = goal.steps[number]
        made.append(
            StepProductRecord(
                id=f"{goal.id}-{len(made)}",
                goal=goal_words(goal, rng),
                step=rng.choice((step.step, step.also)),
                product=product,
                label=label,
                group=goal.id,
                meta={"kind": kind},
            )
        )
    return made


def _quotas(count: int, rng: random.Random) -> list[str]:
    """``count`` kinds in the shares of ``KINDS``; what the shares leave over is drawn."""
    kinds = [kind for kind, share in KINDS.items() for _ in range(int(share * count))]
    return kinds + rng.choices(list(KINDS), weights=list(KINDS.values()), k=count - len(kinds))
