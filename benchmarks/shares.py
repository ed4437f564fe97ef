"""How sure shares of right answers are, over one set of questions or as the mean over several, and how two compare.

The questions of a set are taken as drawn independently. The mean over sets is bootstrapped within each set (stratified
bootstrap), with the percentile interval that recipes.intervals uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from recipes.intervals import LEVEL, Interval

Outcomes = Mapping[str, Sequence[bool]]


def share(right: int, total: int) -> Interval:
    """A share with Wilson's interval; None throughout where there is nothing to count."""
    if not total:
        return Interval(None, None, None)
    low, high = proportion_confint(right, total, alpha=1 - LEVEL, method="wilson")
    return Interval(right / total, float(low), float(high))


def mean_share(outcomes: Outcomes, resamples: int = 10_000, seed: int = 0) -> Interval:
    """The unweighted mean of the sets' shares, with its bootstrap interval.

    Args:
        outcomes: right or not of each question, by set; none is empty.
    """
    values = [np.mean(set_outcomes) for set_outcomes in outcomes.values()]
    chance = np.random.default_rng(seed)
    # Drawing n outcomes with replacement, k of them right, is a binomial draw of how many are right.
    drawn = [
        chance.binomial(len(set_outcomes), value, resamples) / len(set_outcomes)
        for value, set_outcomes in zip(values, outcomes.values(), strict=True)
    ]
    return _interval(float(np.mean(values)), np.mean(drawn, axis=0))


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
