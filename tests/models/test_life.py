"""A judge's whole life in a process of its own: on backbones in folders, in few bits, and from the hub's cache."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REVISION = "0123456789abcdef0123456789abcdef01234567"
PROGRAM = """
import json, sys
from pathlib import Path
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import load_judge, new_judge
from models.lora import LoraSettings
from models.merge import Probe, merge
from models.scoring import margins

out = Path(sys.argv[1])
lives = [
    (sys.argv[2], "classification", "none"),
    (sys.argv[2], "verbalizer", "int8"),
    (sys.argv[2], "classification", "nf4"),
    (sys.argv[3], "classification", "none"),
    ("org/tiny", "verbalizer", "none"),
]
for number, (name, head, quantization) in enumerate(lives):
    settings = LoadSettings(head, "bfloat16", quantization)
    judge = new_judge(resolve(name), "j", "j-1", ("No", "Yes"), settings, LoraSettings(rank=4), None, True)
    judge.model.train()
    rows = judge.encoder.encode([Probe((), "bake bread"), Probe(("plan", "a party"), "hang the lights")])
    judge.logits(judge.encoder.pad(rows)).sum().backward()
    folder = out / f"adapter-{number}"
    judge.save(folder)
    base = None if "/" in judge.spec.base.id else name
    print(json.dumps([margins(judge, rows).tolist(), margins(load_judge(folder, base), rows).tolist()]))
    if quantization == "none":
        merge(folder, out / f"merged-{number}", base)
"""


def in_hub_cache(cache: Path, folder: Path) -> None:
    """Lay a checkpoint into a cache as the hub's client lays it after a download of ``org/tiny``."""
    stored = cache / "models--org--tiny"
    (stored / "refs").mkdir(parents=True)
    (stored / "refs" / "main").write_text(REVISION)
    shutil.copytree(folder, stored / "snapshots" / REVISION)


@pytest.fixture(scope="module")
def life(
    base: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The folder that `PROGRAM` wrote to, and what it said."""
    out = tmp_path_factory.mktemp("life")
    in_hub_cache(out / "hub", base("qwen2"))
    command = [sys.executable, "-c", PROGRAM, str(out), str(base("llama", "bfloat16")), str(base("roberta"))]
    environment = {**os.environ, "HF_HUB_CACHE": str(out / "hub"), "HF_HUB_OFFLINE": "1"}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return out, done


def test_the_libraries_beneath_say_nothing_but_how_far_they_are(life: Any) -> None:
    said = [line for line in re.split(r"[\r\n]+", life[1].stderr) if line.strip()]
    assert [line for line in said if not re.match(r"(Loading weights|Writing model shards): +\d+%", line)] == []


def test_every_judge_is_loaded_saying_the_same(life: Any) -> None:
    lines = [json.loads(line) for line in life[1].stdout.splitlines()]
    assert len(lines) == 5
    assert all(before == after and len(before) == 2 for before, after in lines)


def test_a_backbone_from_the_hub_is_recorded_and_found_again_by_its_commit(life: Any) -> None:
    spec = json.loads((life[0] / "adapter-4" / "judge.json").read_text())
    assert (spec["base"]["id"], spec["base"]["revision"]) == ("org/tiny", REVISION)
    config = json.loads((life[0] / "adapter-4" / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["revision"]) == ("org/tiny", REVISION)
    merged = json.loads((life[0] / "merged-4" / "judge.json").read_text())
    assert (merged["base"]["id"], merged["base"]["revision"]) == ("org/tiny", REVISION)


def test_nothing_written_names_the_machine(life: Any) -> None:
    for path in life[0].glob("[am]*/*"):
        assert str(life[0]).encode() not in path.read_bytes(), path
