"""A run's folder: its configuration on disk, which checkpoint to go on from, and the metrics that belong to it."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from transformers.trainer import TRAINER_STATE_NAME

from train.config import TrainConfig

CONFIG_FILE = "config.yaml"
METRICS_FILE = "metrics.jsonl"
ADAPTER = "adapter"
# What may differ between a run and its continuation: none of it changes the result.
FREE_KEYS = (
    *("run", "facts.versions", "tracking.wandb", "tracking.entity", "tracking.project", "threads", "dry_run"),
    *("hub", "push_to_hub"),
)


class RunFolder:
    """The folder of one run: ``config.yaml``, ``metrics.jsonl``, ``checkpoints/``, ``adapter/``, ``README.md``."""

    def __init__(self, config: TrainConfig, judgment: str) -> None:
        self.path = Path(config.run.folder) / judgment / (config.run.name or _default_name(config))
        self.checkpoints = self.path / "checkpoints"
        self.adapter = self.path / ADAPTER
        self.metrics = self.path / METRICS_FILE

    @property
    def finished(self) -> bool:
        """Whether the run has ended with a judge."""
        return (self.adapter / "judge.json").is_file()

    def check(self, config: TrainConfig, facts: dict[str, Any]) -> None:
        """Raises ValueError if the folder holds a run with other settings or data; it names the first difference."""
        path = self.path / CONFIG_FILE
        if config.run.overwrite or not path.is_file():
            return
        odd = _differences(yaml.safe_load(path.read_text(encoding="utf-8")) or {}, _as_written(config, facts))
        if odd:
            key, there, here = odd[0]
            raise ValueError(
                f"{self.path} holds a run with {key} = {there!r}, this one has {here!r}"
                f"{f' (and {len(odd) - 1} more differences)' if len(odd) > 1 else ''}; give --run.name another name, "
                "or --run.overwrite to start anew"
            )

    def open(self, config: TrainConfig, facts: dict[str, Any]) -> None:
        """Make the folder and write the resolved configuration.

        Args:
            facts: what else fixes the result (data fingerprints, versions); kept in config.yaml under ``facts``.
        """
        if config.run.overwrite and self.path.exists():
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(_as_written(config, facts), sort_keys=False, allow_unicode=True)
        write_text(self.path / CONFIG_FILE, text)

    def last_checkpoint(self, processes: int) -> Path | None:
        """The newest checkpoint that was written to its end; half-written ones are removed."""
        folders = sorted(self.checkpoints.glob("checkpoint-*"), key=lambda folder: int(folder.name.rsplit("-", 1)[1]))
        for folder in reversed(folders):
            if _complete(folder, processes):
                return folder
            shutil.rmtree(folder)
        return None

    def cut_metrics(self, step: int) -> None:
        """Drop the lines of updates after ``step``: they are about to be written again."""
        if self.metrics.is_file():
            lines = self.metrics.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if (entry := _parsed(line)) is not None and entry.get("step", 0) <= step]
            write_text(self.metrics, "".join(f"{line}\n" for line in kept))


def _default_name(config: TrainConfig) -> str:
    """Backbone and seed; in the hands of `wandb agent` its sweep and run, because its trials differ in other things."""
    sweep, run = os.environ.get("WANDB_SWEEP_ID"), os.environ.get("WANDB_RUN_ID")
    if sweep and run:
        return f"sweep-{sweep}-{run}"
    return f"{config.checkpoint.rstrip('/').rsplit('/', 1)[-1]}-seed{config.seed}"


def _as_written(config: TrainConfig, facts: dict[str, Any]) -> dict[str, Any]:
    """The configuration in plain types, as YAML reads it back."""
    return {**json.loads(json.dumps(asdict(config))), "facts": facts}


def write_text(path: Path, text: str) -> None:
    """Replace a file in one move: a reader sees the old text or the new, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _complete(folder: Path, processes: int) -> bool:
    """Trainer's state is the last file that the main process writes; random states come from every process."""
    try:
        state = json.loads((folder / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    states = ["rng_state.pth"] if processes == 1 else [f"rng_state_{rank}.pth" for rank in range(processes)]
    return f"checkpoint-{state.get('global_step')}" == folder.name and all((folder / name).is_file() for name in states)


def _differences(found: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[tuple[str, Any, Any]]:
    odd: list[tuple[str, Any, Any]] = []
    for key in dict.fromkeys([*found, *wanted]):
        name = prefix + key
        there, here = found.get(key), wanted.get(key)
        if name in FREE_KEYS or there == here:
            continue
        if isinstance(there, dict) and isinstance(here, dict):
            odd += _differences(there, here, f"{name}.")
        else:
            odd.append((name, there, here))
    return odd
