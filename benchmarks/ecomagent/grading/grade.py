"""Grading a recommendation: each requirement by code where code can tell, by a judge or by words where it cannot.

A task is right when the recommended product is the target or meets every requirement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from benchmarks.ecomagent.catalogue import Catalogue, Product, Review
from benchmarks.ecomagent.grading.attributes import attribute_match, negative_attribute
from benchmarks.ecomagent.grading.judge import Answer, Question, answers
from benchmarks.ecomagent.grading.lexical import entity_match, review_opinion
from benchmarks.ecomagent.grading.numbers import numeric_range
from benchmarks.ecomagent.grading.verdict import Verdict
from benchmarks.ecomagent.grading.vouchers import budget_match
from benchmarks.ecomagent.tasks import RubricItem, Task
from models.generation import Generator

Scope = Literal["open", "all"]
NOTHING_RECOMMENDED = "no product of the catalogue was recommended"


@dataclass(frozen=True)
class ItemGrade:
    """One requirement graded. ``own`` is what code or words say, ``judge`` what the judge says where it was asked."""

    item: RubricItem
    verdict: Verdict
    own: bool | None = None
    judge: bool | None = None
    judge_failed: bool = False

    def record(self) -> dict[str, Any]:
        """As a prediction's evaluation keeps it: the published keys, then where it was seen and who said so."""
        return {
            "rubric_id": self.item.id,
            "satisfied": self.verdict.satisfied,
            "reasoning": self.verdict.reason,
            "type": self.item.type,
            "field": self.item.field,
            "description": self.item.description,
            "info_source": self.item.info_source,
            "evidence": self.verdict.evidence,
            "decided_by": self.verdict.by,
            "own_verdict": self.own,
            "judge_verdict": self.judge,
            "judge_failed": self.judge_failed,
        }


@dataclass(frozen=True)
class Grade:
    """A recommendation graded against its task."""

    task: Task
    predicted_id: str | None
    items: tuple[ItemGrade, ...]

    @property
    def exact(self) -> bool:
        return self.predicted_id == self.task.target_id

    @property
    def all_satisfied(self) -> bool:
        return bool(self.items) and all(item.verdict.satisfied for item in self.items)

    @property
    def correct(self) -> bool:
        return self.exact or self.all_satisfied

    @property
    def satisfied(self) -> int:
        """How many requirements are met."""
        return sum(item.verdict.satisfied for item in self.items)


def grade_all(
    catalogue: Catalogue,
    tasks: Sequence[Task],
    predicted: Sequence[str | None],
    judge: Generator | None = None,
    scope: Scope = "open",
) -> list[Grade]:
    """The grades of recommendations (product ids, None for none), in the order of the tasks.

    Args:
        judge: who is asked about kinds of products, opinions, and attributes that only the features may show; words
            are compared where there is none.
        scope: ``all`` asks the judge about everything, to see how far it agrees with code; what code can tell stays
            code's to decide.
    """
    shown = [_Shown.of(catalogue, product_id) for product_id in predicted]
    grades = [_grade(task, product, name) for task, product, name in zip(tasks, shown, predicted, strict=True)]
    if judge is None:
        return grades
    questions = [_question(grade, product, scope) for grade, product in zip(grades, shown, strict=True)]
    asked = [row for row, question in enumerate(questions) if question is not None]
    given = answers(judge, [question for question in questions if question is not None])
    for row, answer in zip(asked, given, strict=True):
        question = questions[row]
        assert question is not None
        grades[row] = _corrected(grades[row], question, answer)
    return grades


@dataclass(frozen=True)
class _Shown:
    """A product with the reviews that grading reads."""

    product: Product
    reviews: tuple[Review, ...]

    @classmethod
    def of(cls, catalogue: Catalogue, product_id: str | None) -> _Shown | None:
        product = None if product_id is None else catalogue.product(product_id)
        return None if product is None else cls(product, tuple(catalogue.reviews(product.id)))


def _grade(task: Task, shown: _Shown | None, predicted: str | None) -> Grade:
    if shown is None:
        nothing = Verdict(False, NOTHING_RECOMMENDED)
        return Grade(task, None, tuple(ItemGrade(item, nothing) for item in task.rubrics))
    verdicts = [check(item, shown.product, shown.reviews, task) for item in task.rubrics]
    graded = [ItemGrade(item, verdict, verdict.satisfied) for item, verdict in zip(task.rubrics, verdicts, strict=True)]
    return Grade(task, predicted, tuple(graded))


def check(item: RubricItem, product: Product, reviews: Sequence[Review], task: Task) -> Verdict:
    """What code or words say of one requirement; ``task`` is asked for its voucher only."""
    checks: Mapping[str, Callable[[], Verdict]] = {
        "attribute_match": lambda: attribute_match(product, item.attribute or item.field, item.expected_value),
        "negative_attribute": lambda: negative_attribute(product, item.attribute or item.field, item.expected_value),
        "numeric_range": lambda: numeric_range(product, item.field, item.expected_value),
        "budget_match": lambda: budget_match(product, item.expected_value, task.voucher),
        "entity_match": lambda: entity_match(product, _kinds(item)),
        "review_opinion": lambda: review_opinion(reviews, item.expected_value),
        "store_match": lambda: _store(product, item.expected_value),
    }
    return checks[item.type]()


def _kinds(item: RubricItem) -> list[str]:
    """The words for the kind of product that an item has, each once."""
    words = (item.title_span, item.canonical_entity, item.expected_value)
    return list(dict.fromkeys(word for word in words if isinstance(word, str) and word.strip()))


def _store(product: Product, expected: str) -> Verdict:
    met = " ".join(product.store.split()).casefold() == " ".join(expected.split()).casefold()
    return Verdict(met, f"the store is {product.store!r}, asked for {expected!r}", "store")


def _question(grade: Grade, shown: _Shown | None, scope: Scope) -> Question | None:
    """What the judge is asked about a recommendation; None where there is nothing to ask."""
    if shown is None:
        return None
    items = tuple(one.item for one in grade.items if scope == "all" or _is_open(one, shown.product))
    if not items:
        return None
    opinions = any(item.type == "review_opinion" for item in items)
    voucher = grade.task.voucher if any(item.type == "budget_match" for item in items) else None
    return Question(shown.product, items, shown.reviews if opinions else (), voucher)


def _is_open(graded: ItemGrade, product: Product) -> bool:
    """Whether code could not tell: a kind, an opinion, or an attribute that at most the features show."""
    if graded.item.type == "attribute_match":
        return graded.verdict.by == "lexical" and bool(product.features)
    return graded.verdict.by == "lexical"


def _corrected(grade: Grade, question: Question, answer: Answer) -> Grade:
    """The grade with what the judge says, where code could not tell; an item it did not answer keeps its verdict."""
    asked = {item.id for item in question.items}
    graded = []
    for one in grade.items:
        verdict = answer.verdicts.get(one.item.id)
        if one.item.id in asked and verdict is None:
            reason = f"{one.verdict.reason} (the judge gave no usable answer: {answer.problem})"
            one = replace(one, verdict=replace(one.verdict, reason=reason), judge_failed=True)
        elif verdict is not None:
            one = replace(one, judge=verdict.satisfied)
            if one.verdict.by == "lexical":
                one = replace(one, verdict=replace(verdict, evidence=one.verdict.evidence))
        graded.append(one)
    return replace(grade, items=tuple(graded))
