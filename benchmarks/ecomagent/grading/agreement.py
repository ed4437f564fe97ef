"""How far code and judge agree where both have graded: shares and Cohen's kappa, by type of requirement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.metrics import cohen_kappa_score

from benchmarks.ecomagent.grading.grade import Grade, ItemGrade


def agreement(grades: Iterable[Grade]) -> dict[str, dict[str, Any]]:
    """Type of requirement (or "all") -> items that both graded, the share they agree on, kappa, who alone said yes.

    Kappa is None where both say the same of every item: chance agreement is then 1 and kappa is not defined. Items that
    the judge was asked about and did not answer are counted as ``judge_failed``.
    """
    items = [item for grade in grades for item in grade.items if item.own is not None]
    types = sorted({item.item.type for item in items if item.judge is not None or item.judge_failed})
    groups: dict[str, list[ItemGrade]] = {name: [item for item in items if item.item.type == name] for name in types}
    if types:
        groups["all"] = items
    return {name: _compared(found) for name, found in groups.items()}


def _compared(items: list[ItemGrade]) -> dict[str, Any]:
    both = [(bool(item.own), item.judge) for item in items if item.judge is not None]
    own, judge = [pair[0] for pair in both], [bool(pair[1]) for pair in both]
    constant = len({*own, *judge}) < 2
    return {
        "items": len(both),
        "agreement": sum(a == b for a, b in zip(own, judge, strict=True)) / len(both) if both else None,
        "kappa": None if constant else float(cohen_kappa_score(own, judge)),
        "only_own_yes": sum(a and not b for a, b in zip(own, judge, strict=True)),
        "only_judge_yes": sum(b and not a for a, b in zip(own, judge, strict=True)),
        "judge_failed": sum(item.judge_failed for item in items),
    }
