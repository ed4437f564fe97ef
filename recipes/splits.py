"""Train, validation and test without leaks: no goal, and where it matters no product, stands in two of them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from recipes.base import Record

R = TypeVar("R", bound=Record)
Keys = Callable[[R], Iterable[str]]
Groups = list[list[int]]


@dataclass(frozen=True)
class Apart(Generic[R]):
    """The splits by name, and the records that each lost."""

    splits: dict[str, list[R]]
    dropped: dict[str, list[R]]


def own_group(record: Record) -> tuple[str]:
    return (record.group_key,)


def split_by_group(
    records: Sequence[R], shares: Mapping[str, float], seed: int, keys: Keys[R] = own_group
) -> dict[str, list[R]]:
    """Every record in exactly one split, in the order given; what shares a key, also by way of others, stays together.

    Args:
        shares: split name -> share of the records; the shares sum to 1. Sizes come as near to them, in each class of
            labels, as the groups allow.
        keys: what binds a record to others; by default its group.

    Raises ValueError where the shares are no shares or there are fewer groups than splits.
    """
    _check_shares(shares)
    places = _allot(_components(records, keys), records, shares, seed)
    return {split: [records[place] for place in sorted(members)] for split, members in places.items()}


def split_apart(records: Sequence[R], shares: Mapping[str, float], seed: int, keys: Keys[R]) -> Apart[R]:
    """Splits that share no key at all, where keeping all records would leave one giant group: some records are dropped.

    The first key of a record (its goal) always decides. Its other keys (products) bind only positive records, since a
    wrong product is drawn from everywhere and would tie all goals together; and they bind none if even the positives
    hang together in a group larger than the largest split. Then each split owns the other keys of its records, smaller
    splits before larger ones and positives before negatives, and a record whose key another split owns is dropped: what
    is held out stays nearly whole, and training pays.

    Raises ValueError as ``split_by_group`` does, and where a split loses all its records.
    """
    _check_shares(shares)
    groups = _components(records, lambda record: list(keys(record))[: None if record.label == 1 else 1])
    if max(map(len, groups), default=0) > max(shares.values()) * len(records):
        groups = _components(records, lambda record: list(keys(record))[:1])
    places = _allot(groups, records, shares, seed)
    owner: dict[str, str] = {}
    kept: dict[str, list[int]] = {split: [] for split in shares}
    for positive in (True, False):
        for split in sorted(shares, key=lambda name: shares[name]):
            for place in sorted(places[split]):
                if (records[place].label == 1) is positive:
                    own = list(keys(records[place]))
                    if all(owner.get(key, split) == split for key in own):
                        owner.update(dict.fromkeys(own, split))
                        kept[split].append(place)
    dropped = {split: sorted(set(places[split]).difference(members)) for split, members in kept.items()}
    for split, members in kept.items():
        if not members:
            raise ValueError(f"split {split!r} would be empty: all its records share a product with other splits")
    return Apart(
        {split: [records[place] for place in sorted(members)] for split, members in kept.items()},
        {split: [records[place] for place in members] for split, members in dropped.items()},
    )


def _check_shares(shares: Mapping[str, float]) -> None:
    if not shares or not all(share > 0 for share in shares.values()) or not abs(sum(shares.values()) - 1) <= 1e-6:
        told = ", ".join(f"{split} {share:g}" for split, share in shares.items()) or "none"
        raise ValueError(f"shares are {told}; give positive numbers that sum to 1")


def _components(records: Sequence[R], keys: Keys[R]) -> Groups:
    """Places of the records that hang together through shared keys (union-find), in order of their first record."""
    parent = list(range(len(records)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    first: dict[str, int] = {}
    for place, record in enumerate(records):
        for key in keys(record):
            one, other = root(first.setdefault(key, place)), root(place)
            parent[max(one, other)] = min(one, other)
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for place in range(len(records)):
        groups[root(place)].append(place)
    return list(groups.values())


def _allot(groups: Groups, records: Sequence[R], shares: Mapping[str, float], seed: int) -> dict[str, list[int]]:
    """Each group to a split: large ones first, each where it brings the class counts nearest to what is wanted.

    The distance is chi-squared's, the sum of (count - wanted)^2 / wanted over splits and classes of labels.
    """
    if len(groups) < len(shares):
        raise ValueError(
            f"{len(records)} records fall into {len(groups)} group(s), too few for {len(shares)} splits: "
            "one would be empty; give more groups or fewer splits"
        )
    order = list(groups)
    random.Random(seed).shuffle(order)
    order.sort(key=len, reverse=True)
    total: Counter[int | None] = Counter(record.label for record in records)
    counts: dict[str, Counter[int | None]] = {split: Counter() for split in shares}
    places: dict[str, list[int]] = {split: [] for split in shares}

    def distance(split: str, added: Counter[int | None]) -> float:
        """By how much the distance grows if the split gets these."""
        grown = 0.0
        for label, number in added.items():
            wanted = shares[split] * total[label]
            grown += number * (2 * (counts[split][label] - wanted) + number) / wanted
        return grown

    for number, group in enumerate(order):
        added: Counter[int | None] = Counter(records[place].label for place in group)
        empty = [split for split in shares if not places[split]]
        open_to = empty if len(order) - number <= len(empty) else list(shares)
        chosen = min(open_to, key=lambda split: distance(split, added))
        counts[chosen].update(added)
        places[chosen] += group
    return places
