"""What an answer is worth that looks at nothing: the best constant of each answer form, and the copied query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.ecomqa.data import Question
from benchmarks.ecomqa.forms import Kind, form_of, query_of
from benchmarks.ecomqa.normalise import bare, same
from benchmarks.ecomqa.rules import entries_of
from benchmarks.ecomqa.wording import answers

COPY = "the query as it is"


@dataclass(frozen=True)
class Constant:
    """The best answer that never changes, for the questions of one form: right for ``right`` of ``n``."""

    kind: Kind
    answer: str
    right: int
    n: int


@dataclass(frozen=True)
class Baseline:
    """A sub-concept's questions, each form answered by its constant. ``accuracy`` in percent."""

    accuracy: float
    n: int
    constants: tuple[Constant, ...]

    def __str__(self) -> str:
        said = answers(asdict(self))
        return f"always {said}, by kind of question" if len(self.constants) > 1 else f"always {said}"


def baselines(questions: Sequence[Question]) -> dict[str, Baseline]:
    """The baseline of each sub-concept; the constants are chosen on these very questions, which flatters them."""
    found: dict[str, Baseline] = {}
    for task in dict.fromkeys(question.task for question in questions):
        by_kind: dict[Kind, list[Question]] = {}
        for question in questions:
            if question.task == task:
                by_kind.setdefault(form_of(question).kind, []).append(question)
        constants = tuple(_best(kind, asked) for kind, asked in by_kind.items())
        n = sum(constant.n for constant in constants)
        found[task] = Baseline(100 * sum(constant.right for constant in constants) / n, n, constants)
    return found


def _best(kind: Kind, questions: Sequence[Question]) -> Constant:
    """The reference that most questions accept; first come, first served among equals."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for question in questions:
        keys = {_key(kind, reference): reference for reference in question.references}
        counts.update(keys.keys())
        names = {**keys, **names}
    (key, right), *_ = counts.most_common(1)
    if kind == "query" and (copied := sum(map(_copied, questions))) > right:
        return Constant(kind, COPY, copied, len(questions))
    return Constant(kind, names[key], right, len(questions))


def _key(kind: Kind, reference: str) -> str:
    if kind == "list":
        return ",".join(sorted(entries_of(reference)))
    return bare(reference, simplify=kind != "query")


def _copied(question: Question) -> bool:
    query = query_of(question)
    return query is not None and any(same(query, reference, simplify=False) for reference in question.references)
