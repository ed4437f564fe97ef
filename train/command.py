"""The command that trains a judge again, from its configuration alone."""

from __future__ import annotations

import os
import shlex
from functools import reduce
from pathlib import Path
from typing import Any

from train.arguments import leaf_types, parse
from train.config import TrainConfig

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
# Where a run lives, how it is watched and where it goes: none of it changes the judge.
NOT_OF_THE_JUDGE = ("run.", "tracking.", "hub.", "push_to_hub", "threads", "dry_run")

# What names files: none of it is told with where it lies.
REFERENCES = ("data.", "intents.data", "intents.apart", "intents.embedder")


def default_config(judgment: str) -> Path:
    """The file that training reads where no ``--config`` is given."""
    return CONFIGS / judgment / "minilm.yaml"


def training_command(judgment: str, config: TrainConfig, checkpoint: str, processes: int = 1) -> str:
    """What to type in the repository's root, a flag on each line: every key that differs from the default file's.

    Data files are called by their own names, never by where they lie.

    Args:
        checkpoint: the backbone's publishable name, with its revision if it has one.
    """
    default = parse(TrainConfig, [], default_config(judgment))
    words = [] if processes == 1 else [f"--num_processes {processes}"]
    lines = [" ".join(["accelerate launch", *words, f"train/{judgment}.py"])]
    for name in leaf_types(TrainConfig):
        value = checkpoint if name == "checkpoint" else value_of(config, name)
        if not name.startswith(NOT_OF_THE_JUDGE) and value != value_of(default, name):
            if name.startswith(REFERENCES) and isinstance(value, str):
                value = publishable(value)
            elif name.startswith(REFERENCES) and isinstance(value, tuple):
                value = tuple(map(publishable, value))
            lines.append(f"--{name}={shlex.quote(_written(value))}")
    return " \\\n    ".join(lines)


def value_of(config: TrainConfig, name: str) -> Any:
    """The value of a dotted key."""
    return reduce(getattr, name.split("."), config)


def publishable(reference: str) -> str:
    """A data reference as others may read it: a file by its own name."""
    return Path(reference).name if os.path.exists(reference) else reference


def _written(value: Any) -> str:
    """A value as a flag takes it."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_written, value))}]"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)
