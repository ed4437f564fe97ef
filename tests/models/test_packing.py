"""Packed batches: what is shared stands once, and every row reads as it would alone."""

from __future__ import annotations

import random

import pytest
import torch

from models import packing
from models.packing import Forest, Packed, pack

A, B, C = [9, 9, 1, 1, 4], [9, 9, 1, 1, 5, 6], [9, 9, 2]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of two tokens are held once already, and nothing is filled up."""
    monkeypatch.setattr(packing, "MIN_SHARED", 2)
    monkeypatch.setattr(packing, "SMALL_MULTIPLE", 1)


@pytest.mark.usefixtures("short")
def test_a_batch_is_laid_out_as_worked_out_by_hand() -> None:
    packed = pack([B, C, A])
    assert packed.input_ids.tolist() == [[9, 9, 1, 1, 4, 5, 6, 2]]
    assert packed.position_ids.tolist() == [[0, 1, 2, 3, 4, 4, 5, 2]]
    assert packed.ends.tolist() == [6, 7, 4]
    assert packed.prefix == 2
    larger, smaller = packed.trees
    assert (larger.places.tolist(), smaller.places.tolist()) == ([[2, 3, 4, 5, 6]], [[7]])
    assert larger.mask[0].int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],  # the 5 of B does not see the 4 of A
        [1, 1, 0, 1, 1],
    ]
    assert smaller.mask.tolist() == [[[True]]]
    assert packed.slots.tolist() == [0, 1, 2, 3, 4, 5]
    assert (packed.tokens, packed.unshared, packed.longest) == (8, 14, 6)


@pytest.mark.usefixtures("short")
def test_trees_of_like_size_are_filled_up_to_the_longest_of_them() -> None:
    packed = pack([[1, 2, 3], [4, 5], [6, 7, 8, 9]])
    larger, smaller = packed.trees
    assert packed.input_ids.tolist() == [[1, 2, 3, 4, 5, 6, 7, 8, 9]]
    assert larger.places.tolist() == [[5, 6, 7, 8], [0, 1, 2, 0]]  # 3 tokens are three quarters of 4
    assert smaller.places.tolist() == [[3, 4]]  # 2 are less
    assert larger.mask[1].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]]
    assert packed.slots.tolist() == [4, 5, 6, 8, 9, 0, 1, 2, 3]


@pytest.mark.usefixtures("short")
def test_tokens_held_elsewhere_are_left_out_and_still_counted_as_places() -> None:
    packed = pack([A, B], skip=2)
    assert packed.input_ids.tolist() == [[1, 1, 4, 5, 6]]
    assert packed.position_ids.tolist() == [[2, 3, 4, 4, 5]]
    assert packed.prefix == 2  # both go on with 1, 1
    assert packed.ends.tolist() == [2, 4]


@pytest.mark.parametrize(("rows", "filling"), [([A, C], 0), ([A, B], 5), ([[*range(256)], [*range(300, 400)]], 28)])
def test_a_batch_is_filled_up_to_a_round_number_of_tokens(rows: list[list[int]], filling: int) -> None:
    packed = pack(rows)  # 8, 11 and 356 tokens: to multiples of 8, 8 and 32
    assert packed.filling == filling
    assert packed.tokens == packed.position_ids.shape[1] == len(packed.slots) + filling


@pytest.mark.usefixtures("short")
def test_runs_are_the_rows_of_each_tree_in_the_order_of_their_tokens() -> None:
    assert Forest([B, C, A, [9, 9, 1, 1, 4, 7]]).runs() == [[2, 3, 0], [1]]


def what_ends_see(packed: Packed) -> list[list[int]]:
    """The tokens that each row's last token attends to, in the order of their places."""
    tokens, places = packed.input_ids[0].tolist(), packed.position_ids[0].tolist()
    seen = []
    for end in packed.ends.tolist():
        slot = int(packed.slots[end - packed.prefix])
        for like in packed.trees:
            if slot < like.places.numel():
                break
            slot -= like.places.numel()
        tree, token = divmod(slot, like.places.shape[1])
        inside = {like.places[tree, other].item() for other in like.mask[tree, token].nonzero()[:, 0].tolist()}
        chain = sorted([*range(packed.prefix), *inside], key=lambda place: places[int(place)])
        assert [places[int(place)] for place in chain] == list(range(len(chain)))
        seen.append([tokens[int(place)] for place in chain])
    return seen


def random_rows(chance: random.Random) -> list[list[int]]:
    """Rows that share beginnings of every kind, some of them equal, some the beginning of another."""
    rows = [[chance.randrange(2) for _ in range(chance.randint(1, 6))] for _ in range(chance.randint(1, 12))]
    stem = [chance.randrange(2) for _ in range(chance.randint(0, 5))]
    return [stem + chance.choice(rows) + row for row in rows]


@pytest.mark.parametrize("least", [1, 2, 4])
def test_every_row_sees_itself_and_nothing_else(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MIN_SHARED", least)
    chance = random.Random(3)
    for _ in range(150):
        rows = random_rows(chance)
        packed = pack(rows)
        assert what_ends_see(packed) == rows
        assert packed.tokens - packed.filling <= packed.unshared == sum(map(len, rows))


@pytest.mark.parametrize("budget", [1, 8, 30, 1000])
def test_batches_hold_every_row_once_within_the_budget(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MIN_SHARED", 2)
    chance = random.Random(4)
    for _ in range(100):
        rows = random_rows(chance)
        forest = Forest(rows)
        batches = forest.batches(budget)
        assert sorted(row for batch in batches for row in batch) == list(range(len(rows)))
        for batch in batches:
            packed = pack([rows[row] for row in batch], forest.prefix)
            tokens = packed.tokens - packed.filling
            assert len(batch) == 1 or tokens < budget + packing.MIN_SHARED * len(batch)


@pytest.mark.usefixtures("short")
def test_a_plan_does_not_follow_from_the_order_of_the_rows() -> None:
    chance = random.Random(5)
    rows = [list(row) for row in {tuple(row) for row in random_rows(chance)}]
    plan = [sorted(map(tuple, (rows[row] for row in batch))) for batch in Forest(rows).batches(20)]
    for _ in range(10):
        chance.shuffle(rows)
        assert [sorted(map(tuple, (rows[row] for row in batch))) for batch in Forest(rows).batches(20)] == plan


def test_a_batch_moves_to_a_device_whole() -> None:
    moved = pack([A, B]).to("meta")
    tensors = [*vars(moved).values(), *(tensor for like in moved.trees for tensor in vars(like).values())]
    assert {value.device.type for value in tensors if isinstance(value, torch.Tensor)} == {"meta"}
