"""Rows of step-product records and plans, each one's text its own, many sharing their goal and step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GOALS = ("bake bread at home", "plan an autumn party", "paint the door")
STEPS = ("mix flour and water", "hang the lights", "call the guests", "open the window", "heat the oven")
THINGS = ("string lights", "oven", "flour", "brush", "bowl", "lamp", "scissors")


def product(number: int) -> dict[str, Any]:
    made: dict[str, Any] = {"title": f"{THINGS[number % 7]} {number}"}
    if number % 3:
        made["features"] = [f"{number % 11} m", "warm white"][: number % 3]
    return made | ({"price": 10.5 + number % 20} if number % 4 == 0 else {})


def row(number: int) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "goal": GOALS[number // 50 % 3],
        "step": STEPS[number // 10 % 5],
        "product": product(number),
    }


def plan(number: int) -> dict[str, Any]:
    script: list[Any] = [STEPS[number % 5], {"step": STEPS[(number + 1) % 5], "products": [product(number)]}]
    return {"id": f"p{number}", "goal": GOALS[number % 3], "script": script, "products": [product(7), product(number)]}


def write_rows(path: Path, count: int, make: Any = row, start: int = 0) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for number in range(start, start + count):
            file.write(json.dumps(make(number)) + "\n")
    return path


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
