"""Sweeps whose trainings take no time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from train.arguments import leaf_types
from train.config import TrainConfig
from train.sweep import run
from train.sweep.sweep_file import SweepFile, read_sweep

STANDIN = Path(__file__).with_name("standin.py")


@pytest.fixture
def sweep_file(tmp_path: Path) -> Callable[..., SweepFile]:
    """``sweep_file(parameters, **more)``: a sweep file over the stand-in, written and read."""

    def make(parameters: dict[str, Any], **more: Any) -> SweepFile:
        path = tmp_path / "sweep.yaml"
        text = {"program": str(STANDIN), "method": "random", "metric": {"name": "eval_auc", "goal": "maximize"}}
        path.write_text(yaml.safe_dump({**text, "parameters": parameters, **more}, sort_keys=False))
        return read_sweep(path, leaf_types(TrainConfig))

    return make


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "POLL", 0.02)
