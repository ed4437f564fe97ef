"""The shape of a department file of the shipped sample, and the checks that keep its authors honest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEPARTMENTS = Path(__file__).parent / "departments"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SampleProduct(_Strict):
    """A product that fits its step; ``intents`` say why people buy it ("because they want to ...")."""

    title: Text
    features: Annotated[tuple[Text, ...], Field(min_length=2, max_length=4)]
    category: Text
    price: Annotated[float, Field(gt=0)]
    intents: Annotated[tuple[Text, ...], Field(min_length=3)]


class Lookalike(_Strict):
    """A product whose words suit a step but whose use does not (``step`` is 1-based)."""

    step: Annotated[int, Field(ge=1)]
    title: Text
    features: Annotated[tuple[Text, ...], Field(min_length=2, max_length=4)]
    category: Text
    price: Annotated[float, Field(gt=0)]


class SampleStep(_Strict):
    """One step: ``also`` says the same in other words; a step with products is one that needs a purchase."""

    step: Text
    also: Text
    optional: bool = False
    products: tuple[SampleProduct, ...] = ()

    @property
    def needs_purchase(self) -> bool:
        return bool(self.products)

    @model_validator(mode="after")
    def _enough_products(self) -> SampleStep:
        if self.products and len(self.products) < 2:
            raise ValueError("a step that needs a purchase has at least two fitting products")
        return self


class Defeat(_Strict):
    """A step that sounds like the one it replaces (1-based ``replaces``) and makes the goal fail."""

    replaces: Annotated[int, Field(ge=1)]
    step: Text


class Conflict(_Strict):
    """Two products, each right for its step, that do not work together; "3a" is the first product of step 3."""

    products: Annotated[tuple[Text, Text], Field()]
    why: Text


class SampleGoal(_Strict):
    """A goal with its script. Step numbers are 1-based.

    ``also`` is the goal in other words, ``near`` a goal in similar words that this script does not reach.
    ``order`` lists pairs (earlier, later) whose exchange breaks the script, ``free`` pairs of neighbours whose
    exchange does no harm.
    """

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)+$")]
    goal: Text
    also: Text
    near: Annotated[tuple[Text, ...], Field(min_length=2)]
    steps: Annotated[tuple[SampleStep, ...], Field(min_length=8, max_length=10)]
    order: Annotated[tuple[tuple[int, int], ...], Field(min_length=3)]
    free: Annotated[tuple[tuple[int, int], ...], Field(min_length=1)]
    defeats: Annotated[tuple[Defeat, ...], Field(min_length=3)]
    lookalikes: Annotated[tuple[Lookalike, ...], Field(min_length=4)]
    conflicts: Annotated[tuple[Conflict, ...], Field(min_length=2)]

    def product(self, key: str) -> SampleProduct:
        """The product that a key such as "3a" names."""
        match = re.fullmatch(r"(\d+)([a-z])", key)
        if match is None:
            raise ValueError(f"{key!r} does not name a product; write the step's number and a letter, such as 3a")
        step, place = int(match[1]), ord(match[2]) - ord("a")
        if not 1 <= step <= len(self.steps) or place >= len(self.steps[step - 1].products):
            raise ValueError(f"{key!r} names no product of goal {self.id}")
        return self.steps[step - 1].products[place]

    @model_validator(mode="after")
    def _consistent(self) -> SampleGoal:
        count = len(self.steps)
        for first, second in self.order:
            if not 1 <= first < second <= count:
                raise ValueError(f"order {first, second}: give an earlier and a later step of 1..{count}")
        for first, second in self.free:
            if not (1 <= first <= count - 1 and second == first + 1):
                raise ValueError(f"free {first, second}: give two neighbours of 1..{count}, earlier first")
            if (first, second) in self.order:
                raise ValueError(f"free {first, second} is also listed under order")
        for defeat in self.defeats:
            if defeat.replaces > count:
                raise ValueError(f"a defeat replaces step {defeat.replaces}; there are {count}")
        for lookalike in self.lookalikes:
            if lookalike.step > count or not self.steps[lookalike.step - 1].needs_purchase:
                raise ValueError(f"lookalike {lookalike.title!r}: step {lookalike.step} needs no purchase")
        for conflict in self.conflicts:
            for key in conflict.products:
                self.product(key)
            if conflict.products[0][:-1] == conflict.products[1][:-1]:
                raise ValueError(f"conflict {conflict.products}: give products of two different steps")
        if sum(step.needs_purchase for step in self.steps) < 4:
            raise ValueError("at least four steps need a purchase")
        if not 1 <= sum(step.optional for step in self.steps) <= 4:
            raise ValueError("one to four steps are optional: their absence leaves the script feasible")
        return self


class Department(_Strict):
    """One YAML file: a department of the shop and its goals."""

    department: Text
    goals: Annotated[tuple[SampleGoal, ...], Field(min_length=8)]


def load_departments(folder: Path = DEPARTMENTS) -> list[Department]:
    """Every department of the sample, in file order. Raises ValueError on duplicate goal ids."""
    departments = []
    for path in sorted(folder.glob("*.yaml")):
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
        departments.append(Department.model_validate(data))
    ids = [goal.id for department in departments for goal in department.goals]
    twice = sorted({goal for goal in ids if ids.count(goal) > 1})
    if twice:
        raise ValueError(f"goal ids used twice in the sample: {', '.join(twice)}")
    return departments
