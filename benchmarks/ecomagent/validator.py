"""An independent check of shopping tasks against their catalogue: `python -m benchmarks.ecomagent.validator TASKS DB`.

It reads JSON lines and SQLite itself and shares no code with the construction or the grading, so that a mistake of
theirs does not hide itself. It is stricter than reading: it asks for what the construction promises, that is for valid
form, one source a requirement, nothing told by another source, hints that hide their value, and a target that meets
everything.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

MINIMUM_IMPLICIT = {
    "product_search": 2,
    "knowledge_reasoning": 3,
    "rating_quality": 2,
    "feature_combination": 3,
    "negative_constraint": 2,
    "use_case_scenario": 3,
    "coupon_budget": 2,
    "review_driven": 2,
}
PROFILE = {
    "demographics": {"gender", "age_range", "location", "occupation", "education_level"},
    "lifestyle": {"hobbies", "daily_routine", "fitness_level", "dietary_preference", "commute_method", "pets"},
    "shopping_habits": {
        "payment_method",
        "shopping_frequency",
        "preferred_device",
        "preferred_platform",
        "return_frequency",
    },
}
OTHER_NAMES = {
    "special feature": ["special features"],
    "material": ["material type"],
    "screen size": ["standing screen display size"],
    "connectivity technology": ["connectivity technologies"],
    "operating system": ["os"],
    "ram": ["ram memory installed size"],
    "wireless type": ["wireless communication technology"],
    "processor": ["processor brand"],
}
WORD = re.compile(r"[0-9]+|[^0-9\W_]+")
SHORTEST_SECRET = 3  # letters and digits: shorter values occur by accident
Item = Mapping[str, Any]


def validate(tasks: str | Path, catalogue: str | Path) -> list[str]:
    """Every fault of a file of tasks as ``line: item: what is wrong``; none if all is as it should be.

    Raises OSError where there is no such file; sqlite3.Error where the catalogue is none, or a damaged one.
    """
    found: list[str] = []
    seen: Counter[str] = Counter()
    uri = f"{Path(catalogue).resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as shop, Path(tasks).open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                task = json.loads(line)
                seen[str(task["id"])] += 1
                for fault in _Check(task, shop).faults():
                    found.append(f"{number}: {fault}")
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                found.append(f"{number}: cannot be checked any further: {type(error).__name__}: {error}")
    found += [f"the id {name} stands {count} times" for name, count in seen.items() if count > 1]
    return found if found or seen else ["no task"]


class _Check:
    """One task, with its target as the catalogue has it."""

    def __init__(self, task: Mapping[str, Any], shop: sqlite3.Connection) -> None:
        self.task, self.shop = task, shop
        self.items: Sequence[Item] = task["rubrics"]
        self.query: str = task["user_query"]
        self.implicit: Sequence[str] = task["implicit_rubric_ids"]
        row = shop.execute("SELECT data FROM products WHERE product_id = ?", (task["target_product"]["product_id"],))
        found = row.fetchone()
        self.product: Mapping[str, Any] | None = None if found is None else json.loads(found[0])

    def faults(self) -> Iterator[str]:
        yield from self.form()
        yield from self.query_words()
        yield from self.profile()
        yield from self.answers()
        yield from self.secrets()
        yield from self.target()

    def by_source(self, source: str) -> list[Item]:
        return [item for item in self.items if item["info_source"] == source]

    def form(self) -> Iterator[str]:
        intent, kinds = self.task["intent_category"], Counter(item["type"] for item in self.items)
        if intent not in MINIMUM_IMPLICIT:
            yield f"the intent {intent!r} is not one of the eight"
        if [item["id"] for item in self.items] != [f"r{number}" for number in range(1, len(self.items) + 1)]:
            yield "item ids do not run from r1 without gaps"
        order = [item["info_source"] for item in self.items if item["type"] not in ("budget_match", "entity_match")]
        if order != sorted(order, key=["query", "persona", "clarification"].index):
            yield "items do not stand in the order query, persona, clarification"
        if self.items[-1]["type"] != "entity_match" or kinds["entity_match"] != 1:
            yield "the last item, and no other, must name the kind of product"
        if (intent == "coupon_budget") != (kinds["budget_match"] == 1) or (self.task["voucher"] is None) == (
            intent == "coupon_budget"
        ):
            yield "coupon tasks, and no others, have one budget and a voucher"
        if kinds["review_opinion"] != (2 if intent == "review_driven" else 0):
            yield "review tasks, and no others, have two opinions"
        if (intent == "negative_constraint") != (kinds["negative_attribute"] > 0):
            yield "exclusion tasks, and no others, exclude something"
        for field, count in Counter(item["field"] for item in self.items if item["field"] != "review").items():
            if count > 1:
                yield f"{count} items look at {field}"
        if self.task.get("sample_status") != "ok":
            yield "its status is not ok"
        yield from self.counts()

    def counts(self) -> Iterator[str]:
        told = self.task["feature_partition"]
        apart = ("entity_match", "budget_match")
        for source, least in (("query", 4), ("persona", 2), ("clarification", 2)):
            count = len([item for item in self.by_source(source) if item["type"] not in apart])
            if count != told[f"{source}_count"]:
                yield f"{count} features are told by {source}, the partition says {told[f'{source}_count']}"
            if count < least:
                yield f"only {count} features are told by {source}"
        if len(self.task["extracted_features"]) != sum(told.values()):
            yield "features were lost or doubled between extraction and partition"

    def query_words(self) -> Iterator[str]:
        wanted = MINIMUM_IMPLICIT.get(self.task["intent_category"], 0)
        if len(self.implicit) < wanted or self.task["difficulty_metrics"]["implicit_count"] != len(self.implicit):
            yield f"{len(self.implicit)} items are hinted at, at least {wanted} are wanted"
        for item in self.by_source("query"):
            surface = item["query_surface"]
            if not surface or surface not in self.query or surface != item["description"]:
                yield f"{item['id']}: the query does not have its words"
            if len(surface.split()) > 18 or len(surface) > 140:
                yield f"{item['id']}: its words are too many"
        entity = self.items[-1]
        if plain(entity["canonical_entity"]) not in plain(entity["query_surface"]):
            yield "the query does not name the kind of product"

    def profile(self) -> Iterator[str]:
        persona = self.task["user_persona"]
        if set(persona) != {"user_id", "product_requirements", *PROFILE}:
            yield f"the profile has the keys {sorted(persona)}"
        for block, names in PROFILE.items():
            if set(persona[block]) != names:
                yield f"the profile's {block} has the keys {sorted(persona[block])}"
        required = dict(persona["product_requirements"])
        avoided = required.pop("avoid_preferences", [])
        for item in self.by_source("persona"):
            if item["type"] == "negative_attribute":
                missing = [value for value in item["expected_value"] if not any(value in text for text in avoided)]
            else:
                missing = [] if item["expected_value"] in required.values() else [item["expected_value"]]
            if missing:
                yield f"{item['id']}: the profile does not tell {missing}"
        positive = [item for item in self.by_source("persona") if item["type"] != "negative_attribute"]
        if len(required) != len(positive):
            yield f"the profile has {len(required)} requirements, {len(positive)} items are its own"

    def answers(self) -> Iterator[str]:
        script = self.task["clarification_script"]
        linked = [slot["linked_rubric_ids"] for slot in script["clarification_slots"]]
        wanted = [[item["id"]] for item in self.by_source("clarification")]
        if sorted(linked) != sorted(wanted):
            yield "slots and items of the clarification do not match one to one"
        items = {item["id"]: item for item in self.items}
        for slot in script["clarification_slots"]:
            item = items[slot["linked_rubric_ids"][0]]
            for value in texts(item):
                if plain(value) not in plain(slot["user_response"]):
                    yield f"{item['id']}: the answer does not say {value!r}"
            if not slot["trigger_keywords"] or slot["revealed"]:
                yield f"{item['id']}: its slot has no keywords, or is revealed"
        if not script["default_response"] or script["max_clarification_turns"] < len(linked):
            yield "the script has no default answer, or too few turns"

    def secrets(self) -> Iterator[str]:
        hidden = [*self.by_source("persona"), *self.by_source("clarification")]
        for item in [*hidden, *(item for item in self.items if item["id"] in self.implicit)]:
            for value in texts(item) if item["field"].startswith("details.") else ():
                if len("".join(WORD.findall(value))) >= SHORTEST_SECRET and plain(value) in plain(self.query):
                    yield f"{item['id']}: the query gives {value!r} away"
        price = self.task["target_product"]["price"]
        if price is not None and re.search(rf"(?<![\d.]){re.escape(f'{price:.2f}')}(?!\d)", self.query):
            yield "the query tells the target's price"

    def target(self) -> Iterator[str]:
        if self.product is None:
            yield "the target is not in the catalogue"
            return
        copied = self.task["target_product"]
        for name in ("title", "store", "price", "average_rating", "rating_number"):
            if copied[name] != self.product.get(name):
                yield f"the target's {name} is {copied[name]!r}, the catalogue has {self.product.get(name)!r}"
        if self.items[-1]["title_span"] not in self.product["title"]:
            yield "the title does not have the words that name the kind"
        for item in self.items:
            if not self.meets(item):
                yield f"{item['id']}: the target does not meet it"

    def meets(self, item: Item) -> bool:
        """Whether the target meets a requirement, worked out from the catalogue's record alone."""
        assert self.product is not None
        kind, expected = item["type"], item["expected_value"]
        if kind == "attribute_match":
            return any(plain(expected) in plain(value) for value in self.details(item["field"]))
        if kind == "negative_attribute":
            values = self.details(item["field"])
            return bool(expected and values) and not any(
                plain(bad) in plain(value) for bad in expected for value in values
            )
        if kind == "numeric_range":
            number = self.product.get(item["field"])
            if number is None:
                return False
            return bool(number < expected["value"] if "value" in expected else number >= expected["min"])
        if kind == "budget_match":
            return bool(paid(round(self.product["price"] * 100), self.task["voucher"]) <= expected * 100 + 0.5)
        if kind == "review_opinion":
            reviews = self.shop.execute(
                "SELECT title, text FROM reviews WHERE product_id = ?", (self.task["target_product"]["product_id"],)
            )
            return any(plain(expected) in plain(f"{title}. {text}") for title, text in reviews)
        return kind == "entity_match" and plain(expected) in plain(self.product["title"])

    def details(self, field: str) -> list[str]:
        """What the catalogue has under the name of a detail, or another name of it."""
        assert self.product is not None
        name = field.removeprefix("details.").lower()
        names = {name, *OTHER_NAMES.get(name, ())}
        return [str(value) for key, value in self.product["details"].items() if key.lower() in names]


