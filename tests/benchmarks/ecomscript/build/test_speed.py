"""The measurement of alignment measures alignment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.ecomscript.build import speed
from benchmarks.ecomscript.build.speed import AlignSpeedConfig, measure_speed


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything in this process; the names of what was measured."""
    done: list[str] = []

    def apart(work: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
        done.append(work.__name__)
        return speed._measured(work, *given)

    monkeypatch.setattr(speed, "_apart", apart)
    monkeypatch.setattr(speed, "PART", 70)
    return done


def test_each_size_and_index_is_measured(here: list[str], tmp_path: Path) -> None:
    config = AlignSpeedConfig(
        products=[60, 200], intents=3, dimension=8, queries=5, candidates=20, threads=1, out=str(tmp_path / "s.json")
    )
    measured = measure_speed(config)
    assert here == ["_write_intents", "_average", "_search", "_search"] * 2
    assert [(one["products"], one["index"], one["averaging"]["intents"]) for one in measured] == [
        (60, "exact", 180),
        (60, "approximate", 180),
        (200, "exact", 600),
        (200, "approximate", 600),
    ]
    assert all(one["mib_peak"] > 0 and one["ms_with_candidates"] > 0 for one in measured)
    # Few products have few lists, all of which are looked into.
    assert [one["recall"] for one in measured] == [1.0] * 4
    assert json.loads((tmp_path / "s.json").read_text())["settings"]["products"] == [60, 200]


def test_vectors_are_of_length_one_and_averaged_by_product(tmp_path: Path) -> None:
    config = AlignSpeedConfig(intents=3, dimension=8)
    parts = speed._write_intents(config, tmp_path, 5)["parts"]
    vectors = np.load(parts[0][0])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    speed._average(config, tmp_path, 5, parts)
    np.testing.assert_allclose(np.load(tmp_path / "means.npy"), vectors.reshape(5, 3, 8).mean(axis=1), atol=1e-6)
