"""Right and wrong pairs of product and intent from what is known, and the control in which all pairs are wrong."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.intents.judgment import IntentRecord, text_key

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
POOL = 64  # intents among which the hard one is chosen: enough to find a near one, few enough for millions of pairs
TOO_ALIKE = 0.8  # cosine from which another product's intent may well say the same in other words


def drawn(known: Sequence[IntentRecord], limit: int | None, seed: int = 0) -> list[IntentRecord]:
    """``limit`` of the right intents, and the wrong ones of their products; all where there are not more."""
    right = [place for place, one in enumerate(known) if one.label == 1]
    if limit is None or len(right) <= limit:
        return list(known)
    kept = set(random.Random(f"{seed}:drawn").sample(right, limit))
    products = {known[place].group_key for place in kept}
    return [one for place, one in enumerate(known) if place in kept or (one.label == 0 and one.group_key in products)]


def make_pairs(
    known: Sequence[IntentRecord], negatives: float, hard: float = 0.0, embed: Embed | None = None, seed: int = 0
) -> list[IntentRecord]:
    """Every right pair, and ``negatives`` wrong ones for each: those that the source calls wrong, then intents of
    other products.

    Args:
        hard: the share of the drawn ones that are hard: of ``POOL`` drawn intents the one most similar to the product's
            own, but for those so similar that they might be right as well.
        embed: unit vectors of texts, [texts, dimension]; may be left out where nothing is hard.

    Raises ValueError where wrong pairs are asked for and no other product has an intent to lend.
    """
    rng = random.Random(f"{seed}:pairs")
    right = [one for one in known if one.label == 1]
    wrong = [one for one in known if one.label == 0]
    wanted = round(negatives * len(right))
    chosen = rng.sample(wrong, min(wanted, len(wrong)))
    pairs = [*right, *chosen, *_Drawer(right, rng).draw(wanted - len(chosen), hard, embed)]
    return [one.model_copy(update={"id": f"intent-{number}"}) for number, one in enumerate(pairs)]


class _Drawer:
    """Draws intents of other products for the products of right pairs."""

    def __init__(self, right: Sequence[IntentRecord], rng: random.Random) -> None:
        self.right, self.rng = right, rng
        self.keys = [text_key(one.intent) for one in right]
        self.own: defaultdict[str, set[str]] = defaultdict(set)
        for one, key in zip(right, self.keys, strict=True):
            self.own[one.group_key].add(key)

    def draw(self, count: int, hard: float, embed: Embed | None) -> list[IntentRecord]:
        if count <= 0:
            return []
        order = self.rng.sample(range(len(self.right)), len(self.right))
        places = [order[number % len(order)] for number in range(count)]
        difficult = round(hard * count)
        vectors = None
        if difficult:
            if embed is None:
                raise ValueError("hard wrong pairs need a sentence encoder")
            vectors = embed([one.intent for one in self.right])
        made = []
        for number, place in enumerate(places):
            other = self._near(place, vectors) if vectors is not None and number < difficult else self._any(place)
            meta = {"kind": "hard" if vectors is not None and number < difficult else "other"}
            update: dict[str, Any] = {"intent": self.right[other].intent, "label": 0, "meta": meta}
            made.append(self.right[place].model_copy(update=update))
        return made

    def _lenders(self, place: int, count: int) -> list[int]:
        """Places of drawn intents that are none of the product's own."""
        own = self.own[self.right[place].group_key]
        others = (self.rng.randrange(len(self.right)) for _ in range(count))
        return [other for other in others if self.keys[other] not in own]

    def _any(self, place: int) -> int:
        for _ in range(POOL):
            if found := self._lenders(place, POOL):
                return found[0]
        title = self.right[place].product.title
        raise ValueError(f"intents: all are of products like {title!r}; wrong pairs need the intents of others")

    def _near(self, place: int, vectors: NDArray[np.float32]) -> int:
        """The most similar of a pool that is not too alike; any where all are."""
        pool = self._lenders(place, POOL)
        if not pool:
            return self._any(place)
        alike = vectors[pool] @ vectors[place]
        alike[alike >= TOO_ALIKE] = -2
        return pool[int(np.argmax(alike))]


def shuffled(known: Sequence[IntentRecord], seed: int = 0) -> list[IntentRecord]:
    """The control: the same products and the same intents, each intent with another product than its own.

    Products keep their numbers of right and of wrong intents, so that what is learned from is as much and looks alike;
    only what belongs to what is lost. Where one product has more than half of the intents, some stay.
    """
    rng = random.Random(f"{seed}:shuffled")
    made: list[IntentRecord] = []
    for label in (1, 0):
        groups: defaultdict[str, list[IntentRecord]] = defaultdict(list)
        for one in known:
            if one.label == label:
                groups[one.group_key].append(one)
        names = rng.sample(list(groups), len(groups))
        rows = [one for name in names for one in groups[name]]
        # Turned on by the largest group's size, no intent ends up within its own group.
        turn = max(map(len, groups.values()), default=0)
        intents = [one.intent for one in rows[turn:] + rows[:turn]]
        made += [one.model_copy(update={"intent": text}) for one, text in zip(rows, intents, strict=True)]
    return made
