"""The shipped sample as a shop: its products as metadata, and invented reviews, in the form of Amazon Reviews 2023.

For trying the construction without a download. A review tells the goal for which the sample has the product and one of
the product's intents, in a handful of patterns: it is no measure of how well goals are inferred from real reviews.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.results import to_line, write_text
from recipes.sample.schema import SampleGoal, SampleProduct, load_departments

SAMPLE = "sample"
METADATA_FILE, REVIEWS_FILE = "meta_sample.jsonl", "sample.jsonl"
REVIEWED_EVERY = 3  # products a review
PATTERNS = (
    "I bought this {because}. We wanted to {goal}, and it did what it should.",
    "We set out to {goal}, and I chose this {because}. Would buy it again.",
    "Arrived in time. My plan was to {goal}; I took this one {because}.",
    "Not the cheapest, but I had to {goal}. Bought it {because}, and am happy with it so far.",
)
PERSON = {"they": "I", "their": "my", "themselves": "myself"}


def write_shop(folder: Path, seed: int = 0) -> None:
    """Write ``meta_sample.jsonl`` and ``sample.jsonl`` into a folder, the same for the same seed."""
    folder.mkdir(parents=True, exist_ok=True)
    products = list(sample_products())
    write_text(folder / METADATA_FILE, "".join(to_line(_metadata(*one)) for one in products))
    chance = random.Random(seed)
    reviewed = [(identity, product, goal) for identity, product, goal in products[::REVIEWED_EVERY]]
    write_text(folder / REVIEWS_FILE, "".join(to_line(_review(*one, chance)) for one in reviewed))


def sample_products() -> Iterator[tuple[str, SampleProduct, SampleGoal]]:
    """(id, product, goal) of every product that fits a step; the id is the goal's, the step's number and a letter."""
    for department in load_departments():
        for goal in department.goals:
            for number, step in enumerate(goal.steps, 1):
                for place, product in enumerate(step.products):
                    yield f"{goal.id}-{number}{chr(ord('a') + place)}", product, goal


def _metadata(identity: str, product: SampleProduct, goal: SampleGoal) -> dict[str, Any]:
    return {
        "parent_asin": identity,
        "title": product.title,
        "main_category": product.category,
        "categories": [product.category],
        "features": list(product.features),
        "description": [],
        "price": product.price,
    }


def _review(identity: str, product: SampleProduct, goal: SampleGoal, chance: random.Random) -> dict[str, Any]:
    intent = chance.choice(product.intents)
    because = re.sub(r"\b(they|their|themselves)\b", lambda found: PERSON[found[0]], intent)
    wanted = goal.goal[0].lower() + goal.goal[1:]
    return {
        "rating": float(chance.choice((4, 5, 5))),
        "title": "",
        "text": chance.choice(PATTERNS).format(because=because, goal=wanted),
        "parent_asin": identity,
        "verified_purchase": True,
        "timestamp": 0,
    }
