"""Scores depend on a row's content alone: not on its neighbours, the order, or the size of batches."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from tiny_judges import COMBINATIONS, Made

from models import scoring
from models.packing import Forest
from models.scoring import Scoring, margins, plan_batches, probabilities, usual_token_budget


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [
        ([], 10, []),
        ([3], 10, [[0]]),
        ([3, 3, 3], 6, [[0, 1], [2]]),
        ([2, 5, 3, 4], 10, [[1, 3], [2, 0]]),  # 2 x 5 fit; a third row would make 15
        ([1, 9, 1], 10, [[1], [0, 2]]),  # 2 x 9 do not fit
        ([50, 1], 10, [[0], [1]]),  # longer than the budget: alone
        ([4, 4, 4], 0, [[0], [1], [2]]),
    ],
)
def test_batches_are_cut_as_worked_out_by_hand(lengths: list[int], budget: int, expected: list[list[int]]) -> None:
    assert plan_batches(lengths, budget) == expected


def test_every_row_comes_once_longest_first_and_no_batch_is_over_budget() -> None:
    numbers = random.Random(7)
    for _ in range(200):
        lengths = [numbers.randint(1, 60) for _ in range(numbers.randint(1, 50))]
        budget = numbers.randint(1, 400)
        batches = plan_batches(lengths, budget)
        assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
        planned = [lengths[row] for batch in batches for row in batch]
        assert planned == sorted(lengths, reverse=True)
        for batch in batches:
            assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= budget


def test_a_plan_follows_from_the_lengths_and_not_from_their_order() -> None:
    numbers = random.Random(8)
    lengths = [numbers.randint(1, 20) for _ in range(40)]
    shapes = [[lengths[row] for row in batch] for batch in plan_batches(lengths, 100)]
    for _ in range(20):
        numbers.shuffle(lengths)
        assert [[lengths[row] for row in batch] for batch in plan_batches(lengths, 100)] == shapes


def test_batches_behind_a_long_prefix_hold_half_as_many_tokens(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = made("llama", "verbalizer")
    forest = Forest([row["input_ids"] for row in judge.encoded])
    budget = max(len(row["input_ids"]) for row in judge.encoded) * 2
    monkeypatch.setattr(scoring, "LONG_PREFIX", forest.prefix)
    assert Scoring(judge.judge, judge.encoded, budget).batches == forest.batches(budget)
    monkeypatch.setattr(scoring, "LONG_PREFIX", forest.prefix - 1)
    assert Scoring(judge.judge, judge.encoded, budget).batches == forest.batches(budget // 2) != forest.batches(budget)


@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_a_score_is_the_same_whatever_the_budget_and_the_order(
    made: Callable[..., Made], architecture: str, head: str
) -> None:
    judge = made(architecture, head)
    rows = [*judge.encoded, *judge.encoded[:2]]
    alone = margins(judge.judge, rows, token_budget=1)
    logits = judge.logits().double().numpy()
    assert np.abs(alone[:4] - (logits[:, 1] - logits[:, 0])).max() < 1e-5
    for budget in (100, 500, 10_000):
        assert np.abs(margins(judge.judge, rows, budget) - alone).max() < 1e-5
    backwards = margins(judge.judge, rows[::-1], 500)[::-1]
    assert np.array_equal(backwards[[2, 3]], margins(judge.judge, rows, 500)[[2, 3]])
    assert np.abs(backwards - alone).max() < 1e-5


def test_scores_come_batch_by_batch_with_their_row_numbers(made: Callable[..., Made]) -> None:
    judge = made("llama")
    judge.judge.model.train()  # left so by a trainer: scoring has no dropout all the same
    found = dict(
        pair
        for rows, values in Scoring(judge.judge, judge.encoded, 200)
        for pair in zip(rows, values.tolist(), strict=True)
    )
    assert sorted(found) == [0, 1, 2, 3]
    assert found[3] == pytest.approx(margins(judge.judge, [judge.encoded[3]])[0], abs=1e-5)
    assert margins(judge.judge, []).shape == (0,)


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("DefaultCPUAllocator: can't allocate memory: 7 bytes")],
)
def test_a_batch_that_does_not_fit_is_halved_and_said_once(
    made: Callable[..., Made], error: RuntimeError, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = made("llama")
    rows = judge.encoded * 2
    expected = margins(judge.judge, rows)
    real = Scoring._margins

    def cramped(scoring: Scoring, chosen: list[int]) -> np.ndarray:
        if len(chosen) > 3:
            raise error
        return real(scoring, chosen)

    monkeypatch.setattr(Scoring, "_margins", cramped)
    with pytest.warns(UserWarning, match="8 prompts at once do not fit in memory") as said:
        found = margins(judge.judge, rows, 10_000)
    assert len(said) == 1
    assert np.abs(found - expected).max() < 1e-5
    monkeypatch.setattr(Scoring, "_margins", lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(RuntimeError, match="memory"), pytest.warns(UserWarning, match="do not fit"):
        margins(judge.judge, rows)


def test_what_is_as_large_as_what_did_not_fit_is_halved_untried(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = made("llama")
    tried = []

    def cramped(_: Scoring, chosen: list[int]) -> np.ndarray:
        tried.append(chosen)
        if len(chosen) > 3:
            raise torch.OutOfMemoryError
        return np.array(chosen, dtype=float)

    monkeypatch.setattr(Scoring, "_margins", cramped)
    whole, pairs = list(range(8)), [[0, 1], [2, 3], [4, 5], [6, 7]]
    scoring = Scoring(judge.judge, judge.encoded * 2)
    with pytest.warns(UserWarning, match="do not fit"):
        assert scoring.margins(whole).tolist() == whole
    assert tried == [whole, whole[:4], *pairs]
    assert scoring.margins(whole).tolist() == whole
    assert tried[6:] == pairs


def test_a_gpu_computes_more_tokens_at_once() -> None:
    assert (usual_token_budget(torch.device("cpu")), usual_token_budget(torch.device("cuda"))) == (1024, 16384)


def test_other_errors_are_not_taken_for_a_lack_of_memory(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(Scoring, "_margins", broken)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        margins(made("llama").judge, made("llama").encoded)


def test_probabilities_are_the_sigmoid_of_the_margin_over_the_temperature() -> None:
    found = probabilities(np.array([0.0, math.log(3), -math.log(3), 1e6, -1e6]))
    assert found.tolist() == pytest.approx([0.5, 0.75, 0.25, 1.0, 0.0])
    assert probabilities(np.array([2 * math.log(3)]), temperature=2.0).tolist() == pytest.approx([0.75])
    assert np.isnan(probabilities(np.array([np.nan]))).all()
