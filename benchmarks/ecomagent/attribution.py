"""Why tasks fail: every failure is laid to one requirement and its source.

A missed requirement that the agent was never told of is a failure to ask; one that it was told of is a failure to use
what it knew. Of a failed task's missed requirements one is taken for its cause, in this order:

1. the kind of product: an agent that recommends another kind of thing has missed everything else with it;
2. a hidden requirement that it was never told of (persona before clarification): nobody can meet what they do not know;
3. a requirement that it knew, the plainest source first (query, persona, clarification), in the order of the rubric.

A task without a recommendation is laid to how its episode ended instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.ecomagent.grading.grade import Grade, ItemGrade
from benchmarks.ecomagent.tasks import SOURCES
from benchmarks.ecomagent.trajectory import Told, told

NOBODY = Told(False, frozenset())


def attribution(graded: Sequence[tuple[Grade, Mapping[str, Any] | None, int]]) -> dict[str, Any]:
    """Of all failed episodes (grade, prediction, trial): the cause of each, and counts by source, type and fault."""
    causes, missed = [], Counter[tuple[str, str, str]]()
    for grade, record, trial in graded:
        if grade.correct:
            continue
        causes.append({**cause(grade, record), "trial": trial})
        if grade.predicted_id is not None:
            knows = knowledge(grade, record)
            for item in _missed(grade):
                missed[item.item.info_source, item.item.type, _fault(grade, item, knows)] += 1
    return {
        "failed": len(causes),
        "causes": causes,
        "by_source": dict(Counter(str(one["source"]) for one in causes).most_common()),
        "by_type": dict(Counter(str(one["type"]) for one in causes).most_common()),
        "by_fault": dict(Counter(str(one["fault"]) for one in causes).most_common()),
        "missed_items": [
            {"source": source, "type": kind, "fault": fault, "count": count}
            for (source, kind, fault), count in sorted(missed.items())
        ],
    }


def cause(grade: Grade, record: Mapping[str, Any] | None) -> dict[str, Any]:
    """The one requirement that a failed task is laid to; with no recommendation, how the episode ended."""
    if grade.predicted_id is None:
        ended = "missing" if record is None else "error" if record.get("error") else "no_recommendation"
        return {"id": grade.task.id, "rubric_id": None, "source": None, "type": None, "fault": ended, "reason": ""}
    knows = knowledge(grade, record)
    first = min(_missed(grade), key=lambda item: _rank(grade, item, knows))
    return {
        "id": grade.task.id,
        "rubric_id": first.item.id,
        "source": first.item.info_source,
        "type": first.item.type,
        "fault": _fault(grade, first, knows),
        "reason": first.verdict.reason,
    }


def knowledge(grade: Grade, record: Mapping[str, Any] | None) -> Told:
    """What the episode's agent was told."""
    return NOBODY if record is None else told(grade.task, record.get("trajectory") or ())


def _missed(grade: Grade) -> list[ItemGrade]:
    return [item for item in grade.items if not item.verdict.satisfied]


def _fault(grade: Grade, item: ItemGrade, knows: Told) -> str:
    return "known_not_met" if knows.knows(grade.task, item.item) else "never_asked"


def _rank(grade: Grade, item: ItemGrade, knows: Told) -> tuple[int, int, int]:
    """The place of a missed requirement in the order above; smallest is the cause."""
    if item.item.type == "entity_match":
        return 0, 0, 0
    asked = _fault(grade, item, knows) == "known_not_met"
    return 1 + asked, SOURCES.index(item.item.info_source), grade.items.index(item)
