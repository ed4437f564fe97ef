"""A plan is judged in the paper's order, and each of its answers is that of the judge asked alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from shop_rows import plan

from judging.answers import Answer, answer
from judging.config import JudgesConfig
from judging.judges import NamedJudge, by_judgment, find_judges, load
from judging.plans import Plan, judge_plans
from recipes.base import Product
from recipes.holistic_verify import HolisticRecord, PlannedStep
from recipes.script_verify import ScriptRecord
from recipes.step_product import StepProductRecord

LAMP, OVEN, BOWL = (Product(title=title) for title in ("Lamp", "Oven", "Bowl"))


@pytest.fixture(scope="module")
def three(base: Path, adapter: Callable[..., Path]) -> dict[str, NamedJudge]:
    folders = [str(adapter(name)) for name in ("script_verify", "step_product", "holistic_verify")]
    judges = load(find_judges(folders), JudgesConfig(adapter=(), checkpoint=str(base)), torch.device("cpu"))
    assert len({id(judge.judge.model) for judge in judges}) == 1  # one backbone in memory
    return dict(by_judgment(judges))


def understood(value: dict[str, Any]) -> Plan:
    return Plan.model_validate(value)


def test_a_step_is_a_text_or_an_object_and_products_are_its_own_or_everyone_s() -> None:
    given = understood(
        {
            "goal": "bake",
            "script": ["mix", {"step": "heat", "products": [{"title": "Oven"}]}],
            "products": [{"title": "Bowl"}],
        }
    )
    assert [step.step for step in given.script] == ["mix", "heat"]
    assert given.candidates() == [(BOWL,), (OVEN, BOWL)]


def says(known: dict[str, float]) -> Callable[..., list[Answer]]:
    """A product judge that answers by title, and other judges that say yes."""

    def answers(one: Any, records: Any, _: int = 0) -> list[Answer]:
        p = [known[record.product.title] if hasattr(record, "product") else 1.0 for record in records]
        return [Answer(p_yes=value, verdict=int(value >= 0.5)) for value in p]

    return answers


@pytest.mark.parametrize(
    ("known", "keep", "chosen"),
    [
        ({"Lamp": 0.6, "Oven": 0.9, "Bowl": 0.7}, 1, ["Oven"]),
        ({"Lamp": 0.6, "Oven": 0.9, "Bowl": 0.7}, 2, ["Oven", "Bowl"]),
        ({"Lamp": 0.6, "Oven": 0.9, "Bowl": 0.7}, 9, ["Lamp", "Oven", "Bowl"]),
        ({"Lamp": 0.4, "Oven": 0.3, "Bowl": 0.2}, 1, []),
        ({"Lamp": 0.8, "Oven": 0.8, "Bowl": 0.1}, 1, ["Lamp"]),  # of equals the first
    ],
)
def test_the_plan_holds_the_most_probable_of_the_suitable_products(
    three: dict[str, NamedJudge], monkeypatch: pytest.MonkeyPatch, known: dict[str, float], keep: int, chosen: list[str]
) -> None:
    asked: list[Any] = []

    def answers(one: Any, records: Any, budget: int) -> list[Answer]:
        asked.append(list(records))
        return says(known)(one, records)

    monkeypatch.setattr("judging.plans.answer", answers)
    given = Plan(goal="bake", script=(PlannedStep(step="heat", products=(LAMP, OVEN)),), products=(BOWL,))
    (judged,) = judge_plans(three, [given], keep)
    assert [product.title for product in judged.steps[0].products if product.chosen] == chosen
    (whole,) = asked[2]
    assert [product.title for product in whole.script[0].products] == chosen


def test_every_answer_is_that_of_its_judge_alone(three: dict[str, NamedJudge]) -> None:
    plans = [understood(plan(number)) for number in range(5)]
    for given, judged in zip(plans, judge_plans(three, plans), strict=True):
        steps = tuple(step.step for step in given.script)
        (script,) = answer(three["script_verify"], [ScriptRecord(id="s", goal=given.goal, script=steps)])
        assert judged.script is not None and judged.script.p_yes == pytest.approx(script.p_yes, abs=1e-5)
        planned = []
        for step, products, own in zip(steps, given.candidates(), judged.steps, strict=True):
            pairs = [StepProductRecord(id="p", goal=given.goal, step=step, product=product) for product in products]
            alone = [one.p_yes for one in answer(three["step_product"], pairs)]
            assert [one.answer.p_yes for one in own.products if one.answer] == pytest.approx(alone, abs=1e-5)
            kept = [product for product, one in zip(products, own.products, strict=True) if one.chosen]
            planned.append(PlannedStep(step=step, products=tuple(kept)))
        (whole,) = answer(three["holistic_verify"], [HolisticRecord(id="h", goal=given.goal, script=tuple(planned))])
        assert judged.plan is not None and judged.plan.p_yes == pytest.approx(whole.p_yes, abs=1e-5)


def test_without_a_judge_for_products_all_of_them_stand_in_the_plan(three: dict[str, NamedJudge]) -> None:
    judges = {"holistic_verify": three["holistic_verify"]}
    (judged,) = judge_plans(judges, [understood(plan(3))])
    assert judged.script is None and judged.plan is not None
    assert [[one.chosen for one in step.products] for step in judged.steps] == [[True, True], [True, True, True]]
    assert {one.answer for step in judged.steps for one in step.products} == {None}
    assert judge_plans(three, []) == []


def test_two_judges_for_one_judgment_are_one_too_many(base: Path, adapter: Callable[..., Path]) -> None:
    folders = [str(adapter("step_product", run)) for run in ("a", "b")]
    judges = load(find_judges(folders), JudgesConfig(adapter=(), checkpoint=str(base)), torch.device("cpu"))
    with pytest.raises(ValueError, match="a and b both judge step_product; a plan takes one adapter for each"):
        by_judgment(judges)
