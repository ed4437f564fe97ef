"""How sure shares of right answers are, over one set of questions or as the mean over several, and how two compare.

The questions of a set are taken as drawn independently. Differences between two runs are bootstrapped within each set
(stratified bootstrap), with the percentile interval that recipes.intervals uses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from recipes.intervals import LEVEL, Interval

Outcomes = Mapping[str, Sequence[bool]]


def share(right: int, total: int) -> Interval:
    """A share with Wilson's interval; None throughout where there is nothing to count.

    The limits of none and of all are 0 and 1 by the formula; that its rounding does not miss them is seen to here.
    """
    if not total:
        return Interval(None, None, None)
    low, high = proportion_confint(right, total, alpha=1 - LEVEL, method="wilson")
    return Interval(right / total, float(low) if right else 0.0, float(high) if right < total else 1.0)


def mean_share(outcomes: Outcomes) -> Interval:
    """The unweighted mean of the sets' shares, with the interval that their Wilson intervals come to.

    The method of variance estimates recovery (MOVER; Zou and Donner 2008, "Construction of confidence limits about
    effect measures: a general approach", Statistics in Medicine 27): of independent shares p_i with limits l_i and u_i
    and weights w_i, here 1 over the number of sets,

        low = p - sqrt(sum w_i^2 (p_i - l_i)^2), high = p + sqrt(sum w_i^2 (u_i - p_i)^2).

    Unlike a bootstrap's it keeps its width where all questions of each set are right, or all wrong. That of a single
    set is its Wilson interval.

    Args:
        outcomes: right or not of each question, by set; none is empty.
    """
    sets = [share(sum(answers), len(answers)) for answers in outcomes.values()]
    if len(sets) == 1:
        return sets[0]
    value, low, high = (np.array([getattr(one, end) for one in sets]) for end in ("value", "low", "high"))
    mean = float(value.mean())
    below, above = (math.hypot(*(side / len(sets))) for side in (value - low, high - value))
    return Interval(mean, mean - below, mean + above)


@dataclass(frozen=True)
class Comparison:
    """Two runs over the same questions.

    Attributes:
        difference: the first's mean share less the second's, with its interval.
        first_only, second_only: questions that only one of them got right.
        p: of McNemar's exact test over all questions: how often equally good runs would differ in so uneven a way.
    """

    n: int
    difference: Interval
    first_only: int
    second_only: int
    p: float


def compare(first: Outcomes, second: Outcomes, resamples: int = 10_000, seed: int = 0) -> Comparison:
    """A paired comparison: what is drawn again is the question with both outcomes.

    Args:
        first, second: right or not of each question, by set; the same questions in the same order.
    """
    chance = np.random.default_rng(seed)
    differences: list[float] = []
    drawn: list[NDArray[np.float64]] = []
    first_only = second_only = 0
    for name, outcomes in first.items():
        pairs = np.asarray(outcomes, np.int64) - np.asarray(second[name], np.int64)
        n, won, lost = len(pairs), int((pairs == 1).sum()), int((pairs == -1).sum())
        counts = chance.multinomial(n, [won / n, lost / n, (n - won - lost) / n], resamples)
        differences.append((won - lost) / n)
        drawn.append((counts[:, 0] - counts[:, 1]) / n)
        first_only, second_only = first_only + won, second_only + lost
    total = sum(map(len, first.values()))
    # The test looks at the two questions-of-one-only counts; how the others are split does not matter.
    table = [[total - first_only - second_only, first_only], [second_only, 0]]
    p = float(mcnemar(table, exact=True).pvalue) if first_only + second_only else 1.0
    difference = _interval(float(np.mean(differences)), np.mean(drawn, axis=0))
    return Comparison(total, difference, first_only, second_only, p)


def _interval(value: float, drawn: NDArray[np.float64]) -> Interval:
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Interval(value, float(low), float(high))
