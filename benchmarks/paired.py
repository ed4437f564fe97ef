"""Which of two judges is better, on the same records: paired bootstrap, McNemar's test, and what could have been seen.

A paired comparison draws groups of records again and takes both judges' measures on each draw, so that what is hard
for both adds nothing to the doubt about their difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from recipes.intervals import Floats, Interval, interval_of, resampled

# A difference as large is found (its 95 % interval leaves out 0) in four of five comparisons: the normal quantiles of
# 0.975 and 0.8 together (Cohen 1988, chapter 2), in standard errors.
DETECTABLE = 1.96 + 0.84


@dataclass(frozen=True)
class Said:
    """What one judge said of the records, in their order: ``scores`` rank them (only their order counts; None where
    there are none, and then no AUC), ``verdicts`` are 0 or 1."""

    scores: ArrayLike | None
    verdicts: ArrayLike


@dataclass(frozen=True)
class Difference:
    """A measure of the first and the second judge, the second's less the first's with its 95 % interval, and the
    smallest difference that so many records would mostly have shown."""

    first: float | None
    second: float | None
    difference: Interval
    detectable: float | None


def differences(
    labels: ArrayLike, first: Said, second: Said, groups: Sequence[str], resamples: int = 2000, seed: int = 0
) -> dict[str, Difference]:
    """Accuracy, macro-F1 and AUC of two judges compared on the same draws of groups."""
    scored = first.scores is not None and second.scores is not None
    found = [
        resampled(labels, one.scores if scored else one.verdicts, one.verdicts, groups, resamples, seed)  # type: ignore[arg-type]
        for one in (first, second)
    ]
    names = ("accuracy", "macro_f1", "auc") if scored else ("accuracy", "macro_f1")
    return {name: _difference(found[0][name], found[1][name], len(set(groups))) for name in names}


def _difference(first: Floats, second: Floats, groups: int) -> Difference:
    apart = second - first
    drawn = apart[1:][~np.isnan(apart[1:])]
    spread = float(drawn.std(ddof=1)) if groups > 1 and len(drawn) > 1 else 0.0
    detectable = DETECTABLE * spread or None  # draws that are all alike tell nothing of it
    one, other = (None if np.isnan(values[0]) else float(values[0]) for values in (first, second))
    return Difference(one, other, interval_of(apart, groups), detectable)


@dataclass(frozen=True)
class Discordance:
    """How often each judge alone was right, and how often judges equally good would differ in so uneven a way: the
    exact test of McNemar (1947), which takes records as independent."""

    first_only: int
    second_only: int
    p: float


def discordance(first_right: Sequence[bool], second_right: Sequence[bool]) -> Discordance:
    """Compare two judges by the records that only one of them got right."""
    first, second = np.asarray(first_right, bool), np.asarray(second_right, bool)
    one, other = int((first & ~second).sum()), int((second & ~first).sum())
    # The test looks at these two counts alone; how the other records are split does not matter.
    p = float(mcnemar([[0, one], [other, 0]], exact=True).pvalue) if one + other else 1.0
    return Discordance(one, other, p)


def adjusted(p_values: Sequence[float]) -> list[float]:
    """p values of several questions asked at once, so that one of them is as rarely wrong as a single one would be
    (Holm 1979)."""
    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []
