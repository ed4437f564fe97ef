"""What a sweep leaves behind: each trial in a line, and the best configuration for training."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from optuna.trial import FrozenTrial, TrialState

from train.runs import CONFIG_FILE, write_text
from train.sweep.study import ERROR, RUN, VALUES
from train.sweep.sweep_file import SweepFile, swept

TRIALS, BEST = "trials.jsonl", "best.yaml"
# Of a run's own configuration: what the next training names anew.
OWN_KEYS = ("facts", "run", "dry_run")


def write_trials(sweep: SweepFile, trials: Sequence[FrozenTrial], folder: Path) -> Path:
    """Write ``trials.jsonl`` anew: one line a trial, in the order in which they were drawn."""
    path = folder / TRIALS
    write_text(path, "".join(json.dumps(_line(sweep, trial)) + "\n" for trial in trials))
    return path


def _line(sweep: SweepFile, trial: FrozenTrial) -> dict[str, Any]:
    curve = [trial.intermediate_values[step] for step in sorted(trial.intermediate_values)]
    found = {
        "trial": trial.user_attrs[RUN],
        "state": trial.state.name.lower(),
        "values": trial.user_attrs[VALUES],
        sweep.metric: trial.value if trial.state == TrialState.COMPLETE else None,
        "evaluations": [value if math.isfinite(value) else None for value in curve],
        "seconds": round(trial.duration.total_seconds(), 1) if trial.duration else None,
    }
    return {**found, **({"error": trial.user_attrs[ERROR]} if ERROR in trial.user_attrs else {})}


def write_best(sweep: SweepFile, trial: FrozenTrial, run: Path, folder: Path) -> Path:
    """Write the trial's whole configuration as a file for ``--config``: every key, so that later defaults change
    nothing."""
    config = yaml.safe_load((run / CONFIG_FILE).read_text(encoding="utf-8"))
    kept = {key: value for key, value in config.items() if key not in OWN_KEYS}
    path = folder / BEST
    head = (
        f"# {trial.user_attrs[RUN]} of {sweep.path.name}: {sweep.metric} {trial.value:.6g} with "
        f"{json.dumps({name: trial.user_attrs[VALUES][name] for name in swept(sweep.parameters)})}\n"
        f"#   accelerate launch {sweep.program} --config {path}\n"
    )
    write_text(path, head + yaml.safe_dump(kept, sort_keys=False, allow_unicode=True))
    return path
