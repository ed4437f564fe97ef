"""Weights in shards (FSDP2) learn, are measured and are saved like weights in one piece."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from safetensors.torch import load_file

from models.judge import ADAPTER_WEIGHTS
from recipes.script_verify import SCRIPT_VERIFY
from train.config import TrainConfig
from train.learning import refuse_to_shard
from train.run import train
from train.runs import RunFolder

ROOT = Path(__file__).resolve().parents[2]


def sharded(config: TrainConfig, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(json.loads(json.dumps(asdict(config)))), encoding="utf-8")
    accelerate = ["-m", "accelerate.commands.launch", "--config_file", str(ROOT / "configs/accelerate/fsdp2.yaml")]
    command = [sys.executable, *accelerate, str(ROOT / "tests/train/shard_on_cpu.py"), "--config", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)


def test_two_sharded_processes_end_with_the_adapter_and_the_metrics_of_one(
    tiny_config: TrainConfig, tmp_path: Path
) -> None:
    whole = replace(tiny_config, run=replace(tiny_config.run, name="whole"))
    summary = train(SCRIPT_VERIFY, whole)
    shards = replace(tiny_config, run=replace(tiny_config.run, name="shards"))
    done = sharded(replace(shards, optim=replace(shards.optim, micro_batch_size=2)), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    folders = [RunFolder(config, "script_verify") for config in (whole, shards)]
    one, two = (load_file(folder.adapter / ADAPTER_WEIGHTS) for folder in folders)
    assert one.keys() == two.keys()
    assert all(torch.allclose(one[name], two[name], atol=1e-5) for name in one)
    last = json.loads(folders[1].metrics.read_text(encoding="utf-8").splitlines()[-1])
    assert summary is not None
    assert last["final"]["validation"] == pytest.approx(summary["validation"], abs=1e-4)


def test_what_cannot_be_sharded_is_refused_in_words(tiny_config: TrainConfig) -> None:
    trainer = SimpleNamespace(is_fsdp_enabled=True, judge=SimpleNamespace(encoder=SimpleNamespace(bidirectional=True)))
    with pytest.raises(ValueError, match="FSDP cannot shard an encoder"):
        refuse_to_shard(trainer, tiny_config)  # type: ignore[arg-type]
    quantized = replace(tiny_config, model=replace(tiny_config.model, quantization="nf4"))
    with pytest.raises(ValueError, match=r"a quantized backbone; start with .*multi-gpu.yaml"):
        refuse_to_shard(trainer, quantized)  # type: ignore[arg-type]
