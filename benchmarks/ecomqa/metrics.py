"""The benchmark's measures, in percent, from graded lines alone.

A line has ``task``, ``grade`` (correct, wrong, not_attempted), ``form`` (its kind), and where rules read the answer
``label`` and ``said`` (the reference and the answer as one of the form's names) or ``f1`` (of a list).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.metrics import f1_score

from benchmarks.ecomqa.data import SUB_CONCEPTS
from benchmarks.shares import Comparison, Outcomes, compare, mean_share, share
from recipes.intervals import Interval

Line = Mapping[str, Any]


def headline(accuracies: Mapping[str, float]) -> float:
    """The benchmark's average: the unweighted mean over the sub-concepts (the paper's main table)."""
    return sum(accuracies.values()) / len(accuracies)


def outcomes(lines: Sequence[Line]) -> dict[str, list[bool]]:
    """Right or not of each line, by sub-concept in the order of the paper's table."""
    found: dict[str, list[bool]] = {task: [] for task in SUB_CONCEPTS}
    for line in lines:
        found[line["task"]].append(line["grade"] == "correct")
    return {task: right for task, right in found.items() if right}


def measure(lines: Sequence[Line]) -> dict[str, Any]:
    """All measures: for each sub-concept, their unweighted mean, and all questions together."""
    by_task = {task: [line for line in lines if line["task"] == task] for task in outcomes(lines)}
    tasks = {task: {"name": SUB_CONCEPTS[task], **counts(own), **extras(own)} for task, own in by_task.items()}
    return {
        "average": percent(mean_share(outcomes(lines))),
        "sub_concepts": tasks,
        "complete": list(tasks) == list(SUB_CONCEPTS),
        "all": counts(lines),
    }


def counts(lines: Sequence[Line]) -> dict[str, Any]:
    """How many of each grade, and the shares made of them.

    ``attempted`` is the share that gave an answer, right or wrong; ``given_attempted`` the share of right ones among
    those; ``f`` the harmonic mean of accuracy and ``given_attempted`` (as SimpleQA reports).
    """
    grades = [line["grade"] for line in lines]
    n, right, silent = len(grades), grades.count("correct"), grades.count("not_attempted")
    attempted = n - silent
    return {
        "n": n,
        "correct": right,
        "wrong": attempted - right,
        "not_attempted": silent,
        "accuracy": percent(share(right, n)),
        "attempted": 100 * attempted / n,
        "given_attempted": 100 * right / attempted if attempted else None,
        # 2 a b / (a + b) with a = right / n and b = right / attempted
        "f": 100 * 2 * right / (n + attempted),
    }


def extras(lines: Sequence[Line]) -> dict[str, Any]:
    """Macro-F1 over the labels where answers are labels (an unread answer is none of them); mean F1 of lists."""
    labelled = [line for line in lines if line.get("label") is not None and line["form"] in ("label", "yes_no")]
    listed = [line["f1"] or 0.0 for line in lines if line["form"] == "list"]
    found: dict[str, Any] = {}
    if labelled:
        labels = sorted({line["label"] for line in labelled})
        said = [line["said"] or "" for line in labelled]
        gold = [line["label"] for line in labelled]
        found["macro_f1"] = 100 * float(f1_score(gold, said, labels=labels, average="macro", zero_division=0.0))
    if listed:
        found["list_f1"] = 100 * sum(listed) / len(listed)
    return found


def compare_runs(first: Sequence[Line], second: Sequence[Line], resamples: int, seed: int) -> Comparison:
    """A paired comparison over the questions that both runs hold; differences are shares (0 to 1).

    Raises ValueError where they share no question.
    """
    other = {line["id"]: line for line in second}
    common = [line for line in first if line["id"] in other]
    if not common:
        raise ValueError("the two runs share no question; compare runs over the same data")
    paired: Outcomes = outcomes(common)
    return compare(paired, outcomes([other[line["id"]] for line in common]), resamples, seed)


def percent(interval: Interval) -> dict[str, float | None]:
    """An interval of shares in percent."""
    ends = {"value": interval.value, "low": interval.low, "high": interval.high}
    return {name: None if end is None else 100 * end for name, end in ends.items()}
