"""Intervals and comparisons of shares, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from benchmarks.shares import compare, mean_share, share
from recipes.intervals import Interval


def answers(right: int, total: int) -> list[bool]:
    return [True] * right + [False] * (total - right)


def test_a_share_has_wilson_s_interval() -> None:
    found = share(8, 10)
    # (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n) with p = 0.8, n = 10, z = 1.96
    assert (found.value, found.low, found.high) == (
        0.8,
        pytest.approx(0.4902, abs=1e-4),
        pytest.approx(0.9433, abs=1e-4),
    )
    assert share(0, 0) == Interval(None, None, None)


def test_the_mean_over_sets_weighs_sets_and_not_questions() -> None:
    assert mean_share({"a": answers(3, 4), "b": answers(1, 2)}).value == pytest.approx((3 / 4 + 1 / 2) / 2)


def test_the_mean_s_interval_is_that_of_independent_sets() -> None:
    found = mean_share({"a": answers(60, 100), "b": answers(90, 100)}, seed=1)
    error = 0.5 * (0.6 * 0.4 / 100 + 0.9 * 0.1 / 100) ** 0.5
    assert found.low == pytest.approx(0.75 - 1.96 * error, abs=0.004)
    assert found.high == pytest.approx(0.75 + 1.96 * error, abs=0.004)
    assert mean_share({"a": answers(5, 5)}) == Interval(1.0, 1.0, 1.0)


def test_mcnemar_looks_at_the_questions_that_one_run_alone_got_right() -> None:
    first = {"a": [True] * 8 + [False] * 2 + [True] * 5}
    second = {"a": [False] * 8 + [True] * 2 + [True] * 5}
    found = compare(first, second)
    # Two-sided binomial: 2 (1 + 10 + 45) / 2^10
    assert (found.n, found.first_only, found.second_only) == (15, 8, 2)
    assert found.p == pytest.approx(112 / 1024)
    assert found.difference.value == pytest.approx(6 / 15)


def test_the_difference_s_interval_is_that_of_paired_questions() -> None:
    first = {"a": [True] * 30 + [False] * 10 + [True] * 60}
    second = {"a": [False] * 30 + [True] * 10 + [True] * 60}
    found = compare(first, second, seed=2)
    error = ((0.3 + 0.1 - 0.2**2) / 100) ** 0.5
    assert found.difference.value == pytest.approx(0.2)
    assert found.difference.low == pytest.approx(0.2 - 1.96 * error, abs=0.01)
    assert found.difference.high == pytest.approx(0.2 + 1.96 * error, abs=0.01)


def test_equal_runs_differ_by_nothing() -> None:
    same = {"a": answers(3, 5), "b": answers(1, 2)}
    found = compare(same, same)
    assert (found.p, found.difference) == (1.0, Interval(0.0, 0.0, 0.0))
