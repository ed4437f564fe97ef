"""The accelerator check runs anywhere with a tiny shape, and its two ways of scoring agree."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.speed.accelerator import AcceleratorConfig, check, random_prompts


def test_the_check_measures_training_and_scoring(tmp_path: Path) -> None:
    config = AcceleratorConfig(
        shape="tiny", prefix=24, own=12, records=10, batch=4, updates=2,
        folder=str(tmp_path / "model"), out=str(tmp_path / "gpu.json"),
    )  # fmt: skip
    found = check(config)
    assert json.loads((tmp_path / "gpu.json").read_text())["none"] == found["none"]
    for quantization in ("none", "nf4"):
        scoring = found[quantization]["scoring"]
        assert scoring["largest_difference"] < 0.05  # bfloat16, on machines where auto takes it
        assert scoring["shared"]["computed_tokens"] < scoring["apart"]["computed_tokens"]
        assert len(found[quantization]["training"]["losses"]) == 3
        assert found[quantization]["training"]["records_per_second"] > 0
        assert 0 < found[quantization]["training"]["mfu"] < 1.5


def test_prompts_begin_alike_and_go_on_apart() -> None:
    rows = [row["input_ids"] for row in random_prompts(AcceleratorConfig(prefix=30, own=10, records=6), 1000)]
    assert len({tuple(row[:30]) for row in rows}) == 1
    assert len({tuple(row[30:35]) for row in rows}) == 6
    assert all(5 <= len(row) - 30 <= 15 for row in rows)
