"""What a run would do, for a person to read before it starts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
import yaml
from rich.console import Console
from rich.table import Table

from models.judge import Judge
from models.lora import trainable_parts
from train.config import TrainConfig
from train.data import Split

GIB = 2**30
# Bytes a trainable parameter needs beside its own: gradient and two AdamW moments in float32.
BYTES_PER_TRAINABLE = 12


def report(console: Console, config: TrainConfig, judge: Judge, splits: list[Split]) -> None:
    """Print the resolved configuration, the data, the trainable parts, and an estimate of memory."""
    console.rule("configuration")
    console.print(yaml.safe_dump(_plain(asdict(config)), sort_keys=False).rstrip())
    console.rule("data")
    console.print(_data_table(splits))
    for split in splits:
        if split.fitted.shortened:
            cut = sorted(split.fitted.shortened.items(), key=lambda item: item[1][1] - item[1][0])[:5]
            console.print(f"{split.name}: shortened most: " + ", ".join(f"{k} {a} -> {b} tokens" for k, (a, b) in cut))
    console.rule("trainable parts")
    for part, count in trainable_parts(judge.model).items():
        console.print(f"{count:>12,}  {part}")
    total = sum(parameter.numel() for parameter in judge.model.parameters())
    trainable = sum(parameter.numel() for parameter in judge.model.parameters() if parameter.requires_grad)
    console.print(f"{trainable:,} of {total:,} parameters are trained ({trainable / total:.2%})")
    console.rule("memory, estimated")
    for name, size in memory_estimate(config, judge, max(max(split.fitted.lengths) for split in splits)).items():
        console.print(f"{size / GIB:8.2f} GiB  {name}")
    console.print("nothing was trained; leave out --dry_run to start")


def memory_estimate(config: TrainConfig, judge: Judge, longest: int) -> dict[str, int]:
    """Bytes a process needs: weights, gradients and optimizer, and activations of the longest micro-batch.

    Activations of a transformer layer without fused attention are about tokens x (34 hidden + 5 heads x tokens) bytes
    in 16 bit (Korthikanti et al. 2022, eq. 1); with fused attention the second term goes, with checkpointing only
    2 hidden bytes a token stay.
    """
    model_config: Any = judge.model.config
    parameters = list(judge.model.parameters())
    weights = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    trainable = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    tokens = config.optim.micro_batch_size * longest
    wide = 2 if next(iter(parameters)).dtype == torch.float32 else 1
    per_token = (2 if config.optim.gradient_checkpointing else 34) * model_config.hidden_size * wide
    return {
        "weights": weights,
        "gradients and optimizer": trainable * BYTES_PER_TRAINABLE,
        "activations of the longest micro-batch": tokens * per_token * model_config.num_hidden_layers,
    }


def _data_table(splits: list[Split]) -> Table:
    """A column for each split: as narrow as terminals and log files may be."""
    table = Table("", *(split.name for split in splits))
    every = [split.facts() for split in splits]
    for name in ("records", "yes", "groups"):
        table.add_row(name, *(str(facts[name]) for facts in every))
    for name in ("mean", "median", "p95", "max"):
        table.add_row(f"tokens, {name}", *(str(facts["tokens"][name]) for facts in every))
    for name in ("shortened", "left_out"):
        table.add_row(name.replace("_", " "), *(str(facts[name]) for facts in every))
    return table


def _plain(value: Any) -> Any:
    """Tuples as lists, for YAML."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
