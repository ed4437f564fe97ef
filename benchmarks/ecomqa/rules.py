"""A judge without a model: answers of a closed form are read, and held against the reference.

What cannot be read in one way only gets no grade (an unparsed vote), and what names nothing is Not Attempted. Free
text is held against the reference too (does the answer contain it?), but there a rule only sees wording: a right
answer in other words counts as wrong, so that a model judge belongs beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from benchmarks.ecomqa.data import Question
from benchmarks.ecomqa.denial import turned_down
from benchmarks.ecomqa.forms import Form, form_of
from benchmarks.ecomqa.listing import listed
from benchmarks.ecomqa.normalise import SEPARATORS, bare, contains, normal, places, same, without_cue
from benchmarks.ecomqa.readings import Reading, lines_of, named, read_names, read_options, read_yes_no

Grade = Literal["correct", "wrong", "not_attempted"]

REFUSAL = re.compile(
    r"不知道|不清楚|不确定|无法(?:直接)?(?:回答|确定|判断|提供|得知|给出|查)|没有(?:足够|相关|具体)?的?(?:信息|资料)|"
    r"抱歉|对不起|don't know|do not know|sorry|cannot|can't|unable to"
)
_QUOTED = re.compile(r"[“\"「『‘']([^“”\"「」『』‘’']+)[”\"」』’']")


@dataclass(frozen=True)
class Ruling:
    """``said`` is what the answer was read as; ``f1`` the F1 of a list against the reference's entries."""

    grade: Grade | None
    said: tuple[str, ...] = ()
    f1: float | None = None


def rule(question: Question, answer: str, form: Form | None = None) -> Ruling:
    """The grade of an answer (its trace taken off); None where it can be read in several ways."""
    form = form or form_of(question)
    if form.kind == "list":
        return _list(question, answer, form)
    if form.kind in ("span", "query"):
        return _text(question, answer, simplify=form.kind == "span")
    if form.kind == "phrase":
        return _phrase(question, answer)
    if any(same(without_cue(answer), reference) for reference in question.references):
        return Ruling("correct", (question.gt,))
    readers: dict[str, Callable[[str, Form], Reading]] = {"option": read_options, "yes_no": read_yes_no}
    read = readers.get(form.kind, read_names)(answer, form)
    if not read.names:
        return Ruling("not_attempted")
    if not read.clear:
        return Ruling(None, read.names if len(read.names) > 1 else ())
    right = any(same(read.names[0], reference) for reference in question.references)
    return Ruling("correct" if right else "wrong", read.names)


def _list(question: Question, answer: str, form: Form) -> Ruling:
    """A list whose order is free. One that holds a candidate is taken as it is; prose is searched for candidates."""
    items = listed(answer, form.names)
    if not items:
        lines = lines_of(answer)
        read = named("\n".join(lines), form)
        if read.denied:
            return Ruling(None, read.names)
        silent = not lines or REFUSAL.search(normal(lines[0])) is not None
        items = list(read.names) or ([] if silent else [item for item in SEPARATORS.split(lines[0]) if bare(item)])
    if not items:
        return Ruling("not_attempted")
    said = {bare(item) for item in items}
    f1 = max(_f1(said, entries_of(reference)) for reference in question.references)
    return Ruling("correct" if f1 == 1 else "wrong", tuple(dict.fromkeys(items)), f1)


def entries_of(reference: str) -> set[str]:
    """The entries of a list, normalised."""
    return {bare(item) for item in SEPARATORS.split(reference) if bare(item)}


def _f1(said: set[str], wanted: set[str]) -> float:
    return 2 * len(said & wanted) / (len(said) + len(wanted))


def _text(question: Question, answer: str, simplify: bool) -> Ruling:
    """A text that must be the reference itself: alone, on the first line, in quotes, or behind a colon."""

    def same_text(text: str) -> bool:
        return any(same(text, reference, simplify) for reference in question.references)

    if same_text(without_cue(answer)):
        return Ruling("correct", (question.gt,))
    lines = lines_of(answer)
    if not lines:
        return Ruling("not_attempted")
    if same_text(lines[0]):
        return Ruling("correct", (question.gt,))
    quoted = _QUOTED.findall(lines[0])
    tail = re.split(r"[:：]|(?:是|为)(?=[“\"「『])", lines[0])[-1]
    if any(map(same_text, [tail, *(quoted if len(quoted) == 1 else [])])):
        return Ruling(None) if _denied(lines[0], question, simplify) else Ruling("correct", (question.gt,))
    return Ruling("not_attempted" if REFUSAL.search(normal(lines[0])) else "wrong", (lines[0],))


def _phrase(question: Question, answer: str) -> Ruling:
    lines = lines_of(answer)
    text = "\n".join(lines)
    if any(contains(text, reference) for reference in question.references):
        return Ruling(None) if _denied(text, question) else Ruling("correct", (question.gt,))
    silent = not lines or REFUSAL.search(normal(lines[0])) is not None
    return Ruling("not_attempted" if silent else "wrong")


def _denied(text: str, question: Question, simplify: bool = True) -> bool:
    """Whether a text turns down the reference wherever it names it."""
    plain = normal(text, simplify)
    found = places(plain, question.references)
    return bool(found) and all(turned_down(plain, start, end) for _, start, end in found)
