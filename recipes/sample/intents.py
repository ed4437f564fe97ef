"""The purchase intents of the shipped sample: those of the training goals' products, so that no held-out one tells."""

from __future__ import annotations

from recipes.intents.judgment import IntentRecord
from recipes.sample.build import split_goals
from recipes.sample.variants import as_product


def training_intents(seed: int = 0) -> list[IntentRecord]:
    """Every intent of every product that fits a step of a training goal, in the order of the departments."""
    return [
        IntentRecord(id=f"{goal.id}-{number}{chr(ord('a') + place)}-{count}", product=as_product(product), intent=text)
        for goal in split_goals(seed)["train"]
        for number, step in enumerate(goal.steps, 1)
        for place, product in enumerate(step.products)
        for count, text in enumerate(product.intents, 1)
    ]
