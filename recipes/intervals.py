"""How sure a measured accuracy, macro-F1 or AUC is: bootstrap intervals over groups of records.

Records of one goal resemble each other, so that what is drawn again is the group with all its records, never the
single record (cluster bootstrap: Field and Welsh 2007, "Bootstrapping clustered data"). The interval is the percentile
interval (Efron and Tibshirani 1993, chapter 13): the 2.5th and 97.5th percentile of the measure over the resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
LEVEL = 0.95
CHUNK = 1 << 21  # weights of records held in memory at once


@dataclass(frozen=True)
class Interval:
    """A measure over the records and the ends of its interval; None where the data do not tell.

    ``undefined`` counts the resamples in which the measure does not exist (an AUC without both classes); they are left
    out of the percentiles.
    """

    value: float | None
    low: float | None
    high: float | None
    undefined: int = 0


def resample_groups(groups: int, resamples: int, seed: int) -> NDArray[np.int64]:
    """How often each group is drawn in each resample, [resamples, groups]; each row sums to ``groups``."""
    drawn = np.random.default_rng(seed).integers(groups, size=(resamples, groups))
    drawn += np.arange(resamples)[:, None] * groups
    return np.bincount(drawn.ravel(), minlength=resamples * groups).reshape(resamples, groups)


def bootstrap(
    labels: ArrayLike,
    scores: ArrayLike,
    verdicts: ArrayLike,
    groups: Sequence[str],
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, Interval]:
    """Accuracy, macro-F1 and AUC with 95 % intervals over groups.

    Args:
        labels: 0 or 1, [records].
        scores: what ranks the records (margins or probabilities), [records]; only their order counts.
        verdicts: what was said, 0 or 1, [records].
        groups: the group of each record. With a single group there is nothing to resample, and no interval.

    Raises ValueError where there are no records or the lengths differ.
    """
    measures = resampled(labels, scores, verdicts, groups, resamples, seed)
    return {name: interval_of(values, len(set(groups))) for name, values in measures.items()}


def resampled(
    labels: ArrayLike, scores: ArrayLike, verdicts: ArrayLike, groups: Sequence[str], resamples: int, seed: int
) -> dict[str, Floats]:
    """Accuracy, macro-F1 and AUC of the records themselves and then of each resample, [1 + resamples].

    The same groups and seed draw the same resamples, so that those of two judges can be taken from each other.
    """
    y, s, said = np.asarray(labels, np.int64), np.asarray(scores, np.float64), np.asarray(verdicts, np.int64)
    if not len(y) or not len(y) == len(s) == len(said) == len(groups):
        raise ValueError(
            f"{len(y)} labels, {len(s)} scores, {len(said)} verdicts, {len(groups)} groups; give one of each a record"
        )
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    draws = np.concatenate([np.ones((1, len(names)), np.int64), resample_groups(len(names), resamples, seed)])
    accuracy, macro_f1 = _from_counts(draws @ _outcomes(y, said, member, len(names)))
    return {"accuracy": accuracy, "macro_f1": macro_f1, "auc": _auc(draws, y, s, member)}


def interval_of(values: Floats, groups: int) -> Interval:
    """A measure with its percentile interval: the first of ``values`` is that of the records themselves, the others
    those of the resamples."""
    value = None if np.isnan(values[0]) else float(values[0])
    defined = values[1:][~np.isnan(values[1:])]
    undefined = len(values) - 1 - len(defined)
    if value is None or groups < 2 or not len(defined):
        return Interval(value, None, None, undefined)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(defined, [tail, 100 - tail])
    return Interval(value, float(low), float(high), undefined)


def _outcomes(
    y: NDArray[np.int64], said: NDArray[np.int64], member: NDArray[np.intp], groups: int
) -> NDArray[np.int64]:
    """True no, false yes, false no, true yes of each group, [groups, 4]."""
    table = np.zeros((groups, 4), np.int64)
    np.add.at(table, (member, 2 * y + said), 1)
    return table


def _from_counts(counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Accuracy and macro-F1 of each row of outcome counts; the F1 of a class neither present nor said is 0."""
    true_no, false_yes, false_no, true_yes = counts.T.astype(np.float64)
    wrong = false_yes + false_no
    f1_yes = 2 * true_yes / np.maximum(2 * true_yes + wrong, 1)
    f1_no = 2 * true_no / np.maximum(2 * true_no + wrong, 1)
    return (true_yes + true_no) / counts.sum(axis=1), (f1_yes + f1_no) / 2


def _auc(draws: NDArray[np.int64], y: NDArray[np.int64], scores: Floats, member: NDArray[np.intp]) -> Floats:
    """The area under the ROC curve in each row of draws: the share of (yes, no) pairs ranked right, ties as half."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(scores[order]) > 0]))
    yes = (y[order] == 1).astype(np.float64)
    areas = np.empty(len(draws))
    rows = max(1, CHUNK // len(y))
    for start in range(0, len(draws), rows):
        weights = draws[start : start + rows][:, member[order]].astype(np.float64)
        positive = np.add.reduceat(weights * yes, starts, axis=1)
        negative = np.add.reduceat(weights * (1 - yes), starts, axis=1)
        right = (positive * (np.cumsum(negative, axis=1) - negative / 2)).sum(axis=1)
        pairs = positive.sum(axis=1) * negative.sum(axis=1)
        areas[start : start + rows] = np.where(pairs > 0, right / np.maximum(pairs, 1), np.nan)
    return areas


def ratio(
    numerators: ArrayLike, denominators: ArrayLike, groups: Sequence[str], resamples: int = 2000, seed: int = 0
) -> Interval:
    """The sum of the numerators over that of the denominators, with its 95 % interval over groups.

    A mean is a ratio whose denominators are 1. There is no value where the denominators sum to 0.

    Args:
        numerators, denominators: of each record, [records].
        groups: the group of each record; no interval with fewer than two.
    """
    if not len(groups):
        return Interval(None, None, None)
    above, below = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    names, member = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    sums = np.stack([np.bincount(member, part, minlength=len(names)) for part in (above, below)], axis=1)
    draws = np.concatenate([np.ones((1, len(names)), np.int64), resample_groups(len(names), resamples, seed)])
    totals = draws @ sums
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(totals[:, 1] > 0, totals[:, 0] / totals[:, 1], np.nan)
    return interval_of(values, len(names))
