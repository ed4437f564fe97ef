"""The pilot: hit rates where it is known what must come out, and a report that shows them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.ecomscript.build import pilot as module
from benchmarks.ecomscript.build.index import embedded_text
from benchmarks.ecomscript.build.pilot import PilotConfig, Step, measure, pilot, sample_catalogue
from models.embedding import Vectors

catalogue = cache(sample_catalogue)


class Oracle:
    """Knows which step an intent belongs to, and takes every product's own text for that of the first step."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.facts = {"checkpoint": "oracle", "pooling": "mean"}
        steps, products = catalogue()
        self.count, self.place = len(steps), dict[str, int]()
        for number, step in enumerate(steps):
            for row in step.right:
                self.place |= {embedded_text(intent): number for intent in products[row]["intents"]}
        for number, step in enumerate(steps):
            self.place[step.text] = number

    def embed(self, texts: list[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.count), np.float32)
        for row, text in enumerate(texts):
            vectors[row, self.place.get(text, 0)] = 1
        return vectors


def test_who_knows_the_intents_finds_every_step_and_who_does_not_finds_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "Embedder", Oracle)
    monkeypatch.setattr(module, "sample_catalogue", catalogue)
    results = pilot(PilotConfig(resamples=50, threads=1, out=str(tmp_path)))
    steps, products = catalogue()
    assert (results["steps"], results["goals"], results["products"]) == (len(steps), 108, len(products))
    ways = results["ways"]
    # Two steps may share an intent, word for word; beside that the oracle knows.
    for name in ("cosine_of_mean", "mean_of_cosines"):
        assert ways[name]["hit_rate"]["value"] > 0.98 and ways[name]["with_products"] > 0.98
    assert ways["text"]["hit_rate"]["value"] < 0.02
    search = ways["search"]["hit_rate"]
    assert 0.2 < search["low"] < search["value"] < search["high"] < 0.8
    difference = ways["cosine_of_mean"]["difference"]["value"]
    assert difference == pytest.approx(ways["cosine_of_mean"]["hit_rate"]["value"] - search["value"])
    assert ways["search"]["difference"]["value"] == 0
    assert json.loads((tmp_path / "pilot.json").read_text()) == json.loads(json.dumps(results))
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", html)
    assert f"{search['value']:.3f} [{search['low']:.3f}, {search['high']:.3f}]" in text
    assert html.count("Step as a search query") == 8 and "✓" in text


def test_hits_are_counted_by_step_and_drawn_by_goal() -> None:
    steps = [Step("g", f"goal {k // 2}", f"step {k}", frozenset({k})) for k in range(4)]
    found = [[(0, 0.5), (9, 0.4)], [(9, 0.5)], [(2, 0.44)], [(3, 0.45)]]
    searched = [[(0, 0.0)], [(1, 0.0)], [(9, 0.0)], []]
    measured = measure(steps, found, searched, PilotConfig(resamples=2000))
    assert measured["hit_rate"]["value"] == 0.75 and measured["difference"]["value"] == 0.25
    # One goal loses a hit of two, the other gains both; drawn twice, both ends are reached.
    assert (measured["difference"]["low"], measured["difference"]["high"]) == (-0.5, 1.0)
    # The threshold takes away the third step's hit (0.44) and keeps the last one's (0.45).
    assert measured["hit_rate_above"]["value"] == 0.5 and measured["with_products"] == 0.75
