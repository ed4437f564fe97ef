"""What a training command teaches with, so that judges taught by the same words at two times are known to be alike."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from models.manifest import folder_digest, sha256
from train.arguments import leaf_types, parse
from train.command import REFERENCES, default_config, value_of
from train.config import TrainConfig
from train.runs import FREE_KEYS


def settings_of(judgment: str, flags: Sequence[str]) -> dict[str, Any]:
    """Every key that may touch the result, dotted, as configuration file and flags set it, and the sha256 of each file
    and model folder that one of them names (under ``contents of PATH``).

    Ends with status 2 where the training command would refuse the flags. Raises ValueError for a dry run.
    """
    config = parse(TrainConfig, flags, default_config(judgment))
    if config.dry_run:
        raise ValueError("dry_run: it would teach no judge; leave it out, or give it to the training command itself")
    names = (name for name in leaf_types(TrainConfig) if not _is_free(name))
    settings = {name: value_of(config, name) for name in names}
    named = [value for name, value in settings.items() if name.startswith((*REFERENCES, "checkpoint"))]
    paths = [path for value in named for path in (value if isinstance(value, tuple) else (value,))]
    return settings | {f"contents of {path}": _digest(path) for path in paths if _is_there(path)}


def _is_free(name: str) -> bool:
    return any(name == key or name.startswith(f"{key}.") for key in FREE_KEYS)


def _is_there(path: Any) -> bool:
    return isinstance(path, str) and os.path.exists(path)


def _digest(path: str) -> str:
    return folder_digest(Path(path)) if os.path.isdir(path) else sha256(Path(path))
