"""Tiny data and settings for training runs that take a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny import tiny_checkpoint, write_scripts

from models.backbone import LoadSettings
from models.lora import LoraSettings
from train.config import DataConfig, EvaluationConfig, OptimConfig, RunConfig, TrackingConfig, TrainConfig


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
