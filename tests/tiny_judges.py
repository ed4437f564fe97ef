"""Judges over tiny checkpoints, and the prompts that tests let them read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from tiny import DECODERS, ENCODERS

from models.encoding import Encoded
from models.judge import Judge
from models.lora import trained_heads

WORDS = ("No", "Yes")
COMBINATIONS = [(name, "classification") for name in (*DECODERS, *ENCODERS)] + [
    (name, "verbalizer") for name in DECODERS
]


class Prompt(NamedTuple):
    prefix: tuple[str, ...]
    suffix: str


# Longer than ModernBERT's local attention (128 tokens), and shorter than any limit.
PROMPTS = [
    Prompt(("You check plans.\n", "Goal: bake bread at home\n"), "Script: 1. mix flour and water 2. bake"),
    Prompt(("You check plans.\n",), "No"),
    Prompt(("You check plans.\n", "Goal: plan an autumn party\n"), "Step: hang the lights; call the guests " * 9),
    Prompt(("You check plans.\n",), "Product: string lights (party; 12.50) - warm white; 10 m. Is it so? Yes"),
]


@dataclass(frozen=True)
class Made:
    """A judge in memory whose every trainable weight is random and large enough to matter, and its saved folder."""

    base: Path
    folder: Path
    judge: Judge
    encoded: list[Encoded]

    def logits(self, judge: Judge | None = None) -> torch.Tensor:
        """Logits of the prompts, each alone in its batch, [prompts, 2]."""
        return torch.cat([logits_of(judge or self.judge, [row]) for row in self.encoded])


@torch.inference_mode()
def logits_of(judge: Judge, rows: list[Encoded], length: int | None = None) -> torch.Tensor:
    judge.model.eval()
    return judge.logits(judge.encoder.pad(rows, length))


def shake(judge: Judge, seed: int = 1) -> None:
    """Fill adapters and head with random numbers, as if they had been trained."""
    generator = torch.Generator().manual_seed(seed)
    heads = {id(parameter) for module in trained_heads(judge.model) for parameter in module.parameters()}
    with torch.no_grad():
        for parameter in judge.model.parameters():
            if parameter.requires_grad and parameter.dim() > 1:
                scale = 0.3 if id(parameter) in heads else 0.1
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)


def in_bfloat16(folder: Path) -> None:
    """Rewrite a checkpoint's weights in bfloat16, as most are published."""
    path = folder / "model.safetensors"
    save_file({name: tensor.bfloat16() for name, tensor in load_file(path).items()}, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))


def edit(path: Path, **changes: Any) -> None:
    """Change values of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
