"""Splits share no group, come near the shares, and say what they dropped."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from recipes.script_verify import ScriptRecord
from recipes.splits import split_apart, split_by_group

SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}


def record(name: str, *keys: str, label: int | None = 1) -> ScriptRecord:
    return ScriptRecord(id=name, goal=keys[0], script=("x",), label=label, group=keys[0], meta={"keys": keys})


def keys(item: ScriptRecord) -> Iterable[str]:
    return (item.meta or {})["keys"]


def random_records(seed: int, count: int = 400, groups: int = 120) -> list[ScriptRecord]:
    rng = random.Random(seed)
    return [record(str(n), f"g{rng.randrange(groups)}", label=int(rng.random() < 0.3)) for n in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_no_group_crosses_nothing_is_lost_and_sizes_and_labels_are_near(seed: int) -> None:
    records = random_records(seed)
    splits = split_by_group(records, SHARES, seed)
    assert sorted(item.id for part in splits.values() for item in part) == sorted(item.id for item in records)
    groups = [{item.group for item in part} for part in splits.values()]
    assert not groups[0] & groups[1] and not groups[0] & groups[2] and not groups[1] & groups[2]
    yes = sum(item.label == 1 for item in records) / len(records)
    for split, part in splits.items():
        assert len(part) == pytest.approx(400 * SHARES[split], abs=4)
        assert sum(item.label == 1 for item in part) / len(part) == pytest.approx(yes, abs=0.05)


def test_the_same_seed_gives_the_same_splits_and_another_seed_others() -> None:
    records = random_records(1)
    assert split_by_group(records, SHARES, 3) == split_by_group(records, SHARES, 3)
    assert split_by_group(records, SHARES, 3) != split_by_group(records, SHARES, 4)


def test_records_keep_their_order_within_a_split() -> None:
    for part in split_by_group(random_records(2), SHARES, 0).values():
        assert [int(item.id) for item in part] == sorted(int(item.id) for item in part)


def test_several_keys_bind_by_way_of_others() -> None:
    # a-b by p, b-c by goal 2: the three are one group, d another.
    records = [record("a", "1", "p"), record("b", "2", "p"), record("c", "2", "q"), record("d", "3", "r")]
    splits = split_by_group(records, {"train": 0.75, "test": 0.25}, 0, keys)
    assert {name: [item.id for item in part] for name, part in splits.items()} == {
        "train": ["a", "b", "c"],
        "test": ["d"],
    }


def test_as_many_groups_as_splits_leave_none_empty() -> None:
    splits = split_by_group([record(name, name) for name in "abc"], SHARES, 0)
    assert {name: len(part) for name, part in splits.items()} == {"train": 1, "validation": 1, "test": 1}


def test_fewer_groups_than_splits_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"3 records fall into 2 group\(s\), too few for 3 splits: one would be empty"):
        split_by_group([record("a", "1"), record("b", "1"), record("c", "2")], SHARES, 0)


@pytest.mark.parametrize(
    "shares", [{}, {"train": 0.5, "test": 0.4}, {"train": 1.2, "test": -0.2}, {"train": 1.0, "test": 0}]
)
def test_shares_that_are_none_are_an_error(shares: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="give positive numbers that sum to 1"):
        split_by_group(random_records(0), shares, 0)


def shopping(goals: int, products: int, seed: int) -> list[ScriptRecord]:
    """Goals with a right and two wrong products, all drawn from one shelf."""
    rng = random.Random(seed)
    return [
        record(f"{goal}-{n}", f"goal {goal}", f"product {rng.randrange(products)}", label=int(n == 0))
        for goal in range(goals)
        for n in range(3)
    ]


@pytest.mark.parametrize("products", [60, 2000])
def test_apart_splits_share_no_key_at_all(products: int) -> None:
    records = shopping(300, products, 0)
    apart = split_apart(records, SHARES, 0, keys)
    seen = [{key for item in part for key in keys(item)} for part in apart.splits.values()]
    assert not seen[0] & seen[1] and not seen[0] & seen[2] and not seen[1] & seen[2]
    there = [item.id for part in (*apart.splits.values(), *apart.dropped.values()) for item in part]
    assert sorted(there) == sorted(item.id for item in records)


def test_where_positives_fall_into_small_groups_no_positive_is_dropped() -> None:
    apart = split_apart(shopping(300, 2000, 1), SHARES, 0, keys)
    assert all(item.label == 0 for part in apart.dropped.values() for item in part)


def test_where_everything_hangs_together_training_pays() -> None:
    records = [
        record(f"{goal}-{n}", f"goal {goal}", f"product {n}") for goal in range(10) for n in range(goal, goal + 2)
    ]
    # Neighbouring goals share a product: one chain. Each goal's two records stay in its split.
    apart = split_apart(records, {"train": 0.8, "test": 0.2}, 0, keys)
    assert apart.dropped["test"] == []
    assert len(apart.splits["test"]) == 4
    held_out = {key for item in apart.splits["test"] for key in keys(item)}
    assert all(set(keys(item)) & held_out for item in apart.dropped["train"])


def test_a_split_that_loses_everything_is_an_error() -> None:
    records = [record(f"{goal}", f"goal {goal}", "the only product") for goal in range(10)]
    with pytest.raises(ValueError, match="split 'train' would be empty"):
        split_apart(records, {"train": 0.8, "test": 0.2}, 0, keys)
