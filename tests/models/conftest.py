"""Tiny checkpoints and judges, each made once a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny_checkpoint
from tiny_judges import PROMPTS, WORDS, Made, in_bfloat16, shake

from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import Judge, new_judge
from models.lora import LoraSettings

torch.set_num_threads(1)  # fastest for models this small, and slows nobody else down


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``base(architecture, dtype)``: the folder of a tiny checkpoint, called after its architecture."""

    @cache
    def make(architecture: str, dtype: str = "float32", seed: int = 0) -> Path:
        folder = tiny_checkpoint(tmp_path_factory.mktemp("base") / architecture, architecture, seed=seed)
        if dtype == "bfloat16":
            in_bfloat16(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def fresh(base: Callable[..., Path]) -> Callable[..., Judge]:
    """``fresh(architecture, head, lora=..., **load settings)``: an untrained judge, in float32 if nothing is said."""

    def make(architecture: str, head: str = "classification", lora: Any = "default", **settings: Any) -> Judge:
        settings = {"dtype": "float32", **settings}
        checkpointing = settings.pop("checkpointing", False)
        torch.manual_seed(0)
        return new_judge(
            resolve(str(base(architecture))),
            "script_verify",
            "script_verify-1",
            WORDS,
            LoadSettings(head=head, **settings),  # type: ignore[arg-type]
            LoraSettings(rank=4, alpha=8) if lora == "default" else lora,
            gradient_checkpointing=checkpointing,
        )

    return make


@pytest.fixture(scope="session")
def made(base: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Made]:
    """``made(architecture, head, dtype)``: a judge as if trained, over a checkpoint in that dtype, computing in it."""

    @cache
    def make(architecture: str, head: str = "classification", dtype: str = "float32") -> Made:
        folder = base(architecture, dtype)
        torch.manual_seed(0)
        judge = new_judge(
            resolve(str(folder)),
            "script_verify",
            "script_verify-1",
            WORDS,
            LoadSettings(head=head, dtype=dtype),  # type: ignore[arg-type]
            LoraSettings(rank=4, alpha=8),
        ).with_spec(threshold=0.4, temperature=1.5)
        shake(judge)
        saved = tmp_path_factory.mktemp("judge") / "adapter"
        judge.save(saved)
        return Made(folder, saved, judge, judge.encoder.encode(PROMPTS))

    return make