def plain(text: str) -> str:
    """A text as its words and numbers in lower case, with a blank around each."""
    return " " + " ".join(WORD.findall(text.lower())) + " "


def texts(item: Item) -> list[str]:
    """The values that words must have, or must not have, for a requirement to be told."""
    expected = item["expected_value"]
    if isinstance(expected, list):
        return expected
    if isinstance(expected, dict):
        number = float(expected["value"] if "value" in expected else expected["min"])
        return [str(int(number)) if number == int(number) else str(number)]
    return [str(expected)]


def paid(price: int, voucher: Mapping[str, Any]) -> float:
    """What remains of a price in cents; whole cents are not enforced, as half a cent is allowed for by the caller."""
    if voucher["discount_type"] == "stacked":
        steps = voucher["coupons"] if price >= voucher["threshold"] * 100 else []
    elif voucher["discount_type"] == "tiered":
        steps = [tier for tier in voucher["tiers"] if price >= tier["threshold"] * 100][-1:]
    else:
        steps = [voucher] if price >= voucher["threshold"] * 100 else []
    left = float(price)
    for step in steps:
        if step["discount_type"] == "fixed":
            left -= step["face_value"] * 100
        else:
            left -= min(left * step["discount"], step["cap"] * 100)
    return max(left, 0.0)


def main(arguments: Sequence[str]) -> int:
    """0: every task is valid; 1: faults, one a line, or nothing that can be checked; 2: wrong usage."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        faults = validate(*arguments)
    except sqlite3.Error as error:
        print(f"error: {arguments[1]}: no catalogue, or a damaged one ({error}); give another", file=sys.stderr)
        return 1
    except (OSError, UnicodeDecodeError) as error:
        print(f"error: {arguments[0]}: cannot be read ({error}); give a file of tasks (.jsonl)", file=sys.stderr)
        return 1
    print("\n".join(faults) if faults else "all tasks are valid")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
