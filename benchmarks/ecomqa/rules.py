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

from benchmarks.ecomqa.data import NO, YES, Question
from benchmarks.ecomqa.forms import Form, form_of
from benchmarks.ecomqa.normalise import SEPARATORS, bare, contains, mentioned, normal, same, without_cue

Grade = Literal["correct", "wrong", "not_attempted"]

# Other words for a label, and words that hold a label and are none.
ALIASES = {
    "不正确": "错误",
    "不对": "错误",
    "无关": "不相关",
    "怎么挑": "怎么挑/怎么买",
    "怎么买": "怎么挑/怎么买",
    "相关性": "",
    "正确性": "",
    "是否正确": "",
    "是否相关": "",
}
REFUSAL = re.compile(
    r"不知道|不清楚|不确定|无法(?:直接)?(?:回答|确定|判断|提供|得知|给出|查)|没有(?:足够|相关|具体)?的?(?:信息|资料)|"
    r"抱歉|对不起|don't know|do not know|sorry|cannot|can't|unable to"
)
_NO = re.compile(r"^(?:否|不是|不属于|并不|并非|no\b|不(?:$|[,。;]))")
_YES = re.compile(r"^(?:是(?:的|$|[,。;])|属于|yes\b|是.{0,12}(?:$|[,。;]))")
_NO_INSIDE, _YES_INSIDE = re.compile(r"不是|不属于|并非"), re.compile(r"确实是|就是|属于|是一[款台个种件]")
_CONCLUSION = re.compile(r"答案|回答|因此|所以|综上|选择|应为|answer", re.IGNORECASE)
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
    readers: dict[str, Callable[[str, Form], list[str]]] = {"option": read_options, "yes_no": _read_yes_no}
    said = readers.get(form.kind, read_names)(answer, form)
    if len(said) > 1:
        return Ruling(None, tuple(said))
    if not said:
        return Ruling("not_attempted")
    right = any(same(said[0], reference) for reference in question.references)
    return Ruling("correct" if right else "wrong", tuple(said))


def lines_of(answer: str) -> list[str]:
    """The lines of an answer that hold something, without cues."""
    lines = (without_cue(line) for line in without_cue(answer).splitlines())
    return [line for line in lines if any(map(str.isalnum, line))]


def read_names(answer: str, form: Form) -> list[str]:
    """The labels or candidates that an answer names: in its first line, else in a concluding last, else anywhere."""
    names = (*form.names, *(alias for alias, meant in ALIASES.items() if not meant or meant in form.names))
    lines = lines_of(answer)
    last = [line for line in lines[-1:] if _CONCLUSION.search(answer.splitlines()[-1])]
    found: list[str] = []
    for text in [*lines[:1], *last, "\n".join(lines)]:
        found = list(dict.fromkeys(filter(None, (ALIASES.get(name, name) for name in mentioned(text, names)))))
        if len(found) == 1:
            break
    return found


def read_options(answer: str, form: Form) -> list[str]:
    """The option letters that an answer chooses: by letter, or by an option's whole text."""
    letters = "".join(form.names)
    lines = lines_of(answer)
    first = normal(lines[0]).upper() if lines else ""
    if found := re.match(rf"(?:选项?)?[(\[【]?([{letters}])(?![A-Z])", first):
        return [found[1]]
    whole = normal("\n".join(lines)).upper()
    told = re.findall(rf"(?:答案|选项|选择|选|ANSWER)(?:应该|应)?[是为:]*\s*[(\[【]?([{letters}])(?![A-Z])", whole)
    for found_letters in (told[-1:], re.findall(rf"(?<![A-Z])([{letters}])(?![A-Z])", whole)):
        if named := list(dict.fromkeys(found_letters)):
            return named
    return [letter for letter, text in zip(form.names, form.texts, strict=True) if text and contains(whole, text)]


def _read_yes_no(answer: str, form: Form) -> list[str]:
    lines = [normal(line) for line in lines_of(answer)]
    for line in lines[:1]:
        if _NO.match(line):
            return [NO]
        if _YES.match(line):
            return [YES]
    whole = "\n".join(lines)
    return [name for name, inside in ((NO, _NO_INSIDE), (YES, _YES_INSIDE)) if inside.search(whole)]


def _list(question: Question, answer: str, form: Form) -> Ruling:
    """A list whose order is free. One that holds a candidate is taken as it is; prose is searched for candidates."""
    lines = lines_of(answer)
    text = lines[0] if lines else ""
    items = [item for item in SEPARATORS.split(text) if bare(item)]
    known = {bare(name) for name in form.names}
    if not any(bare(item) in known for item in items):
        items = mentioned("\n".join(lines), form.names) or ([] if REFUSAL.search(normal(text)) else items)
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
    if any(same(without_cue(answer), reference, simplify) for reference in question.references):
        return Ruling("correct", (question.gt,))
    lines = lines_of(answer)
    if not lines:
        return Ruling("not_attempted")
    quoted = _QUOTED.findall(lines[0])
    tail = re.split(r"[:：]|(?:是|为)(?=[“\"「『])", lines[0])[-1]
    readings = [lines[0], tail, *(quoted if len(quoted) == 1 else [])]
    if any(same(reading, reference, simplify) for reading in readings for reference in question.references):
        return Ruling("correct", (question.gt,))
    return Ruling("not_attempted" if REFUSAL.search(normal(lines[0])) else "wrong", (lines[0],))


def _phrase(question: Question, answer: str) -> Ruling:
    lines = lines_of(answer)
    if any(contains("\n".join(lines), reference) for reference in question.references):
        return Ruling("correct", (question.gt,))
    silent = not lines or REFUSAL.search(normal(lines[0])) is not None
    return Ruling("not_attempted" if silent else "wrong")
