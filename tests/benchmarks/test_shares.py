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
    assert all(share(0, n).low == 0 and share(n, n).high == 1 for n in range(1, 40))


def test_the_mean_over_sets_weighs_sets_and_not_questions() -> None:
    assert mean_share({"a": answers(3, 4), "b": answers(1, 2)}).value == pytest.approx((3 / 4 + 1 / 2) / 2)


def test_the_mean_s_interval_is_made_of_the_sets_wilson_limits() -> None:
    found = mean_share({"a": answers(8, 10), "b": answers(0, 3)})
    # Limits 0.4902 and 0.9433 of 0.8, 0 and 0.5615 (z^2 / (3 + z^2)) of 0: 0.4 less half of 0.3098, and
    # 0.4 with half of the root of 0.1433^2 + 0.5615^2 = 0.3358
    assert (found.value, found.low, found.high) == (
        pytest.approx(0.4),
        pytest.approx(0.2451, abs=1e-4),
        pytest.approx(0.6898, abs=1e-4),
    )
    many = mean_share({"a": answers(6000, 10000), "b": answers(9000, 10000)})
    error = 0.5 * (0.6 * 0.4 / 10000 + 0.9 * 0.1 / 10000) ** 0.5
    assert many.low == pytest.approx(0.75 - 1.96 * error, abs=1e-4)
    assert many.high == pytest.approx(0.75 + 1.96 * error, abs=1e-4)


def test_the_mean_s_interval_keeps_its_width_where_sets_are_right_or_wrong_throughout() -> None:
    found = mean_share({"a": answers(3, 3), "b": answers(0, 3)})
    assert (found.low, found.high) == (pytest.approx(0.5 - 0.5615 / 2, abs=1e-4), pytest.approx(0.7807, abs=1e-4))
    everything = mean_share({name: answers(3, 3) for name in "abcd"})
    assert (everything.value, everything.high) == (1, 1)
    assert everything.low == pytest.approx(1 - 0.5615 / 2, abs=1e-4)  # of four sets half the width of one


@pytest.mark.parametrize("right", range(8))
def test_the_mean_of_one_set_has_exactly_its_interval(right: int) -> None:
    assert mean_share({"a": answers(right, 7)}) == share(right, 7)


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
