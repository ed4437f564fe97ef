"""Reviews of a product: what buyers of its kind say, as far as it is true of this one, in the mood of their stars."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from benchmarks.ecomagent.sample.schema import Category, Family, Opinions, fitting

Mood = Literal["good", "mixed", "bad"]
WELL_REVIEWED, UNREVIEWED = 0.42, 0.05
OPENED, CLOSED, OTHER = 0.35, 0.25, 0.45
TURNS = ("Still: ", "One flaw: ", "On the downside: ", "")
EARLIEST, LATEST = 1_609_459_200_000, 1_694_000_000_000  # January 2021 and September 2023, in milliseconds


def reviews(
    record: Mapping[str, Any],
    attributes: Mapping[str, str],
    category: Category,
    family: Family,
    opinions: Opinions,
    seed: int,
) -> list[dict[str, Any]]:
    """The product's reviews as records of Amazon Reviews 2023, oldest first; the same for the same seed."""
    source = random.Random(f"{seed}:reviews:{record['parent_asin']}")
    values = frozenset(one for value in attributes.values() for one in value.split(", "))
    own = {"good": fitting(family.good, values), "bad": fitting(family.bad, values)}
    any_product = opinions.of(attributes)
    other = {"good": [*any_product.good, *category.good], "bad": [*any_product.bad, *category.bad]}
    writer = _Writer(own, other, opinions, source)
    count = _count(source)
    times = sorted(source.randrange(EARLIEST, LATEST) for _ in range(count))
    return [_review(record, time, writer, source) for time in times]


def _count(source: random.Random) -> int:
    """From 10 to 19 for two in five products, a few for most, none for some."""
    chance = source.random()
    if chance < WELL_REVIEWED:
        return source.randint(10, 19)
    return 0 if chance > 1 - UNREVIEWED else source.randint(1, 6)


def _review(record: Mapping[str, Any], time: int, writer: _Writer, source: random.Random) -> dict[str, Any]:
    stars = min(5, max(1, round(source.gauss(record["average_rating"] + 0.2, 1.0))))
    title, text = writer.write(stars)
    return {
        "rating": float(stars),
        "title": title,
        "text": text,
        "images": [],
        "asin": record["parent_asin"],
        "parent_asin": record["parent_asin"],
        "user_id": f"EJ{source.getrandbits(60):015X}",
        "timestamp": time,
        "helpful_vote": int(source.expovariate(0.7)),
        "verified_purchase": source.random() < 0.9,
    }


class _Writer:
    """Writes reviews of one product; an opinion comes again only when all of its kind were given."""

    def __init__(
        self,
        own: Mapping[str, Sequence[str]],
        other: Mapping[str, Sequence[str]],
        opinions: Opinions,
        source: random.Random,
    ) -> None:
        self.opinions, self.source = opinions, source
        self.own = {mood: _endless(lines, source) for mood, lines in own.items()}
        self.other = {mood: _endless(lines, source) for mood, lines in other.items()}

    def write(self, stars: int) -> tuple[str, str]:
        """(title, text) of a review with so many stars."""
        mood: Mood = "good" if stars >= 4 else "mixed" if stars == 3 else "bad"
        good, bad = {5: (2, 0), 4: (2, 0), 3: (1, 1), 2: (0, 2), 1: (0, 2)}[stars]
        good += stars == 5 and self.source.random() < 0.4
        bad += stars == 4 and self.source.random() < 0.4
        sentences = [self.source.choice(self.opinions.openers)] if self.source.random() < OPENED else []
        sentences += self._opinions("good", good)
        turn = self.source.choice(TURNS) if good and bad else ""
        sentences += [turn * (place == 0) + line for place, line in enumerate(self._opinions("bad", bad))]
        if self.source.random() < CLOSED:
            sentences.append(self.source.choice(getattr(self.opinions.closers, mood)))
        return self.source.choice(getattr(self.opinions.titles, mood)), " ".join(sentences)

    def _opinions(self, mood: str, count: int) -> list[str]:
        """Some of the product's own kind, some of its attributes, its category, or anything."""
        return [next((self.other if self.source.random() < OTHER else self.own)[mood]) for _ in range(count)]


def _endless(lines: Sequence[str], source: random.Random) -> Iterator[str]:
    while True:
        yield from source.sample(lines, len(lines))
