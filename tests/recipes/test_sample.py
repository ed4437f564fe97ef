"""The shipped sample: what it promises of its content, and that nothing but judgment solves it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from recipes.judgments import JUDGMENTS
from recipes.sample.build import SHARES, build_split, split_goals
from recipes.sample.schema import SampleGoal, load_departments

GOALS: dict[str, SampleGoal] = {goal.id: goal for department in load_departments() for goal in department.goals}
EACH = pytest.mark.parametrize("judgment", list(JUDGMENTS))


def texts_and_labels(judgment: str, split: str) -> tuple[list[str], np.ndarray[Any, Any]]:
    records = build_split(judgment, split)
    return [JUDGMENTS[judgment].render(r, "plain").text for r in records], np.array([r.label for r in records])


def numbers_of(record: Any) -> list[int | None]:
    """For each step of a record, which step of its goal it says (0-based), or None."""
    goal = GOALS[record.group]
    known = {text: n for n, step in enumerate(goal.steps) for text in (step.step, step.also)}
    return [known.get(getattr(step, "step", step)) for step in record.script]


def test_size_and_content() -> None:
    departments = load_departments()
    assert len(departments) >= 12
    assert len(GOALS) >= 96
    for goal in GOALS.values():
        assert 8 <= len(goal.steps) <= 10
        for step in goal.steps:
            assert not step.needs_purchase or len(step.products) >= 2
            for product in step.products:
                assert 2 <= len(product.features) <= 4
                assert len(product.intents) >= 3
                assert all(intent.startswith("because they want ") for intent in product.intents)
    intents = [intent for goal in GOALS.values() for step in goal.steps for p in step.products for intent in p.intents]
    assert len(set(intents)) > 0.98 * len(intents)
    # Written by hand, not by template: no five-word opening is shared by more than a handful of steps.
    openings = Counter(" ".join(step.step.split()[:4]) for goal in GOALS.values() for step in goal.steps)
    assert openings.most_common(1)[0][1] <= 5


@EACH
def test_a_bag_of_words_and_length_alone_are_near_chance(judgment: str) -> None:
    train, train_labels = texts_and_labels(judgment, "train")
    test, test_labels = texts_and_labels(judgment, "test")
    for grams in ((1, 1), (1, 2)):
        words = make_pipeline(CountVectorizer(ngram_range=grams), LogisticRegression(max_iter=1000))
        assert words.fit(train, train_labels).score(test, test_labels) < 0.65

    def lengths(texts: list[str]) -> np.ndarray[Any, Any]:
        return np.array([[len(text), len(text.split()), text.count("\n"), text.count(";")] for text in texts])

    length = GradientBoostingClassifier(random_state=0).fit(lengths(train), train_labels)
    assert length.score(lengths(test), test_labels) < 0.60


@EACH
def test_splits_are_balanced_and_share_no_goal_step_or_product(judgment: str) -> None:
    splits = {split: build_split(judgment, split) for split in SHARES}
    for records in splits.values():
        assert 0.45 <= np.mean([record.label for record in records]) <= 0.55
        assert len({record.id for record in records}) == len(records)
    lines = {
        split: {line for text in texts_and_labels(judgment, split)[0] for line in re.split(r"\n", text)[1:]}
        for split in SHARES
    }
    lines = {
        split: {re.sub(r"^ *(\d+\.|-|Step:|Product:) *", "", line) for line in some} - {"", "Script:", "Plan:"}
        for split, some in lines.items()
    }
    for one in SHARES:
        for other in SHARES:
            if one != other:
                assert not lines[one] & lines[other]
                assert not {r.group for r in splits[one]} & {r.group for r in splits[other]}
    goals = {split: len(some) for split, some in split_goals().items()}
    total = sum(goals.values())
    assert all(abs(goals[split] / total - share) < 0.02 for split, share in SHARES.items())


@EACH
def test_the_builder_is_seeded(judgment: str) -> None:
    assert build_split(judgment, "test") == build_split(judgment, "test")
    assert build_split(judgment, "test", seed=1) != build_split(judgment, "test")


def test_script_defects_are_what_their_kind_says() -> None:
    seen = Counter()
    for record in build_split("script_verify", "test"):
        goal, numbers, kind = GOALS[record.group], numbers_of(record), record.meta["kind"]
        seen[kind] += 1
        essential = {n for n, step in enumerate(goal.steps) if not step.optional}
        inverted = any(
            numbers.index(a - 1) > numbers.index(b - 1) for a, b in goal.order if a - 1 in numbers and b - 1 in numbers
        )
        own_goal = record.goal in (goal.goal, goal.also)
        sound = None not in numbers and essential <= set(numbers) and not inverted and own_goal
        assert sound == (record.label == 1) == (kind == "feasible"), record.id
        assert {
            "feasible": sound,
            "missing_step": not essential <= set(numbers) and None not in numbers,
            "broken_order": inverted,
            "foreign_step": numbers.count(None) == 1,
            "defeating_step": any(defeat.step in record.script for defeat in goal.defeats),
            "wrong_goal": not own_goal,
        }[kind], record.id
    assert len(seen) == 6


def test_product_negatives_are_what_their_kind_says() -> None:
    for record in build_split("step_product", "test"):
        goal = GOALS[record.group]
        step = next(s for s in goal.steps if record.step in (s.step, s.also))
        fits = record.product.title in {product.title for product in step.products}
        elsewhere = record.product.title in {p.title for s in goal.steps for p in s.products} and not fits
        alike = record.product.title in {item.title for item in goal.lookalikes}
        assert fits == (record.label == 1)
        assert {
            "fits": fits,
            "other_step": elsewhere and step.needs_purchase,
            "lookalike": alike,
            "other_goal": not elsewhere and not alike,
            "no_purchase": not step.needs_purchase,
        }[record.meta["kind"]], record.id


def test_plan_defects_are_what_their_kind_says() -> None:
    for record in build_split("holistic_verify", "test"):
        goal, numbers, kind = GOALS[record.group], numbers_of(record), record.meta["kind"]
        titles = [[product.title for product in step.products] for step in record.script]
        missing = unsuitable = False
        keys: set[str] = set()
        for number, some in zip(numbers, titles, strict=True):
            assert number is not None
            fitting = {p.title: f"{number + 1}{chr(97 + place)}" for place, p in enumerate(goal.steps[number].products)}
            missing |= bool(fitting) and not some
            unsuitable |= any(title not in fitting for title in some)
            keys |= {fitting[title] for title in some if title in fitting}
        conflicting = any(set(conflict.products) <= keys for conflict in goal.conflicts)
        assert (not missing and not unsuitable and not conflicting) == (record.label == 1) == (kind == "sound"), (
            record.id
        )
        assert {
            "sound": True,
            "missing_product": missing,
            "unsuitable_product": unsuitable,
            "conflicting_products": conflicting,
        }[kind], record.id
