"""A run's folder: its configuration on disk, whether it has ended, and the metrics that belong to it."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from models.folder import check_replaceable
from train.config import TrainConfig

CONFIG_FILE = "config.yaml"
METRICS_FILE = "metrics.jsonl"
ADAPTER = "adapter"
PREDICTIONS_FILE = "predictions.jsonl"
REPORT_FILE = "report.html"
# What may differ between a run and its continuation: none of it changes the result.
FREE_KEYS = (
    *("run", "facts.versions", "tracking.wandb", "tracking.entity", "tracking.project", "threads", "dry_run"),
    *("hub", "push_to_hub"),
)


class RunFolder:
    """The folder of one run: ``config.yaml``, ``metrics.jsonl``, ``checkpoints/``, ``adapter/``, ``README.md``,
    ``predictions.jsonl`` of the validation records, and ``report.html``."""

    def __init__(self, config: TrainConfig, judgment: str) -> None:
        """Raises ValueError unless the run's name is that of a folder: what leads elsewhere might overwrite there."""
        name = config.run.name or _default_name(config)
        if Path(name).name != name or name == ".." or not name.isprintable():
            raise ValueError(f"run.name is {name!r}; give the name of one folder, and where it lies as --run.folder")
        self.path = Path(config.run.folder) / judgment / name
        self.checkpoints = self.path / "checkpoints"
        self.adapter = self.path / ADAPTER
        self.metrics = self.path / METRICS_FILE
        self.predictions = self.path / PREDICTIONS_FILE
        self.report = self.path / REPORT_FILE

    @property
    def finished(self) -> bool:
        """Whether the run has ended with a judge; the final metrics are the last thing that it writes."""
        return (self.adapter / "judge.json").is_file() and bool(self.final_metrics())

    def final_metrics(self) -> dict[str, Any]:
        """The metrics of the finished judge, as metrics.jsonl holds them; nothing if the run has not ended."""
        finals = (entry["final"] for entry in reversed(self.entries()) if isinstance(entry.get("final"), dict))
        return next(finals, {})

    def check(self, config: TrainConfig, facts: dict[str, Any]) -> None:
        """Raises ValueError if the folder holds a run with other settings or data, naming the first difference, or what
        is no run at all and was to be overwritten.

        Facts that only one of the two has are not compared: the backbone's are known once it is loaded.
        """
        path = self.path / CONFIG_FILE
        if config.run.overwrite:
            check_replaceable(self.path, CONFIG_FILE)
            return
        if not path.exists():
            return
        found, wanted = _read_config(path), _as_written(config, facts)
        both = found["facts"].keys() & facts.keys()
        for tree in (found, wanted):
            tree["facts"] = {name: tree["facts"][name] for name in both}
        odd = _differences(found, wanted)
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

    def cut_metrics(self, step: int) -> None:
        """Drop the lines of updates after ``step``, and the line that closes training: both are written again."""
        if self.metrics.is_file():
            kept = [entry for entry in self.entries() if entry.get("step", 0) <= step and "train_runtime" not in entry]
            write_text(self.metrics, "".join(json.dumps(entry, sort_keys=True) + "\n" for entry in kept))

    def settings(self) -> dict[str, Any]:
        """What config.yaml holds: the resolved configuration and, under ``facts``, what else fixes the result."""
        return _read_config(self.path / CONFIG_FILE)

    def entries(self) -> list[dict[str, Any]]:
        """The whole lines of metrics.jsonl; a run that was killed may have left a part of one."""
        if not self.metrics.is_file():
            return []
        lines = self.metrics.read_text(encoding="utf-8", errors="replace").splitlines()
        return [entry for line in lines if (entry := _parsed(line)) is not None]


def _default_name(config: TrainConfig) -> str:
    """Backbone and seed; in the hands of `wandb agent` its sweep and run, because its trials differ in other things."""
    sweep, run = os.environ.get("WANDB_SWEEP_ID"), os.environ.get("WANDB_RUN_ID")
    if sweep and run:
        return f"sweep-{sweep}-{run}"
    return f"{config.checkpoint.rstrip('/').rsplit('/', 1)[-1]}-seed{config.seed}"


def _read_config(path: Path) -> dict[str, Any]:
    """The configuration of an earlier run. Raises ValueError if that is not what the file holds."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        return {**found, "facts": dict(found["facts"])}
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError) as error:
        raise ValueError(
            f"{path} cannot be read as a run's configuration ({type(error).__name__}); give --run.name another name, "
            "or --run.overwrite to start anew"
        ) from error


def _as_written(config: TrainConfig, facts: dict[str, Any]) -> dict[str, Any]:
    """The configuration in plain types, as YAML reads it back."""
    return {**json.loads(json.dumps(asdict(config))), "facts": facts}


def write_text(path: Path, text: str) -> None:
    """Replace a file in one move: a reader sees the old text or the new, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


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
