"""The accelerator check runs anywhere with a tiny shape, and its two ways of scoring agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks.speed import accelerator
from benchmarks.speed.accelerator import AcceleratorConfig, check, random_checkpoint, random_prompts


def test_the_check_measures_training_and_scoring(tmp_path: Path) -> None:
    config = AcceleratorConfig(
        shape="tiny", prefix=24, own=12, records=10, batch=4, updates=2,
        folder=str(tmp_path / "model"), out=str(tmp_path / "new" / "gpu.json"),
    )  # fmt: skip
    found = check(config)
    assert json.loads((tmp_path / "new" / "gpu.json").read_text())["none"] == found["none"]
    for quantization in ("none", "nf4"):
        scoring = found[quantization]["scoring"]
        assert scoring["largest_difference"] < 0.05  # bfloat16, on machines where auto takes it
        assert scoring["shared"]["computed_tokens"] < scoring["apart"]["computed_tokens"]
        assert len(found[quantization]["training"]["losses"]) == 3
        # Ten prompts in batches of four: the first is not timed, the third has two.
        assert found[quantization]["training"]["records"] == 4 + 2
        assert found[quantization]["training"]["records_per_second"] > 0
        assert 0 < found[quantization]["training"]["mfu"] < 1.5


def test_prompts_begin_alike_and_go_on_apart() -> None:
    rows = [row["input_ids"] for row in random_prompts(AcceleratorConfig(prefix=30, own=10, records=6), 1000)]
    assert len({tuple(row[:30]) for row in rows}) == 1
    assert len({tuple(row[30:35]) for row in rows}) == 6
    assert all(5 <= len(row) - 30 <= 15 for row in rows)


def hidden_size(folder: Path) -> int:
    return int(json.loads((folder / "config.json").read_text())["hidden_size"])


def test_the_random_model_is_kept_for_its_shape_and_made_anew_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cpu = tmp_path / "model", torch.device("cpu")
    random_checkpoint("tiny", folder, cpu)
    made = (folder / "model.safetensors").stat().st_ino
    random_checkpoint("tiny", folder, cpu)
    assert (folder / "model.safetensors").stat().st_ino == made and hidden_size(folder) == 32
    monkeypatch.setitem(accelerator.SHAPES, "small", {**accelerator.SHAPES["tiny"], "hidden_size": 16})
    random_checkpoint("small", folder, cpu)
    assert hidden_size(folder) == 16
    assert list(tmp_path.iterdir()) == [folder]


def test_a_killed_making_is_begun_again_and_a_model_of_ones_own_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model.draft").mkdir()
    (tmp_path / "model.draft" / "config.json").write_text("{}")
    assert hidden_size(random_checkpoint("tiny", tmp_path / "model", torch.device("cpu"))) == 32
    own = tmp_path / "own"
    own.mkdir()
    (own / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="own holds what no check"):
        random_checkpoint("tiny", own, torch.device("cpu"))
    assert (own / "config.json").read_text() == "{}"


def test_what_cannot_be_measured_or_written_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    places = [str(tmp_path), str(tmp_path / "file" / "gpu.json")]
    for config in [AcceleratorConfig("tiny", folder=str(tmp_path / "model"), out=out) for out in places]:
        with pytest.raises(OSError, match=str(tmp_path)):
            check(config)
    with pytest.raises(ValueError, match="quantizations is empty"):
        check(AcceleratorConfig("tiny", quantizations=(), folder=str(tmp_path / "model")))
    assert not (tmp_path / "model").exists()
