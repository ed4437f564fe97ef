"""The pipeline of EcomScriptBench as one call: is the script sound, which products suit its steps, does the plan hold?

Its three tasks (ACL 2025) are asked in their order, the last one about the plan with the products that the second one
has let through.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from judging.answers import Answer, answer
from judging.judges import NamedJudge
from recipes.base import Product, Text, none_is_empty
from recipes.holistic_verify import HOLISTIC_VERIFY, HolisticRecord, PlannedStep
from recipes.script_verify import SCRIPT_VERIFY, ScriptRecord
from recipes.step_product import STEP_PRODUCT, StepProductRecord


def _steps(script: Any) -> Any:
    """A step may be its text alone."""
    return (
        [{"step": step} if isinstance(step, str) else step for step in script] if isinstance(script, list) else script
    )


class Plan(BaseModel):
    """A goal, the steps towards it, and the products that might serve them: named with a step, or for all steps."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    goal: Text = Field(description="what the person wants to achieve")
    script: Annotated[
        tuple[PlannedStep, ...],
        BeforeValidator(_steps),
        Field(min_length=1, description="the steps in order, each a text or an object with step and products"),
    ]
    products: Annotated[tuple[Product, ...], BeforeValidator(none_is_empty)] = Field(
        default=(), description="products to consider for every step"
    )

    def candidates(self) -> list[tuple[Product, ...]]:
        """What might serve each step: its own products, then those for all."""
        return [(*step.products, *self.products) for step in self.script]


class JudgedProduct(BaseModel):
    """A candidate of a step: ``chosen`` if it stands in the plan that is judged as a whole."""

    title: str
    chosen: bool
    answer: Answer | None = Field(description="null where there is no judge for step_product: all are chosen then")


class JudgedStep(BaseModel):
    step: str
    products: list[JudgedProduct]


class JudgedPlan(BaseModel):
    """Answers about the script, each product for its step, and the whole plan; null where there is no such judge."""

    script: Answer | None
    steps: list[JudgedStep]
    plan: Answer | None


@dataclass(frozen=True)
class Question:
    """Records that a judge for ``judgment`` is asked about."""

    judgment: str
    records: Sequence[Any]


Answers = Sequence[Answer | None]


def ask_about(plans: Sequence[Plan], keep: int = 1) -> Generator[Question, Answers, list[JudgedPlan]]:
    """The three questions about plans, one after the other; each is sent its answers, and the last one returns all.

    Args:
        keep: how many of a step's suitable products, the most probable first, the whole plan is made of.
    """
    scripts = yield Question(SCRIPT_VERIFY.name, [_script(plan) for plan in plans])
    suited = iter((yield Question(STEP_PRODUCT.name, [pair for plan in plans for pair in _pairs(plan)])))
    steps = [[_judged_step(step, products, suited, keep) for step, products in _options(plan)] for plan in plans]
    whole = [_whole(plan, chosen) for plan, chosen in zip(plans, steps, strict=True)]
    verdicts = yield Question(HOLISTIC_VERIFY.name, whole)
    return [
        JudgedPlan(script=script, steps=own, plan=verdict)
        for script, own, verdict in zip(scripts, steps, verdicts, strict=True)
    ]


def judge_plans(
    judges: Mapping[str, NamedJudge], plans: Sequence[Plan], keep: int = 1, token_budget: int | None = None
) -> list[JudgedPlan]:
    """Judge plans, in their order.

    Args:
        judges: by judgment; one that is absent leaves its answers out.
        keep: as for `ask_about`.
    """
    asking = ask_about(plans, keep)
    question = next(asking)
    while True:
        one = judges.get(question.judgment)
        answers = answer(one, question.records, token_budget) if one else [None] * len(question.records)
        try:
            question = asking.send(answers)
        except StopIteration as done:
            judged: list[JudgedPlan] = done.value
            return judged


def _options(plan: Plan) -> Iterator[tuple[str, tuple[Product, ...]]]:
    for step, products in zip(plan.script, plan.candidates(), strict=True):
        yield step.step, products


# The text of a record is made of what it says, not of its id: one id serves for all.
def _script(plan: Plan) -> ScriptRecord:
    return ScriptRecord(id="-", goal=plan.goal, script=tuple(step.step for step in plan.script))


def _pairs(plan: Plan) -> Iterator[StepProductRecord]:
    for step, products in _options(plan):
        for product in products:
            yield StepProductRecord(id="-", goal=plan.goal, step=step, product=product)


def _judged_step(step: str, products: Sequence[Product], answers: Iterator[Answer | None], keep: int) -> JudgedStep:
    """A step with the answers about its products, which are the next ones of ``answers``."""
    own = [next(answers) for _ in products]
    suitable = [place for place, one in enumerate(own) if one is not None and one.verdict]
    suitable.sort(key=lambda place: -(own[place].p_yes or 0.0))  # type: ignore[union-attr]
    chosen = {place for place, one in enumerate(own) if one is None} | set(suitable[:keep])
    judged = [
        JudgedProduct(title=product.title, chosen=place in chosen, answer=one)
        for place, (product, one) in enumerate(zip(products, own, strict=True))
    ]
    return JudgedStep(step=step, products=judged)


def _whole(plan: Plan, steps: Sequence[JudgedStep]) -> HolisticRecord:
    """The plan with the chosen products, in the order in which they were given."""
    script = [
        PlannedStep(
            step=step, products=tuple(p for p, judged in zip(products, own.products, strict=True) if judged.chosen)
        )
        for (step, products), own in zip(_options(plan), steps, strict=True)
    ]
    return HolisticRecord(id="-", goal=plan.goal, script=tuple(script))
