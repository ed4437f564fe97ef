"""Measures of a yes/no judge, against values worked out by hand or by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recipes.metrics import best_threshold, binary_metrics, expected_calibration_error, fit_temperature


def macro_f1(labels: np.ndarray, said: np.ndarray) -> float:
    scores = []
    for wanted in (0, 1):
        hits = int(((labels == wanted) & (said == wanted)).sum())
        wrong = int(((labels == wanted) != (said == wanted)).sum())
        scores.append(2 * hits / (2 * hits + wrong) if hits or wrong else 0.0)
    return sum(scores) / 2


def test_metrics_of_five_records() -> None:
    # Said yes: the first three; of these two are right; one yes is missed.
    metrics = binary_metrics([1, 1, 0, 1, 0], [0.9, 0.5, 0.6, 0.4, 0.1])
    assert metrics["accuracy"] == pytest.approx(3 / 5)
    assert metrics["precision"] == pytest.approx(2 / 3)
    assert metrics["recall"] == pytest.approx(2 / 3)
    assert metrics["macro_f1"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert metrics["said_yes"] == pytest.approx(3 / 5)
    # Pairs (yes, no): 0.9 beats both, 0.5 and 0.4 beat only 0.1: 4 of 6.
    assert metrics["auc"] == pytest.approx(4 / 6)


def test_auc_counts_ties_as_half_and_is_nan_for_one_class() -> None:
    assert binary_metrics([1, 0], [0.5, 0.5])["auc"] == 0.5
    assert math.isnan(binary_metrics([1, 1], [0.2, 0.8])["auc"])


@pytest.mark.parametrize("seed", range(30))
def test_the_best_threshold_is_that_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, size=int(rng.integers(1, 25)))
    probabilities = rng.integers(0, 11, size=len(labels)) / 10  # with ties, and with exact 0 and 1
    threshold = best_threshold(labels, probabilities)
    cuts = [-1.0, 2.0, *(probability + 1e-9 for probability in probabilities)]
    best = max(
        macro_f1(labels, (probabilities >= cut).astype(int)) for cut in cuts if cut <= 1 or 1.0 not in probabilities
    )
    assert macro_f1(labels, (probabilities >= threshold).astype(int)) == pytest.approx(best)
    assert 0 <= threshold <= 1


def test_the_threshold_lies_midway_and_nearest_to_a_half() -> None:
    assert best_threshold([0, 1], [0.2, 0.4]) == pytest.approx(0.3)
    # All equally good cuts: none separates; 0.5 is between 0.4 and 0.6.
    assert best_threshold([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9]) == pytest.approx(0.5)


def test_calibration_error_of_two_bins() -> None:
    # Bin 0..0.5: mean 0.2, one of two is yes; bin 0.5..1: mean 0.9, all are yes. (2/4) 0.3 + (2/4) 0.1 = 0.2.
    labels, probabilities = [0, 1, 1, 1], [0.1, 0.3, 0.8, 1.0]
    assert expected_calibration_error(labels, probabilities, bins=2) == pytest.approx(0.2)
    assert expected_calibration_error(labels, probabilities, bins=2, equal_mass=True) == pytest.approx(0.2)


def test_equal_mass_bins_hold_equally_many() -> None:
    # Halves by rank: (0.6, 0.7) with one yes, (0.8, 0.9) with two: (2/4) 0.15 + (2/4) 0.15.
    assert expected_calibration_error([0, 1, 1, 1], [0.6, 0.7, 0.8, 0.9], bins=2, equal_mass=True) == pytest.approx(
        0.15
    )
    # Of equal width all four are in the upper bin: |0.75 - 0.75|.
    assert expected_calibration_error([0, 1, 1, 1], [0.6, 0.7, 0.8, 0.9], bins=2) == pytest.approx(0.0)


@pytest.mark.parametrize("planted", [0.5, 1.0, 3.0])
def test_a_planted_temperature_is_found_again(planted: float) -> None:
    rng = np.random.default_rng(0)
    true_margins = rng.normal(0, 2, size=20_000)
    labels = rng.random(20_000) < 1 / (1 + np.exp(-true_margins))
    assert fit_temperature(labels, true_margins * planted) == pytest.approx(planted, rel=0.05)
