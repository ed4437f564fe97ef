"""How a report shows answers: columns to filter by, what an answer opens to, and examples of each grade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.ecomqa.grading import GRADES
from benchmarks.ecomqa.pictures import task_label
from benchmarks.ecomqa.rag import without_markers
from reporting.markup import Markup, tag
from reporting.page import grid, paragraph
from reporting.records import Field, Shown, short_list

Line = Mapping[str, Any]
GRADE_NAMES = {"correct": "Correct", "wrong": "Wrong", "not_attempted": "Not attempted"}
EXAMPLES = 4  # of each grade
TITLE = 90  # characters of a question that name it
BY = {"rules": "rules", "panel": "judges", "no_answer": "no answer"}


def fields_of(lines: Sequence[Line]) -> list[Field]:
    """The columns; what is the same for all answers is left out."""
    fields = [
        Field("grade", "Grade", "choice", tones={"Correct": "good", "Wrong": "bad"}),
        Field("task", "Sub-concept", "choice"),
        Field("asked", "Asked", "choice"),
        Field("by", "Graded by", "choice"),
        Field("how", "Votes", "choice"),
        Field("form", "Form", "choice", column=False),
        Field("finish", "Ended", "choice", column=False),
        Field("confidence", "Confidence", "number", 0),
        Field("tokens", "Tokens", "number", 0),
    ]
    values = [values_of(line) for line in lines]
    return [one for one in fields if one.key in ("grade", "task") or len({each[one.key] for each in values}) > 1]


def values_of(line: Line) -> dict[str, str | float | int | None]:
    return {
        "grade": GRADE_NAMES[line["grade"]],
        "task": task_label(line["task"]),
        "asked": line.get("asked", "plain"),
        "by": BY[line["by"]],
        "how": line["how"].replace("_", " ") if line["by"] == "panel" else None,
        "form": line["form"].replace("_", " "),
        "finish": {"length": "cut by the limit", "too_long": "not asked: too long"}.get(line["finish"], "by itself"),
        "confidence": line.get("confidence"),
        "tokens": line["tokens"],
    }


def shown(line: Line, prompt: str | None = None) -> Shown:
    """An answer with all that is known of it, named by ``prompt`` where that is not its own."""
    body = [
        ("Question", line["prompt"]),
        ("Reference", "\n".join(line["references"])),
        ("Answer", line["answer"] or "(none)"),
        ("Reasoning", _ended(line["trace"], line["unfinished"])),
        (
            "Judges",
            "\n".join(f"{vote['judge']}: {_grade(vote['grade'])}: {vote['text'].strip()}" for vote in line["votes"]),
        ),
        ("Rules", _grade(line["rules"]["grade"]) + "".join(f"; read as {said}" for said in line["rules"]["said"])),
        ("Retrieved", ", ".join(line.get("retrieved", ()))),
        ("Id", line["id"]),
    ]
    return Shown(
        _title(line["task"], prompt or line["prompt"]), values_of(line), [(name, text) for name, text in body if text]
    )


def examples(lines: Sequence[Line]) -> Markup:
    """Some answers of each grade, from as many sub-concepts as there are."""
    told = [Field("task", "Sub-concept"), Field("by", "Graded by")]
    parts = []
    for grade in GRADES:
        chosen = _spread([line for line in lines if line["grade"] == grade])
        body = short_list(told, [shown(line) for line in chosen]) if chosen else paragraph("None.")
        parts.append(tag("div", tag("h3", GRADE_NAMES[grade]), body))
    return grid(*parts)


def _spread(lines: Sequence[Line]) -> list[Line]:
    """The first answer of each sub-concept, then the second of each, until there are enough."""
    seen: dict[str, int] = {}
    rounds = []
    for line in lines:
        seen[line["task"]] = turn = seen.get(line["task"], 0) + 1
        rounds.append((turn, line))
    return [line for _, line in sorted(rounds, key=lambda pair: pair[0])[:EXAMPLES]]


def _title(task: str, prompt: str) -> str:
    """What a question is about: of a shopper's profile the options, elsewhere what stands before the candidates."""
    before, _, after = prompt.partition("候选")
    text = without_markers((after.partition("：")[2] if task == "PC" else before).rstrip("*\n"))
    return text if len(text) <= TITLE else text[:TITLE] + "…"


def _ended(trace: str | None, unfinished: bool) -> str:
    return (trace or "") + ("\n(it never ended)" if unfinished else "")


def _grade(grade: str | None) -> str:
    return "unread" if grade is None else GRADE_NAMES[grade]
