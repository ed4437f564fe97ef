"""Every configuration that is shipped starts: with a tiny model of the architecture it names, two updates on a CPU."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import launch_command_parser
from tiny import tiny_checkpoint

from models.judge import JudgeSpec
from recipes.judgments import JUDGMENTS
from train.arguments import parse
from train.config import DataConfig, TrainConfig
from train.run import train

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = sorted(path for judgment in JUDGMENTS for path in (ROOT / "configs" / judgment).glob("*.yaml"))
LAUNCHERS = sorted((ROOT / "configs" / "accelerate").glob("*.yaml"))
# The architecture of each shipped checkpoint, as its config.json names it.
ARCHITECTURES = {
    "minilm": "bert",
    "smollm2-135m": "llama",
    "meta-llama/Llama-3.1-8B-Instruct": "llama",
    "mistralai/Mistral-7B-Instruct-v0.3": "mistral",
    "Qwen/Qwen2.5-7B-Instruct": "qwen2",
    "microsoft/deberta-v3-large": "deberta-v2",
}
MODELS = [
    "minilm",
    "smollm2-135m",
    "deberta-v3-large",
    "mistral-7b",
    "qwen2.5-7b",
    "llama-3.1-8b",
    "llama-3.1-8b-qlora",
]
RECORDS: dict[str, dict[str, Any]] = {
    "script_verify": {"script": ["mix flour and water", "bake"]},
    "step_product": {"step": "bake", "product": {"title": "Bread tin", "features": ["steel"]}},
    "holistic_verify": {"script": [{"step": "mix", "products": [{"title": "Bowl"}]}, {"step": "bake", "products": []}]},
}


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def write_records(path: Path, judgment: str, count: int, start: int) -> str:
    lines = [
        json.dumps({"id": f"r{number}", "goal": f"bake loaf {number}", "label": number % 2, **RECORDS[judgment]})
        for number in range(start, start + count)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tiny")
    return {kind: tiny_checkpoint(folder / kind, kind) for kind in set(ARCHITECTURES.values())}


def overrides(judgment: str, checkpoint: Path, folder: Path) -> list[str]:
    """Flags that leave a configuration its method and settings, and take its size."""
    return [
        f"--checkpoint={checkpoint}",
        f"--data.train={write_records(folder / 'train.jsonl', judgment, 8, 0)}",
        f"--data.validation={write_records(folder / 'validation.jsonl', judgment, 4, 100)}",
        f"--data.test={write_records(folder / 'test.jsonl', judgment, 4, 200)}",
        "--data.max_length=none",  # the tiny tokenizer needs more tokens a word than a real one
        "--optim.max_steps=2",
        "--tracking.wandb=disabled",
        f"--run.folder={folder / 'runs'}",
        "--run.name=run",
        "--threads=1",
    ]


def test_every_judgment_has_a_configuration_for_every_model() -> None:
    assert {name_of(path) for path in CONFIGS} == {f"{judgment}/{model}" for judgment in JUDGMENTS for model in MODELS}


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_a_configuration_trains_two_updates(path: Path, tiny: dict[str, Path], tmp_path: Path) -> None:
    judgment = JUDGMENTS[path.parent.name]
    shipped = parse(TrainConfig, ["--config", str(path)])
    assert shipped.data == replace(
        DataConfig(), max_length=shipped.data.max_length
    )  # every configuration runs as it is, on the sample
    checkpoint = tiny[ARCHITECTURES[shipped.checkpoint]]
    config = parse(TrainConfig, ["--config", str(path), *overrides(judgment.name, checkpoint, tmp_path)])
    assert (config.model, config.lora, config.method) == (shipped.model, shipped.lora, shipped.method)
    summary = train(judgment, config)
    assert summary is not None and {"validation", "test", "best"} <= set(summary)
    run = tmp_path / "runs" / judgment.name / "run"
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines[-1]["step"] == 2 and "final" in lines[-1]
    spec = JudgeSpec.read(run / "adapter")
    assert (spec.head, spec.base.quantization) == (shipped.model.head, shipped.model.quantization)


@pytest.mark.parametrize("path", CONFIGS, ids=name_of)
def test_the_header_gives_the_command_that_runs_the_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    command = re.search(r"^#   accelerate launch --config_file (\S+) (\S+) --config (\S+)$", text, re.MULTILINE)
    assert command is not None
    launcher, script, config = command.groups()
    assert (ROOT / launcher).is_file() and (ROOT / script).is_file()
    assert (script, ROOT / config) == (f"train/{path.parent.name}.py", path)
    added = re.search(r"^# One key changed: add (.*)$", text, re.MULTILINE)
    assert added is not None
    assert parse(TrainConfig, ["--config", str(path), *added[1].split()]) != parse(TrainConfig, ["--config", str(path)])


@pytest.mark.parametrize("path", LAUNCHERS, ids=lambda path: path.stem)
def test_accelerate_knows_every_field_of_a_launcher_s_file(path: Path) -> None:
    config = load_config_from_file(str(path))  # refuses unknown keys at the top, not below
    known = set(vars(launch_command_parser().parse_args(["script.py"])))
    for part in fields(config):
        inner = getattr(config, part.name)
        if part.name.endswith("_config") and isinstance(inner, dict):
            assert set(inner) <= known, (path, part.name)


def launch(launcher: str, path: Path, arguments: list[str]) -> str:
    script = str(ROOT / "train" / f"{path.parent.name}.py")
    accelerate = ["-m", "accelerate.commands.launch", "--config_file", str(ROOT / "configs/accelerate" / launcher)]
    command = [sys.executable, *accelerate, script, "--config", str(path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


@pytest.mark.parametrize(("launcher", "processes"), [("cpu.yaml", 1), ("cpu-2-processes.yaml", 2)])
def test_the_cpu_launchers_start_as_many_processes_as_they_say(
    launcher: str, processes: int, tiny: dict[str, Path], tmp_path: Path
) -> None:
    path = ROOT / "configs" / "script_verify" / "minilm.yaml"
    # A micro-batch of 8 of a batch of 8: with two processes each takes 4, and leaves a random state of its own.
    batch = ["--optim.batch_size=8", "--optim.micro_batch_size=8"]
    said = launch(launcher, path, [*overrides("script_verify", tiny["bert"], tmp_path), *batch])
    assert said.count("saved ") == 1  # the main process alone speaks
    run = tmp_path / "runs" / "script_verify" / "run"
    assert (run / "adapter" / "judge.json").is_file()
    assert len(list((run / "checkpoints" / "checkpoint-2").glob("rng_state*.pth"))) == processes
