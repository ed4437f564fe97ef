"""The command that merges: what it prints, and how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny import tiny_checkpoint
from tiny_judges import shake

from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import load_judge, new_judge
from models.lora import LoraSettings
from scripts import merge

SCRIPT = Path(merge.__file__)


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """A judge trained over 4 bits, its backbone in ``base``."""
    checkpoint = resolve(str(tiny_checkpoint(tmp_path / "base", "qwen2")))
    torch.manual_seed(0)
    settings = LoadSettings(dtype="float32", quantization="nf4")
    judge = new_judge(checkpoint, "step_product", "step_product-1", ("No", "Yes"), settings, LoraSettings(rank=4))
    shake(judge)
    judge.save(tmp_path / "adapter")
    return tmp_path / "adapter"


def test_it_says_how_far_logits_moved_and_where_the_judge_is(
    adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, options = tmp_path / "merged", ["--checkpoint", str(tmp_path / "base"), "--dtype", "bfloat16"]
    assert merge.main([str(adapter), str(out), *options, "--onto_full_precision"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("largest difference of a logit on the probe texts (largest logit ")
    assert [line.split(" ", 3)[-1] for line in lines[1:4]] == [
        "by merging, in float32",
        "as written, in bfloat16",
        "against the judge over the quantized backbone that it was trained on",
    ]
    assert lines[4:] == [f"wrote {out}"]
    assert load_judge(out).spec.judgment == "step_product"


def test_what_is_refused_ends_it_with_a_sentence(
    adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "merged")
    assert merge.main([str(adapter), out, "--checkpoint", str(tmp_path / "base")]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {adapter} was trained over base in nf4.")
    assert merge.main([str(tmp_path / "nowhere"), out]) == 1
    assert capsys.readouterr().err.startswith("error: ")
    assert not (tmp_path / "merged").exists()


def test_the_file_runs_from_the_repository_s_root() -> None:
    command = [sys.executable, str(SCRIPT), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=SCRIPT.parents[1], check=True)
    assert "--onto_full_precision" in done.stdout
    assert done.stderr == ""
