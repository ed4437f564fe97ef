"""From graded episodes to numbers. Every task counts: one without a prediction, or whose episode crashed, is wrong.

Names are those of the published summary where it has the number. `published_denominators` repeats the headline numbers
as the published evaluation divides them (crashed episodes left out), for comparison with its table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from statistics import median
from typing import Any

from benchmarks.ecomagent.attribution import attribution
from benchmarks.ecomagent.grading.grade import Grade, ItemGrade
from benchmarks.ecomagent.tasks import ITEM_TYPES, SOURCES
from benchmarks.ecomagent.trajectory import told
from benchmarks.shares import share as wilson
from recipes.intervals import Interval, ratio

EXAMPLES = 20
IMPLICIT_LEVELS = (("0-1", 0, 1), ("2", 2, 2), ("3+", 3, 1_000_000))


@dataclass(frozen=True)
class Outcome:
    """A graded episode. ``record`` is its prediction, None where there is none; ``trial`` counts from 1."""

    grade: Grade
    record: Mapping[str, Any] | None
    trial: int = 1

    @property
    def crashed(self) -> bool:
        return bool(self.record and self.record.get("error"))

    def number(self, name: str) -> float:
        """A number of the record; 0 where there is no record or no such number."""
        value = self.record.get(name) if self.record else None
        return float(value) if value is not None else 0.0


@dataclass(frozen=True)
class Resampling:
    """How intervals are drawn: tasks are resampled, each with all its trials.

    A share of tasks that were played once has Wilson's interval instead, which does not shrink to a point where all
    tasks went the same way.
    """

    resamples: int = 2000
    seed: int = 0

    def share(self, outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> dict[str, Any]:
        """Value, low and high of the share of episodes of which something holds."""
        if len({outcome.grade.task.id for outcome in outcomes}) < len(outcomes):
            return self.ratio(outcomes, holds, lambda _: 1.0)
        return _ends_of(wilson(sum(map(holds, outcomes)), len(outcomes)))

    def ratio(
        self, outcomes: Sequence[Outcome], above: Callable[[Outcome], float], below: Callable[[Outcome], float]
    ) -> dict[str, Any]:
        """Value, low and high of a ratio of sums over episodes."""
        groups = [outcome.grade.task.id for outcome in outcomes]
        found = ratio(
            [above(outcome) for outcome in outcomes],
            [below(outcome) for outcome in outcomes],
            groups,
            self.resamples,
            self.seed,
        )
        return _ends_of(found)


def _ends_of(interval: Interval) -> dict[str, Any]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def measure(outcomes: Sequence[Outcome], resampling: Resampling) -> dict[str, Any]:
    """The summary of an evaluation; intervals are 95 % bootstrap intervals over tasks."""
    return {
        **headline(outcomes),
        "intervals": intervals(outcomes, resampling),
        "by_source": by_source(outcomes, resampling),
        "by_rubric_type": by_type(outcomes, resampling),
        "by_intent": by_intent(outcomes, resampling),
        "by_implicit_count": by_implicit_count(outcomes, resampling),
        "persona_utilization": persona_utilization(outcomes),
        "clarification_efficiency": clarification_efficiency(outcomes),
        "attribution": attribution([(outcome.grade, outcome.record, outcome.trial) for outcome in outcomes]),
        "stop_reasons": dict(Counter(stop_reason(outcome) for outcome in outcomes).most_common()),
        "cost": cost(outcomes),
        "trials": trials(outcomes),
        "published_denominators": published_denominators(outcomes),
    }


def headline(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts and shares over all episodes."""
    grades = [outcome.grade for outcome in outcomes]
    total, items = len(grades), sum(len(grade.items) for grade in grades)
    correct, exact = sum(grade.correct for grade in grades), sum(grade.exact for grade in grades)
    satisfied = sum(grade.satisfied for grade in grades)
    named = sum(grade.predicted_id is not None for grade in grades)
    crashed = [outcome for outcome in outcomes if outcome.crashed]
    calls = [outcome.number("total_tool_calls") for outcome in outcomes]
    reasons = Counter(item.verdict.reason for grade in grades for item in grade.items if not item.verdict.satisfied)
    return {
        "total_samples": total,
        "tasks": len({grade.task.id for grade in grades}),
        "evaluated_samples": total - len(crashed),
        "missing_predictions": sum(outcome.record is None for outcome in outcomes),
        "overall_accuracy": share(correct, total),
        "total_correct": correct,
        "exact_match_correct": exact,
        "exact_match_rate": share(exact, total),
        "non_exact_but_correct": correct - exact,
        "non_exact_but_correct_rate": share(correct - exact, total),
        "judge_only_correct": sum(grade.all_satisfied for grade in grades),
        "judge_misjudged_count": sum(grade.exact and not grade.all_satisfied for grade in grades),
        "overall_rubric_satisfaction": share(satisfied, items),
        "total_rubrics": items,
        "satisfied_rubrics": satisfied,
        "prediction_finished_count": named,
        "prediction_unfinished_count": total - named,
        "prediction_finished_rate": share(named, total),
        "runtime_error_count": len(crashed),
        "runtime_error_rate": share(len(crashed), total),
        "runtime_error_examples": [_crash(outcome) for outcome in crashed[:EXAMPLES]],
        "avg_tool_calls": share(sum(calls), total),
        "median_tool_calls": median(calls) if calls else None,
        "top_failure_reasons": [{"reason": reason, "count": count} for reason, count in reasons.most_common(EXAMPLES)],
    }


