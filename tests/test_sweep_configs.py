"""Every sweep that is shipped starts: what it draws trains two updates with a tiny model of its architecture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from optuna import create_study
from optuna.samplers import RandomSampler
from test_configs import ARCHITECTURES, overrides
from tiny import tiny_checkpoint

from recipes.judgments import JUDGMENTS
from train.arguments import leaf_types, parse
from train.config import TrainConfig
from train.run import train
from train.sweep.study import draw
from train.sweep.sweep_file import SweepFile, read_sweep

ROOT = Path(__file__).resolve().parents[1]
SWEEPS = sorted((ROOT / "configs" / "sweeps").glob("*.yaml"))


@pytest.fixture
def sweep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SweepFile:
    monkeypatch.chdir(ROOT)
    return read_sweep(request.param, leaf_types(TrainConfig))


def test_there_is_a_sweep_for_every_method() -> None:
    assert [path.stem for path in SWEEPS] == ["bayes", "grid", "hyperband", "random"]


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda path: path.stem, indirect=True)
def test_a_drawn_configuration_trains(sweep: SweepFile, tmp_path: Path) -> None:
    assert sweep.command is not None
    config = sweep.command[sweep.command.index("--config") + 1]
    shipped = parse(TrainConfig, ["--config", config])
    judgment = JUDGMENTS[Path(sweep.program).stem]
    values = draw(create_study(sampler=RandomSampler(0)).ask(), sweep.parameters)
    tiny = overrides(judgment.name, tiny_checkpoint(tmp_path / "tiny", ARCHITECTURES[shipped.checkpoint]), tmp_path)
    drawn = [f"--{name}={value}" for name, value in values.items()]
    found = train(judgment, parse(TrainConfig, ["--config", config, *drawn, *tiny]))
    metrics = (tmp_path / "runs" / judgment.name / "run" / "metrics.jsonl").read_text()
    assert found is not None and f'"{sweep.metric}"' in metrics


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda path: path.stem, indirect=True)
def test_it_is_launched_by_accelerate_and_its_header_says_how(sweep: SweepFile) -> None:
    assert sweep.command is not None
    assert sweep.command[:4] == ("${env}", "accelerate", "launch", "--config_file") and sweep.command[-1] == "${args}"
    assert all(Path(word).is_file() for word in sweep.command if word.startswith("configs/"))
    name = sweep.path.relative_to(ROOT)
    text = sweep.path.read_text()
    command = re.search(r"^#   python scripts/sweep\.py (\S+)( --trials \d+)?$", text, re.MULTILINE)
    assert command is not None and Path(command[1]) == name
    assert bool(command[2]) or sweep.most_trials or sweep.method == "grid"
    assert f"#   wandb sweep {name}, then" in text
