"""Tiny judges for the three judgments over one backbone, and rows for them to judge."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from tiny import tiny_checkpoint
from tiny_judges import shake

from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import new_judge
from models.lora import LoraSettings
from recipes.judgments import get_judgment

torch.set_num_threads(1)  # fastest for models this small, and slows nobody else down


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("base") / "tiny", "llama")


@pytest.fixture(scope="session")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``adapter(judgment, run)``: the folder of a judge as if trained; every name another one."""

    @cache
    def make(judgment: str, run: str = "run", head: str = "classification", threshold: float = 0.5) -> Path:
        recipe = get_judgment(judgment)
        torch.manual_seed(0)
        judge = new_judge(
            resolve(str(base)),
            judgment,
            recipe.template_version,
            recipe.label_words,
            LoadSettings(head=head, dtype="float32"),  # type: ignore[arg-type]
            LoraSettings(rank=4, alpha=8),
            max_length=200,
        )
        shake(judge, seed=sum(map(ord, judgment + run)))
        folder = tmp_path_factory.mktemp(judgment) / judgment / run / "adapter"
        judge.with_spec(threshold=threshold, temperature=1.5).save(folder)
        return folder

    return make
