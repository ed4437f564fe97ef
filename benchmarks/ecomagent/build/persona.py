"""The profile of a shopper who does not exist: noise by chance, and what the profile alone tells of the purchase."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from benchmarks.ecomagent.build.plan import Plan
from benchmarks.ecomagent.fields import AVOID_KEY, persona_key
from benchmarks.ecomagent.tasks import RubricItem

BLOCKS = ("demographics", "lifestyle", "shopping_habits")


@cache
def _noise() -> dict[str, dict[str, list[str]]]:
    loaded: dict[str, dict[str, list[str]]] = yaml.safe_load(
        (Path(__file__).parent / "persona.yaml").read_text(encoding="utf-8")
    )
    return loaded


def write_persona(plan: Plan, rng: random.Random) -> dict[str, Any]:
    """The profile of a task's shopper."""
    persona: dict[str, Any] = {"user_id": f"U_{rng.randrange(100_000):05d}"}
    for block in BLOCKS:
        persona[block] = {name: _drawn(name, values, rng) for name, values in _noise()[block].items()}
    persona["product_requirements"] = requirements(plan.told_by("persona"))
    return persona


def _drawn(name: str, values: list[str], rng: random.Random) -> Any:
    return rng.sample(values, rng.randint(2, 3)) if name == "hobbies" else rng.choice(values)


def requirements(items: tuple[RubricItem, ...]) -> dict[str, Any]:
    """What a profile says of the purchase: a key for each wish, and a list of what is to be avoided."""
    told: dict[str, Any] = {}
    for item in items:
        name = item.attribute or item.field
        if item.type == "negative_attribute":
            told.setdefault(AVOID_KEY, []).extend(f"{name}: {value}" for value in item.expected_value)
        else:
            told[persona_key(name)] = item.expected_value
    return told
