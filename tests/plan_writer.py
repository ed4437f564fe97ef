"""A small shop with reviews, and a writer of goals, scripts, needs, intents and keywords who can be foreseen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from models.generation import Chat

# Thing -> (what it is for, the step that needs it).
THINGS = {
    "lantern": ("light the garden", "Hang lights in the trees"),
    "rope": ("tie things to trees", "Tie the swing to a branch"),
    "flour": ("bake bread", "Mix flour and water into a dough"),
    "oven": ("bake at home", "Bake the loaf until it is brown"),
    "tent": ("sleep outdoors", "Pitch the shelter on flat ground"),
    "stove": ("cook outdoors", "Boil water for the evening meal"),
    "paint": ("colour a wall", "Paint the wall twice"),
    "brush": ("spread colour", "Brush the edges of the wall"),
    "seeds": ("grow vegetables", "Sow the seeds in rows"),
    "spade": ("dig the soil", "Dig the bed over"),
}
GOALS = {
    "garden": ("Host a supper in the garden", ["lantern", "rope"]),
    "bread": ("Bake crusty bread at home", ["flour", "oven"]),
    "camp": ("Camp by a lake for two nights", ["tent", "stove"]),
    "wall": ("Paint the bedroom wall", ["paint", "brush"]),
    "bed": ("Grow vegetables in a raised bed", ["seeds", "spade"]),
}
IDLE = "Choose a day that suits everybody"
INTENTS = 3


def products(copies: int = 2) -> list[dict[str, Any]]:
    """Metadata lines: each thing in several models, so that there are equals to choose among."""
    return [
        {
            "parent_asin": f"{thing}-{number}",
            "title": f"{thing.capitalize()} Model {number}",
            "main_category": "Home",
            "categories": ["Home", f"For {purpose}"],
            "features": [f"made to {purpose}", "sturdy &amp; light"],
            "description": [f"<p>A {thing}.</p>"],
            "price": "$12.50",
            "images": [],
        }
        for number in range(copies)
        for thing, (purpose, _) in THINGS.items()
    ]


def reviews(copies: int = 2) -> list[dict[str, Any]]:
    """Review lines: each tells the purpose (a key of GOALS) for which a thing was bought."""
    return [
        {
            "rating": 5.0,
            "title": "",
            "text": f"Bought the {thing} for purpose {purpose}{number} and it served us well all weekend long.",
            "parent_asin": f"{thing}-0",
            "verified_purchase": True,
        }
        for number in range(copies)
        for purpose, (_, things) in GOALS.items()
        for thing in things[:1]
    ]


def write_shop(folder: Path, copies: int = 2) -> tuple[str, str]:
    """(metadata file, reviews file), each with a broken line and a repetition."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, rows in (("meta.jsonl", products(copies)), ("reviews.jsonl", reviews(copies))):
        lines = [json.dumps(row) for row in rows]
        lines[1:1] = ['{"parent_asin": "cut', lines[0]]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        paths.append(str(folder / name))
    return paths[0], paths[1]


def reply(asked: Chat) -> str:
    """What the writer says; where it was told that its reply cannot be used, it does better."""
    turns = [message.content for message in asked.messages if message.role == "user"]
    repaired = any(turn.startswith("That reply cannot be used") for turn in turns)
    prompt = next(turn for turn in reversed(turns) if not turn.startswith("That reply cannot be used"))
    system = asked.messages[0].content
    if system.startswith("You read reviews"):
        purpose, number = re.findall(r"purpose (\w+?)(\d+) and", prompt)[-1]
        goal = GOALS[purpose][0]
        return json.dumps({"goal": f"{goal} {number}" if int(number) else goal})
    if system.startswith("You write the steps"):
        goal = _last("Goal: (.+)", prompt)
        if "vegetables" in goal:
            return "I would rather not."
        if "bread" in goal and not repaired:
            return '{"steps": ["Only one step"]}'
        things = next(things for text, things in GOALS.values() if goal.startswith(text))
        return "Sure:\n```json\n" + json.dumps({"steps": [IDLE, *(THINGS[thing][1] for thing in things)]}) + "\n```"
    if system.startswith("You name the steps"):
        steps = re.findall(r"^\d+\. (.+)$", prompt, re.MULTILINE)
        wrong = [9] if "camp" in prompt.lower() and not repaired else []
        return json.dumps({"steps": wrong + [number for number, step in enumerate(steps, 1) if step != IDLE]})
    if system.startswith("You say why people buy"):
        title = _last("Product: (.+?) \\(", prompt)
        purpose = THINGS[title.split()[0].lower()][0]
        ends = ("", " with friends", f" with model {title.split()[-1]}")
        return json.dumps(
            {"intents": [f"PersonX wants to buy this because they want to {purpose}{end}." for end in ends]}
        )
    if system.startswith("You name 1 to"):
        step = _last("Step: (.+)", prompt)
        thing = next(thing for thing, (_, own) in THINGS.items() if own == step)
        return json.dumps({"keywords": [thing, "spade" if thing == "rope" else f"{thing}s"]})
    raise AssertionError(prompt)


def _last(pattern: str, text: str) -> str:
    found: list[str] = re.findall(pattern, text)
    return found[-1].strip()
