"""The measurement of a large catalogue runs, and its words are spread as in real titles."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from benchmarks.ecomagent.scale import COMMON, Vocabulary, measure, metadata


def test_a_small_measurement_has_every_figure(tmp_path: Path) -> None:
    found = measure(300, tmp_path)
    assert (found["products"], found["reviews"]) == (300, 150)
    assert found["file_mib"] >= 0 and found["build_seconds"] > 0 and found["peak_mib"] > 10
    for mode in ("strict", "compat"):
        assert len(found["search_ms"][mode]) == 3
        assert all(0 <= times["p50"] <= times["p95"] <= times["worst"] for times in found["search_ms"][mode].values())


def test_few_words_are_common_and_most_are_rare() -> None:
    vocabulary = Vocabulary(0)
    drawn = Counter(vocabulary.draw(random.Random(0), 50_000))
    assert drawn.most_common(1)[0][0] in COMMON[:3]
    assert sum(count == 1 for count in drawn.values()) > 0.3 * len(drawn)


def test_the_same_seed_gives_the_same_products() -> None:
    first, second = (list(metadata(20, Vocabulary(0), seed=3)) for _ in range(2))
    assert first == second and len({one["parent_asin"] for one in first}) == 20
