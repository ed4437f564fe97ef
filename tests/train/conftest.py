"""Tiny data and settings for training runs that take a second."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import tiny_checkpoint

from models.backbone import LoadSettings
from models.lora import LoraSettings
from train.config import DataConfig, EvaluationConfig, OptimConfig, RunConfig, TrackingConfig, TrainConfig

STEPS = ["mix flour and water", "let it rise", "heat the oven", "bake the bread", "hang the lights", "call the guests"]


def write_scripts(path: Path, count: int, start: int = 0) -> Path:
    """``count`` script records, labels alternating but for every fifth, lengths varied; a group of its own each."""
    lines = []
    for number in range(start, start + count):
        steps = [STEPS[(number + place) % len(STEPS)] for place in range(1 + number % 5)]
        label = 1 if number % 5 == 0 else number % 2
        lines.append(json.dumps({"id": f"r{number}", "goal": f"goal number {number}", "script": steps, "label": label}))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("llama") / "tiny-llama", "llama")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("bert") / "tiny-bert", "bert")


@pytest.fixture
def tiny_config(tmp_path: Path, tiny_llama: Path) -> TrainConfig:
    """Four updates of eight records, an evaluation every second one, no dropout, no W&B."""
    return TrainConfig(
        checkpoint=str(tiny_llama),
        model=LoadSettings(dtype="float32"),
        lora=LoraSettings(rank=4, alpha=8, dropout=0.0),
        data=DataConfig(
            train=str(write_scripts(tmp_path / "train.jsonl", 32)),
            validation=str(write_scripts(tmp_path / "validation.jsonl", 11, start=100)),
        ),
        optim=OptimConfig(batch_size=8, micro_batch_size=8, epochs=1, learning_rate=1e-3, warmup=0.0),
        evaluation=EvaluationConfig(every=2, batch_size=4),
        tracking=TrackingConfig(wandb="disabled", log_every=1),
        run=RunConfig(folder=str(tmp_path / "runs"), name="run"),
        threads=1,
    )


def named(config: TrainConfig, name: str) -> TrainConfig:
    """The same run under another name."""
    return replace(config, run=replace(config.run, name=name))
