"""A shop of seven products for the tests of its tools, small enough to know by heart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.catalogue_build import Plan, build

PRODUCTS: list[dict[str, Any]] = [
    {
        "parent_asin": "LAMP1",
        "title": "Kelvora Foldable USB-C Desk Lamp",
        "main_category": "Office Products",
        "store": "Kelvora",
        "average_rating": 4.3,
        "rating_number": 87,
        "price": 34.5,
        "categories": ["Office", "Lamps"],
        "features": ["Dims in five steps"],
        "description": ["A lamp that folds flat."],
        "details": {"Brand": "Kelvora", "Color": "Teal", "Material": "Aluminum", "Power Source": "USB"},
    },
    {
        "parent_asin": "LAMP2",
        "title": "Kelvora Desk Lamp with Clamp",
        "store": "Kelvora",
        "average_rating": 3.9,
        "rating_number": 12,
        "price": None,
        "details": {"Brand": "Kelvora", "Color": "Infrared Red", "Operating System": "None", "Wattage": "8 watts"},
    },
    {
        "parent_asin": "LAMP3",
        "title": "Brightly Floor Lamp",
        "store": "kelvora",
        "details": {"Color": "Red", "Wattage": "18 watts", "Best Sellers Rank": {"Lamps": 18}},
    },
    {"parent_asin": "CHARGER1", "title": "Voltano USB C Charger", "store": "Voltano", "details": {"OS": "Any"}},
    {"parent_asin": "CHARGER2", "title": "Voltano USB C Chargers, Pack of 2", "store": "Voltano", "price": 19},
    {"parent_asin": "CABLE1", "title": "Voltano Cable C to USB", "store": "Voltano", "price": 9.99},
    {"parent_asin": "MUG1", "title": "Café Mug, 350 ml", "store": "Brimby", "details": {"Color": "Infrared"}},
]
REVIEWS: list[dict[str, Any]] = [
    {"parent_asin": "LAMP1", "rating": 5, "title": "Bright", "text": "Lights the desk, folds flat.", "helpful_vote": 3},
    {"parent_asin": "LAMP1", "rating": 2, "title": "Wobbly hinge", "text": "The hinge wobbles when the desk shakes."},
    {"parent_asin": "LAMP1", "rating": 4, "title": "Good lamp", "text": "A bit pricey, but it folds flat in a bag."},
    {"parent_asin": "LAMP2", "rating": 1, "title": "No", "text": "The clamp scratched my desk."},
]  # fmt: skip


def write_lines(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """Rows as JSON lines; a text is a line as it is."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def shop(folder: Path, products: Iterable[Any] = PRODUCTS, reviews: Iterable[Any] = REVIEWS) -> Catalogue:
    """A catalogue of these products and reviews, built in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        (write_lines(folder / "meta_shop.jsonl", products),), (write_lines(folder / "reviews_shop.jsonl", reviews),)
    )
    build(plan, folder / "shop.db", overwrite=True)
    return Catalogue(folder / "shop.db")


def task(slots: Iterable[Mapping[str, Any]] = (), persona: Mapping[str, Any] = {}, **script: Any) -> SimpleNamespace:
    """What the tools need of a task: a profile, and slots given as {"keywords", "answer"} and numbered from cl_1."""
    told = tuple(
        SimpleNamespace(slot_id=f"cl_{number}", trigger_keywords=tuple(slot["keywords"]), user_response=slot["answer"])
        for number, slot in enumerate(slots, 1)
    )
    defaults = {"default_response": "Not sure.", "max_clarification_turns": 10}
    return SimpleNamespace(
        user_persona=dict(persona), clarification_script=SimpleNamespace(clarification_slots=told, **defaults | script)
    )
