"""Projections from a construction that was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ecomscript.build.cost import STAGES, CostConfig, project, show_cost


def manifest(folder: Path, stage: str, **fields: Any) -> None:
    (folder / stage).mkdir()
    (folder / stage / "manifest.json").write_text(json.dumps({"identity": {}, "files": {}, **fields}))


def test_rows_grow_with_reviews_or_products_at_measured_rates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest(tmp_path, "ingest", products={"kept": 100}, reviews={"kept": 50})
    for stage in STAGES:
        read, seconds, processes = {"goals": (50, 25, 1), "intents": (100, 10, 2)}.get(stage, (40, 0, 1))
        cost = {"rows": read, "seconds": seconds, "processes": processes}
        manifest(tmp_path, stage, read=read, tokens=1000, cost=cost)
    config = CostConfig(str(tmp_path), products=360_000, reviews=36_000, processes=4)
    costs = {cost.stage: cost for cost in project(config)}
    # 720 times the reviews: 36,000 goals at 2 a second by four processes take 75 minutes, and 720,000 tokens.
    assert costs["goals"].rows == 36_000 and costs["goals"].rate == 2.0
    assert costs["goals"].hours == pytest.approx(1.25) and costs["goals"].tokens == 720_000
    # 3,600 times the products: two processes did ten a second, so that four do twenty.
    assert costs["intents"].rate == 5.0 and costs["intents"].hours == pytest.approx(5.0)
    assert costs["align"].rows == 40 * 720 and costs["align"].hours is None
    assert costs["index"].rows == 40 * 3600
    show_cost(config)
    assert "36,000" in capsys.readouterr().out
    (tmp_path / "align" / "manifest.json").write_text('{"identity": {}}')
    with pytest.raises(FileNotFoundError, match="align: the stage has not ended"):
        project(config)