def share(part: float, whole: float) -> float | None:
    """A ratio; None where there is nothing to divide by."""
    return part / whole if whole else None


def _crash(outcome: Outcome) -> dict[str, Any]:
    assert outcome.record is not None
    return {"id": outcome.grade.task.id, "trial": outcome.trial, "error_message": outcome.record["error"]}


def intervals(outcomes: Sequence[Outcome], resampling: Resampling) -> dict[str, Any]:
    """The headline ratios with their intervals."""
    return {
        "overall_accuracy": resampling.share(outcomes, lambda outcome: outcome.grade.correct),
        "exact_match_rate": resampling.share(outcomes, lambda outcome: outcome.grade.exact),
        "overall_rubric_satisfaction": resampling.ratio(
            outcomes, lambda outcome: outcome.grade.satisfied, lambda outcome: len(outcome.grade.items)
        ),
        "prediction_finished_rate": resampling.share(outcomes, lambda outcome: outcome.grade.predicted_id is not None),
        "avg_tool_calls": resampling.ratio(outcomes, lambda outcome: outcome.number("total_tool_calls"), lambda _: 1.0),
    }


def _satisfaction(
    outcomes: Sequence[Outcome], chosen: Callable[[ItemGrade], bool], resampling: Resampling
) -> dict[str, Any]:
    """How many of the chosen requirements are met."""

    def count(outcome: Outcome) -> int:
        return sum(map(chosen, outcome.grade.items))

    def met(outcome: Outcome) -> int:
        return sum(item.verdict.satisfied for item in outcome.grade.items if chosen(item))

    found = resampling.ratio(outcomes, met, count)
    return {
        "count": sum(map(count, outcomes)),
        "satisfied": sum(map(met, outcomes)),
        "satisfaction": found["value"],
        "low": found["low"],
        "high": found["high"],
    }


def by_source(outcomes: Sequence[Outcome], resampling: Resampling) -> dict[str, Any]:
    """Satisfaction of the requirements of each source."""
    return {name: _satisfaction(outcomes, partial(_has, "info_source", name), resampling) for name in SOURCES}


def by_type(outcomes: Sequence[Outcome], resampling: Resampling) -> dict[str, Any]:
    """Satisfaction of each type of requirement that occurs."""
    there = {item.item.type for outcome in outcomes for item in outcome.grade.items}
    return {
        name: _satisfaction(outcomes, partial(_has, "type", name), resampling) for name in ITEM_TYPES if name in there
    }


def _has(field: str, value: str, item: ItemGrade) -> bool:
    return bool(getattr(item.item, field) == value)


def by_intent(outcomes: Sequence[Outcome], resampling: Resampling) -> dict[str, Any]:
    """The headline of each intent, in the order in which they occur."""
    found = {}
    for name in dict.fromkeys(outcome.grade.task.intent_category for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.grade.task.intent_category == name]
        accuracy = resampling.share(own, lambda outcome: outcome.grade.correct)
        head = headline(own)
        found[name] = {
            "accuracy": accuracy["value"],
            "low": accuracy["low"],
            "high": accuracy["high"],
            "rubric_satisfaction": head["overall_rubric_satisfaction"],
            "count": len(own),
            "correct": head["total_correct"],
            **{key: head[key] for key in _OF_INTENT},
        }
    return found


_OF_INTENT = (
    "exact_match_correct",
    "non_exact_but_correct",
    "judge_only_correct",
    "evaluated_samples",
    "runtime_error_count",
)


def by_implicit_count(outcomes: Sequence[Outcome], resampling: Resampling) -> dict[str, Any]:
    """Accuracy by the number of requirements that the query only hints at."""
    found = {}
    for name, low, high in IMPLICIT_LEVELS:
        own = [outcome for outcome in outcomes if low <= len(outcome.grade.task.implicit_rubric_ids) <= high]
        if own:
            accuracy = resampling.share(own, lambda outcome: outcome.grade.correct)
            found[name] = {"count": len(own), "accuracy": accuracy["value"], **_ends(accuracy)}
    return found


