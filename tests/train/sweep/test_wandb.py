"""The same files in W&B's own hands: `wandb sweep` takes them, `wandb agent` trains with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tiny import tiny_checkpoint, write_scripts
from wandb_server import WandbServer

from train.config import RunConfig, TrainConfig
from train.runs import RunFolder

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted((ROOT / "configs" / "sweeps").glob("*.yaml"))


def wandb(server: WandbServer, folder: Path, *arguments: str) -> str:
    """What a wandb command says, from the repository's root, with an account on the server."""
    programs = Path(sys.executable).parent
    env = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    env |= {"PATH": f"{programs}{os.pathsep}{env['PATH']}", "HOME": str(folder), "WANDB_DIR": str(folder)}
    env |= {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": "k" * 40}
    done = subprocess.run(
        [programs / "wandb", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def create(server: WandbServer, folder: Path, path: Path) -> str:
    return wandb(server, folder, "sweep", "--entity", "me", "--project", "ecomjudge", str(path))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_wandb_sweep_takes_a_shipped_file_as_it_is(path: Path, tmp_path: Path) -> None:
    with WandbServer() as server:
        said = create(server, tmp_path, path)
    assert server.sweep == yaml.safe_load(path.read_text())
    assert "wandb agent me/ecomjudge/sweep1" in said and "WARN" not in said


def test_a_run_of_wandb_agent_is_called_after_its_sweep_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_RUN_ID", "run1")
    assert RunFolder(TrainConfig(), "script_verify").path.name == "minilm-seed0"  # a run id alone is no sweep
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep1")
    assert RunFolder(TrainConfig(), "script_verify").path.name == "sweep-sweep1-run1"
    assert RunFolder(TrainConfig(run=RunConfig(name="mine")), "script_verify").path.name == "mine"


@pytest.mark.slow
def test_wandb_agent_trains_a_run_for_each_trial(tmp_path: Path) -> None:
    launch = ["accelerate", "launch", "--config_file", "configs/accelerate/cpu.yaml", "${program}"]
    fixed = {
        "checkpoint": tiny_checkpoint(tmp_path / "tiny-llama"),
        "data.train": write_scripts(tmp_path / "train.jsonl", 16),
        "data.validation": write_scripts(tmp_path / "validation.jsonl", 8, start=100),
        "optim.max_steps": 2,
        "model.dtype": "float32",
        "run.folder": tmp_path / "runs",
        "threads": 1,
    }
    sweep = {
        "program": "train/script_verify.py",
        "method": "random",
        "metric": {"name": "eval_macro_f1", "goal": "maximize"},
        "parameters": {"optim.learning_rate": {"min": 0.001, "max": 0.01}, "lora.dora": {"values": [True, False]}},
        "command": ["${env}", *launch, *(f"--{name}={value}" for name, value in fixed.items()), "${args}"],
    }
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(sweep))
    trials = [{"optim.learning_rate": 0.002, "lora.dora": True}, {"optim.learning_rate": 0.003, "lora.dora": False}]
    with WandbServer(trials) as server:
        create(server, tmp_path, path)
        wandb(server, tmp_path, "agent", "--count", "2", "me/ecomjudge/sweep1")
    for number, values in enumerate(trials, 1):
        run = tmp_path / "runs" / "script_verify" / f"sweep-sweep1-run{number}"
        config = yaml.safe_load((run / "config.yaml").read_text())
        assert (config["optim"]["learning_rate"], config["lora"]["dora"]) == tuple(values.values())
        ours = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        logged = [line["eval_macro_f1"] for line in server.history[f"run{number}"] if "eval_macro_f1" in line]
        assert logged == [line["eval_macro_f1"] for line in ours if "eval_macro_f1" in line] and len(logged) == 2
    made = [variables for name, variables in server.operations if name == "UpsertBucket" and variables["sweep"]]
    assert {(one["name"], one["sweep"], one["project"]) for one in made} == {
        ("run1", "sweep1", "ecomjudge"),
        ("run2", "sweep1", "ecomjudge"),
    }
