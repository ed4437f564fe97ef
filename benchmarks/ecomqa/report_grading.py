"""The section of a report that says who graded, how the votes fell, and how far the graders agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reporting.markup import Content, Markup, count, joined, number
from reporting.page import Column, Section, paragraph, table

Results = Mapping[str, Any]
HOW = {"unanimous": "all agree", "majority": "by majority", "split": "split", "no_vote": "no readable vote"}


def grading_section(results: Results) -> Section:
    """Who graded what, and whether to trust it."""
    grading = results["grading"]
    parts: list[Markup | None] = [_who(grading)]
    if grading["judges"]:
        parts += [_votes(grading), _agreement(grading), _own(results)]
    elif worded := grading["by_form"]["open"].get("rules", 0):
        told = (
            f"{count(worded)} answers in free text were graded by their wording alone: a right answer in other words "
            "counts as wrong. Model judges (--judges) grade what they mean."
        )
        parts.append(paragraph(told))
    lead = "Rules grade answers of a closed form, judges are models that vote. Unread votes decide nothing."
    return Section("grading", "Who graded", joined(part for part in parts if part is not None), lead)


def _who(grading: Results) -> Markup:
    forms, kinds = grading["by_form"], list(grading["by"])
    rows: list[list[Content]] = [
        [
            "Closed (labels, letters, lists, spans)" if form == "closed" else "Free text",
            *(count(forms[form].get(kind, 0)) for kind in kinds),
        ]
        for form in ("closed", "open")
    ]
    names = {"rules": "Rules", "panel": "Judges", "no_answer": "Nobody: no answer"}
    columns = [Column("Form of the answer"), *(Column(names[kind], "number") for kind in kinds)]
    return table("Grades by who gave them", columns, rows)


def _votes(grading: Results) -> Markup:
    concord = grading["rules_and_judges"]
    rows: list[list[Content]] = [
        [
            judge,
            count(grading["votes"][judge]),
            count(grading["unparsed"][judge]),
            _share(concord[judge]["share"]),
            count(concord[judge]["questions"]),
        ]
        for judge in grading["judges"]
    ]
    numbers = ("Votes", "Unread", "Agrees with rules, %", "on closed answers")
    return table("Judges", [Column("Judge"), *(Column(name, "number") for name in numbers)], rows, True)


def _agreement(grading: Results) -> Markup:
    agreement, how = grading["agreement"], grading["how"]
    fell = ", ".join(f"{HOW[kind]} {count(how.get(kind, 0))}" for kind in HOW)
    given = f"Grades that the votes gave: {fell}."
    if len(grading["judges"]) < 2:
        return paragraph(given)
    kappa = agreement["kappa"]
    said = "has no value (always one grade)" if kappa is None else f"is {kappa:.2f}"
    return paragraph(
        f"Fleiss' kappa {said}, over {count(agreement['questions'])} answers on which every judge has a readable vote; "
        f"on {count(agreement['unanimous'])} of them all agree. {given}"
    )


def _own(results: Results) -> Markup | None:
    """A judge that grades itself is told of."""
    selves = [judge["name"] for judge in results["judges"] if judge["self"]]
    return paragraph(f"The model is its own judge as {', '.join(selves)}.") if selves else None


def _share(value: float | None) -> str:
    return "–" if value is None else number(100 * value, 1)
