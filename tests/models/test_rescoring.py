"""Verdicts of 16-bit scores are float32's, and only what is near the decision is scored twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from models.rescoring import PROBES, Rescoring


class Set:
    """Scores by a rule, in batches of ten; remembers which rows were asked for."""

    def __init__(self, margins: np.ndarray) -> None:
        self.of = margins
        self.encoded = list(margins)
        self.batches = [list(range(start, min(start + 10, len(margins)))) for start in range(0, len(margins), 10)]
        self.asked: list[int] = []

    def margins(self, rows: Sequence[int]) -> np.ndarray:
        self.asked += rows
        return self.of[list(rows)].copy()


def made(drift: float, decision: float, count: int = 200) -> tuple[Rescoring, Any, Any]:
    chance = np.random.default_rng(0)
    truth = chance.normal(scale=2.0, size=count)
    exact = Set(truth)
    fast = Set(truth + drift * np.where(np.arange(count) % 2, 1, -1))
    return Rescoring(fast, lambda: exact, decision), fast, exact  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("decision", [0.0, 0.7, -3.0])
def test_no_verdict_differs_from_float32(decision: float) -> None:
    rescoring, fast, exact = made(drift=0.2, decision=decision)
    found = np.concatenate([rescoring.margins(batch) for batch in rescoring.batches])
    assert ((found >= decision) == (exact.of >= decision)).all()
    assert ((fast.of >= decision) != (exact.of >= decision)).any() or decision == -3.0  # without it some would
    near = np.flatnonzero(np.abs(fast.of - decision) <= 0.6)
    assert rescoring.drift == pytest.approx(0.6)
    assert rescoring.rescored == set(near.tolist())
    assert np.array_equal(found[near], exact.of[near])
    others = np.setdiff1d(np.arange(200), near)
    assert np.array_equal(found[others], fast.of[others])


def test_float32_judges_the_probes_and_what_is_near_and_nothing_else() -> None:
    rescoring, _, exact = made(drift=0.01, decision=0.0)
    for batch in rescoring.batches:
        rescoring.margins(batch)
    assert len(exact.asked) == PROBES + len(rescoring.rescored)
    assert len(rescoring.rescored) < 10


def test_the_drift_is_the_same_whichever_batch_comes_first() -> None:
    forwards, _, _ = made(drift=0.2, decision=0.0)
    backwards, fast, _ = made(drift=0.2, decision=0.0)
    one = [forwards.margins(batch) for batch in forwards.batches]
    other = [backwards.margins(batch) for batch in reversed(backwards.batches)][::-1]
    assert np.array_equal(np.concatenate(one), np.concatenate(other))
    assert len(fast.asked) == 200  # the probes' batch is not made again when its turn comes


def test_batches_of_single_rows_are_probed_until_there_are_eight() -> None:
    truth = np.linspace(-1, 1, 20)
    exact, fast = Set(truth), Set(truth + 0.01 * np.arange(20))
    fast.batches = [[row] for row in range(20)]
    rescoring = Rescoring(fast, lambda: exact, decision=0.0)  # type: ignore[arg-type, return-value]
    assert rescoring.drift == pytest.approx(3 * 0.07)  # of rows 0 to 7
    assert exact.asked == list(range(8))


def test_sets_smaller_than_the_probes_are_fine() -> None:
    rescoring, _, exact = made(drift=0.5, decision=0.0, count=3)
    assert ((rescoring.margins([0, 1, 2]) >= 0) == (exact.of >= 0)).all()


def test_a_set_without_drift_scores_nothing_again() -> None:
    rescoring, _, _ = made(drift=0.0, decision=0.123)
    for batch in rescoring.batches:
        rescoring.margins(batch)
    assert rescoring.rescored == set()
