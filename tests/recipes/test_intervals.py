"""Bootstrap intervals over groups: against a slow independent computation, and against what theory says."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from recipes.intervals import bootstrap, resample_groups


def data(records: int, groups: int, seed: int = 0, levels: int = 8):  # type: ignore[no-untyped-def]
    """Labels, coarse scores (so that there are ties), verdicts and groups."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, records)
    scores = np.round((labels + random.normal(size=records)) * levels / 4)
    return labels, scores, (scores > levels / 8).astype(int), [f"g{k}" for k in random.integers(0, groups, records)]


def slow(labels, scores, verdicts, groups, draws):  # type: ignore[no-untyped-def]
    """Each resample written out record by record, measured by scikit-learn; NaN where there is no AUC."""
    names = sorted(set(groups))
    rows = {name: [k for k, group in enumerate(groups) if group == name] for name in names}
    found: dict[str, list[float]] = {"accuracy": [], "macro_f1": [], "auc": []}
    for draw in draws:
        chosen = [row for name, times in zip(names, draw, strict=True) for _ in range(times) for row in rows[name]]
        y, s, said = labels[chosen], scores[chosen], verdicts[chosen]
        found["accuracy"].append(accuracy_score(y, said))
        found["macro_f1"].append(f1_score(y, said, average="macro", labels=[0, 1], zero_division=0))
        found["auc"].append(roc_auc_score(y, s) if len(set(y)) == 2 else math.nan)
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.parametrize(("records", "groups"), [(60, 12), (40, 40), (9, 3)])
def test_values_and_ends_are_those_of_a_slow_computation(records: int, groups: int) -> None:
    material = data(records, groups, seed=records)
    count = len(set(material[3]))
    found = bootstrap(*material, resamples=300, seed=5)
    expected = slow(*material, resample_groups(count, 300, seed=5))
    whole = slow(*material, np.ones((1, count), int))
    for name, interval in found.items():
        values = expected[name][~np.isnan(expected[name])]
        assert interval.value == pytest.approx(whole[name][0])
        assert (interval.low, interval.high) == pytest.approx((np.percentile(values, 2.5), np.percentile(values, 97.5)))
        assert interval.undefined == np.isnan(expected[name]).sum()


def test_groups_are_drawn_evenly_and_with_replacement() -> None:
    draws = resample_groups(6, 20_000, seed=0)
    assert (draws.sum(axis=1) == 6).all()
    # A group's count is binomial(6, 1/6): mean 1, variance 5/6, absent with probability (5/6)^6.
    assert draws.mean(axis=0) == pytest.approx(np.ones(6), abs=0.03)
    assert draws.var(axis=0) == pytest.approx(np.full(6, 5 / 6), abs=0.03)
    assert (draws == 0).mean() == pytest.approx((5 / 6) ** 6, abs=0.01)


def test_with_one_record_a_group_accuracy_has_the_interval_of_the_normal_approximation() -> None:
    count, right = 1000, 700
    labels = np.ones(count, int)
    verdicts = (np.arange(count) < right).astype(int)
    interval = bootstrap(labels, verdicts, verdicts, [str(k) for k in range(count)], resamples=4000)["accuracy"]
    half = 1.96 * math.sqrt(0.7 * 0.3 / count)
    assert interval.low == pytest.approx(0.7 - half, abs=0.004)
    assert interval.high == pytest.approx(0.7 + half, abs=0.004)


def test_records_that_repeat_within_their_group_make_no_interval_narrower() -> None:
    labels, scores, verdicts, _ = data(200, 200)
    groups = [str(k) for k in range(200)]
    once = bootstrap(labels, scores, verdicts, groups)
    ninefold = bootstrap(*(np.repeat(column, 9) for column in (labels, scores, verdicts)), np.repeat(groups, 9))
    for name in once:
        assert (ninefold[name].low, ninefold[name].high) == pytest.approx((once[name].low, once[name].high))


def test_a_single_group_has_values_and_no_interval() -> None:
    found = bootstrap([1, 0, 1], [0.9, 0.1, 0.4], [1, 0, 0], ["a", "a", "a"])["accuracy"]
    assert (found.value, found.low, found.high) == (pytest.approx(2 / 3), None, None)


def test_one_class_has_no_auc() -> None:
    found = bootstrap([1, 1, 1], [0.9, 0.1, 0.4], [1, 0, 0], ["a", "b", "c"], resamples=50)
    assert (found["auc"].value, found["auc"].low, found["auc"].undefined) == (None, None, 50)
    assert found["macro_f1"].value == pytest.approx(0.25)  # F1 of yes 1/2, of no 0


def test_the_seed_decides() -> None:
    material = data(80, 20)
    assert bootstrap(*material, seed=1) == bootstrap(*material, seed=1)
    assert bootstrap(*material, seed=1) != bootstrap(*material, seed=2)


def test_two_thousand_records_take_less_than_two_seconds() -> None:
    material = data(2000, 2000, levels=10_000)
    started = time.process_time()
    bootstrap(*material, resamples=2000)
    assert time.process_time() - started < 2


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 labels, 1 scores, 2 verdicts, 2 groups"):
        bootstrap([1, 0], [0.5], [1, 0], ["a", "b"])
