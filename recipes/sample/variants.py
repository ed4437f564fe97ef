"""Feasible variants of a goal's script: other words, optional steps left out, independent neighbours exchanged."""

from __future__ import annotations

import random
from dataclasses import dataclass

from recipes.base import Product
from recipes.sample.schema import Lookalike, SampleGoal, SampleProduct


@dataclass(frozen=True)
class Variant:
    """A feasible script: 0-based numbers of the goal's steps, and the words of each, in order."""

    numbers: tuple[int, ...]
    texts: tuple[str, ...]

    def replace(self, place: int, text: str) -> Variant:
        """The variant with other words at a place."""
        return Variant(self.numbers, (*self.texts[:place], text, *self.texts[place + 1 :]))

    def exchange(self, first: int, second: int) -> Variant:
        """The variant with the steps at two places exchanged."""
        numbers, texts = list(self.numbers), list(self.texts)
        numbers[first], numbers[second] = numbers[second], numbers[first]
        texts[first], texts[second] = texts[second], texts[first]
        return Variant(tuple(numbers), tuple(texts))


def goal_words(goal: SampleGoal, rng: random.Random) -> str:
    """The goal, in one of its two wordings."""
    return rng.choice((goal.goal, goal.also))


def feasible(goal: SampleGoal, rng: random.Random, left_out: int, missing: int | None = None) -> Variant:
    """A feasible variant without ``left_out`` of the optional steps; ``missing`` (0-based) is left out besides them."""
    optional = [number for number, step in enumerate(goal.steps) if step.optional]
    gone = set(rng.sample(optional, min(left_out, len(optional))))
    if missing is not None:
        gone.add(missing)
    numbers = [number for number in range(len(goal.steps)) if number not in gone]
    for first, _ in goal.free:
        place = first - 1
        if rng.random() < 0.5 and place in numbers and place + 1 in numbers:
            at = numbers.index(place)
            if numbers[at + 1 : at + 2] == [place + 1]:
                numbers[at], numbers[at + 1] = numbers[at + 1], numbers[at]
    texts = tuple(rng.choice((goal.steps[number].step, goal.steps[number].also)) for number in numbers)
    return Variant(tuple(numbers), texts)


def optional_count(goal: SampleGoal) -> int:
    """How many steps may be left out."""
    return sum(step.optional for step in goal.steps)


def as_product(product: SampleProduct | Lookalike) -> Product:
    """A sample product as a record's product; purchase intents are knowledge about it, not part of it."""
    return Product(title=product.title, features=product.features, category=product.category, price=product.price)