def _ends(interval: Mapping[str, Any]) -> dict[str, Any]:
    return {"low": interval["low"], "high": interval["high"]}


def persona_utilization(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """How many episodes asked for the profile."""
    called = sum(outcome.number("get_profile_calls") > 0 for outcome in outcomes)
    return {"profile_called_count": called, "profile_called_rate": share(called, len(outcomes))}


def clarification_efficiency(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Questions asked, and how many of the scripted answers they brought out."""
    asked = [outcome.number("ask_user_calls") for outcome in outcomes]
    slots = sum(len(outcome.grade.task.clarification_script.clarification_slots) for outcome in outcomes)
    revealed = sum(
        len(told(outcome.grade.task, outcome.record.get("trajectory") or ()).slots)
        for outcome in outcomes
        if outcome.record is not None
    )
    return {
        "total_ask_user_calls": int(sum(asked)),
        "avg_ask_user_calls": share(sum(asked), len(outcomes)),
        "median_ask_user_calls": median(asked) if asked else None,
        "total_clarification_slots": slots,
        "revealed_slots": revealed,
        "trigger_rate": share(revealed, slots),
        "slots_per_question": share(revealed, sum(asked)),
    }


def stop_reason(outcome: Outcome) -> str:
    """How an episode ended; predictions of other tools do not say, and are told apart as far as they can be."""
    if outcome.record is None:
        return "missing"
    if outcome.crashed:
        return "error"
    if told_reason := outcome.record.get("stop_reason"):
        return str(told_reason)
    if outcome.grade.predicted_id is not None:
        return "recommended"
    return "no_recommendation" if outcome.record.get("finished") else "budget"


def cost(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Tokens, seconds and turns an episode, over the episodes whose records tell them."""
    table = {}
    for name in ("input_tokens", "computed_tokens", "output_tokens", "seconds", "turns"):
        told_of = [outcome.record[name] for outcome in outcomes if outcome.record and name in outcome.record]
        values = [value for value in told_of if value is not None]
        if values:
            table[name] = {"mean": sum(values) / len(values), "median": median(values), "total": sum(values)}
    return table


def trials(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Repeated trials: accuracy of each, and pass^k, the chance that k random trials of a task are all right.

    With c of n trials right, that chance is C(c, k) / C(n, k) for a task (Yao et al. 2024, "tau-bench"), here averaged
    over the tasks that have all n trials.
    """
    right: dict[str, list[bool]] = {}
    for outcome in outcomes:
        right.setdefault(outcome.grade.task.id, []).append(outcome.grade.correct)
    n = max(map(len, right.values()), default=0)
    whole = [sum(verdicts) for verdicts in right.values() if len(verdicts) == n]
    by_trial = {
        str(number): share(*_right(outcome for outcome in outcomes if outcome.trial == number))
        for number in sorted({outcome.trial for outcome in outcomes})
    }
    return {
        "trials": n,
        "accuracy_by_trial": by_trial,
        "pass_hat_k": {str(k): sum(comb(c, k) / comb(n, k) for c in whole) / len(whole) for k in range(1, n + 1)},
    }


def _right(outcomes: Iterable[Outcome]) -> tuple[int, int]:
    verdicts = [outcome.grade.correct for outcome in outcomes]
    return sum(verdicts), len(verdicts)


def published_denominators(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Headline numbers as the published evaluation divides them.

    It leaves out tasks without a prediction and, of accuracy and satisfaction, crashed episodes; it takes every episode
    that ended by itself for finished, with a product or without; it divides questions of all episodes by the number of
    those that did not crash.
    """
    there = [outcome for outcome in outcomes if outcome.record is not None]
    valid = [outcome for outcome in there if not outcome.crashed]
    finished = sum(bool(outcome.record and outcome.record.get("finished")) for outcome in there)
    items = sum(len(outcome.grade.items) for outcome in valid)
    return {
        "overall_accuracy": share(*_right(valid)),
        "overall_rubric_satisfaction": share(sum(outcome.grade.satisfied for outcome in valid), items),
        "prediction_finished_rate": share(finished, len(there)),
        "avg_tool_calls": share(sum(outcome.number("total_tool_calls") for outcome in there), len(there)),
        "avg_ask_user_calls": share(sum(outcome.number("ask_user_calls") for outcome in there), len(valid)),
        "profile_called_rate": share(sum(outcome.number("get_profile_calls") > 0 for outcome in valid), len(valid)),
    }
