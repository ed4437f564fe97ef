"""Paired comparisons against values worked out by hand, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmarks.paired import Said, adjusted, differences, discordance


def test_differences_are_the_second_s_less_the_first_s() -> None:
    labels = [1, 1, 1, 0, 0, 0, 1, 0]
    first = Said([3.0, 2.0, -1.0, -2.0, 1.0, -3.0, 4.0, 0.5], [1, 1, 0, 0, 1, 0, 1, 1])  # 5 of 8 right
    second = Said([3.0, 2.0, 1.0, -2.0, -1.0, -3.0, 4.0, 0.5], [1, 1, 1, 0, 0, 0, 1, 1])  # 7 of 8
    found = differences(labels, first, second, [f"g{k}" for k in range(8)], 200)
    accuracy = found["accuracy"]
    assert (accuracy.first, accuracy.second, accuracy.difference.value) == (0.625, 0.875, 0.25)
    # 4 yes, 4 no: the first has F1 of 6/9 for yes (3 of 4 found, 5 said) and 4/7 for no; the second 8/9 and 6/7.
    assert found["macro_f1"].first == pytest.approx((6 / 9 + 4 / 7) / 2)
    assert found["macro_f1"].second == pytest.approx((8 / 9 + 6 / 7) / 2)
    # Pairs ranked right: -1.0 is above two of the four noes, the other yeses above all; then all 16.
    assert (found["auc"].first, found["auc"].second) == (14 / 16, 1.0)
    assert accuracy.difference.low is not None and accuracy.difference.low >= 0.0  # the second is never worse


def test_an_interval_is_that_of_the_groups_own_differences() -> None:
    # Two groups of 4 records: the second judge gains 2 in one and nothing in the other. The difference of a draw is
    # that of one group twice (1/2 or 0) or of both (1/4): a half of all draws, and a quarter each for the others.
    labels = [1] * 8
    first, second = [1, 1, 0, 0, 1, 1, 1, 1], [1] * 8
    found = differences(labels, Said(None, first), Said(None, second), ["a"] * 4 + ["b"] * 4, 4000)
    accuracy = found["accuracy"]
    assert (accuracy.difference.low, accuracy.difference.value, accuracy.difference.high) == (0.0, 0.25, 0.5)
    assert accuracy.detectable == pytest.approx(2.8 * np.sqrt((0.25**2) / 2), rel=0.05)
    assert "auc" not in found


def test_pairing_sees_what_two_intervals_apart_would_not() -> None:
    chance = np.random.default_rng(0)
    labels = chance.integers(2, size=600)
    hard = chance.random(600) < 0.4  # both err on these
    better = hard & (chance.random(600) < 0.15)  # but for a few that the second gets right
    first, second = np.where(hard, 1 - labels, labels), np.where(hard & ~better, 1 - labels, labels)
    (accuracy, *_) = differences(labels, Said(None, first), Said(None, second), list(map(str, range(600)))).values()
    found = accuracy.difference
    assert found.low is not None and found.high is not None and found.low > 0
    alone = 2 * 1.96 * np.sqrt(0.24 / 600)  # how wide the interval of one accuracy of 0.6 is
    assert found.high - found.low < 0.6 * alone


def test_with_one_group_there_is_nothing_to_draw() -> None:
    (accuracy, *_) = differences([1, 0], Said(None, [1, 1]), Said(None, [1, 0]), ["a", "a"]).values()
    assert (accuracy.difference.value, accuracy.difference.low, accuracy.detectable) == (0.5, None, None)


def test_judges_that_say_the_same_do_not_tell_what_could_be_detected() -> None:
    (accuracy, *_) = differences([1, 0] * 4, Said(None, [1] * 8), Said(None, [1] * 8), list("aabbccdd")).values()
    assert (accuracy.difference.value, accuracy.detectable) == (0.0, None)


@pytest.mark.parametrize(("one", "other"), [(0, 0), (1, 0), (3, 3), (1, 8), (12, 2), (40, 61)])
def test_mcnemar_is_the_binomial_test_of_the_discordant_records(one: int, other: int) -> None:
    first = [True] * one + [False] * other + [True, False] * 5
    second = [False] * one + [True] * other + [True, False] * 5
    found = discordance(first, second)
    assert (found.first_only, found.second_only) == (one, other)
    assert found.p == pytest.approx(binomtest(one, one + other).pvalue if one + other else 1.0)


def test_several_p_values_are_raised_after_holm() -> None:
    # Sorted 0.01, 0.03, 0.04: times 3, 2, 1, and never below the one before.
    assert adjusted([0.03, 0.01, 0.04]) == pytest.approx([0.06, 0.03, 0.06])
    assert adjusted([]) == []
