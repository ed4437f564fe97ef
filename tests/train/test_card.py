"""The card: its head as the hub reads it, its figures, and the command that trains the judge again."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard
from sklearn.metrics import accuracy_score, roc_auc_score
from trained import THRESHOLD, make_trained

from models.backbone import LoadSettings
from models.spec import Base, JudgeSpec
from recipes.judgments import JUDGMENTS
from train.arguments import parse
from train.card import Place, card
from train.command import default_config, training_command
from train.config import DataConfig, OptimConfig, TrainConfig
from train.facts import EXAMPLES
from train.reliability import PICTURE, draw_reliability, reliability

BASE = Base("org/base", "a" * 40, "llama", 32, 2, "bfloat16", "nf4")
SPEC = JudgeSpec(
    "script_verify", "script_verify-1", ("No", "Yes"), "classification", BASE, 0.4, 1.5, 512, {"peft": "1"}
)


def interval(value: float | None) -> dict[str, float | None]:
    return {
        "value": value,
        "low": None if value is None else value - 0.1,
        "high": None if value is None else value + 0.1,
    }


def facts(**more: Any) -> dict[str, Any]:
    split = {"reference": "train.jsonl", "records": 32, "yes": 20, "groups": 30, "fingerprint": "f" * 64}
    measures = {"accuracy": interval(0.8), "macro_f1": interval(0.7), "auc": interval(None)}
    constant = {"class": 0, "metrics": dict.fromkeys(measures, interval(0.5))}
    results = {"n": 11, "yes": 7, "metrics": measures, "calibration": {"ece": 0.1}, "baselines": {"majority": constant}}
    return {
        "method": "lora",
        "seed": 3,
        "command": "accelerate launch train/script_verify.py",
        "data": {"train": split, "validation": {**split, "reference": "sample:validation"}},
        "results": {"validation": results},
        "example": ["some text"],
        "special_tokens": True,
        **more,
    }


def head_of(text: str) -> dict[str, Any]:
    head: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return head


def test_the_head_is_what_a_hub_reads() -> None:
    text = card(SPEC, facts(), Place("org/judge", license="mit"))
    read = ModelCard(text).data
    assert (read.library_name, read.base_model, read.license) == ("peft", "org/base", "mit")
    assert read.tags == ["ecomjudge", "e-commerce", "script_verify", "lora", "classification-head"]
    assert [(one.metric_type, one.metric_value, one.dataset_split) for one in read.eval_results or []] == [
        ("accuracy", 0.8, "validation"),
        ("f1", 0.7, "validation"),  # and no AUC where there is none
    ]
    assert read.model_name == "judge"


def test_what_is_known_of_the_base_depends_on_where_it_is() -> None:
    local = replace(SPEC, base=replace(BASE, id="minilm", revision=None))
    head = head_of(card(local, facts()))
    assert "base_model" not in head and head["license"] == "apache-2.0"  # the packaged model's own
    assert "license" not in head_of(card(SPEC, facts()))
    assert "python scripts/fetch_checkpoint.py minilm" in card(local, facts())
    own = card(replace(SPEC, base=replace(BASE, id="our-model", revision=None)), facts())
    assert "`our-model` is not on a hub: give the folder that holds it." in own and "fetch_checkpoint" not in own


@pytest.mark.parametrize(
    ("method", "merged", "library", "relation"),
    [
        ("lora", False, "peft", "adapter"),
        ("lora", True, "transformers", "finetune"),
        ("full", False, "transformers", "finetune"),
    ],
)
def test_an_adapter_and_a_whole_model_are_called_what_they_are(
    method: str, merged: bool, library: str, relation: str
) -> None:
    text = card(SPEC, facts(method=method), Place("org/judge", merged=merged))
    head = head_of(text)
    assert (head["library_name"], head["base_model_relation"]) == (library, relation)
    assert ("peft" in text.split("```python")[1].split("```")[0]) == (library == "peft")


def test_every_figure_has_its_interval_and_its_baseline() -> None:
    text = card(SPEC, facts())
    assert "| validation: 11, 7 yes | **this one** | 0.800 [0.700, 0.900] | 0.700 [0.600, 0.800] | - | 0.100 |" in text
    assert "|  | always no | 0.500 [0.400, 0.600] |" in text
    assert "Threshold 0.4000 and temperature 1.5000" in text and f"]({PICTURE})" in text
    assert f"| train | train.jsonl | 32 | 20 | 30 | `{'f' * 64}` |" in text
    assert f"revision `{'a' * 40}`" in text and "trained in bfloat16 over nf4" in text


def test_results_on_two_files_of_one_name_are_both_told() -> None:
    one = facts()["results"]["validation"]
    results = tuple({**one, "n": n, "data": {"reference": "test.jsonl", "fingerprint": "e" * 64}} for n in (21, 22))
    text = card(SPEC, facts(), Place("org/judge", results=results))
    assert "| test.jsonl: 21, 7 yes |" in text and "| test.jsonl (2): 22, 7 yes |" in text


def test_the_command_trains_with_the_same_configuration(tmp_path: Path) -> None:
    data = tmp_path / "it's data.jsonl"
    data.write_text("")
    config = TrainConfig(
        checkpoint=str(tmp_path),
        model=LoadSettings(head="verbalizer", dtype="bfloat16"),
        data=DataConfig(train=str(data), validation=None, max_length=256),
        optim=OptimConfig(learning_rate=3e-5, max_steps=7),
        seed=5,
    )
    config = replace(config, lora=replace(config.lora, targets=("q_proj", "v_proj")))
    command = training_command("step_product", config, "org/base@main", processes=4)
    assert str(tmp_path) not in command
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:5] == ["accelerate", "launch", "--num_processes", "4", "train/step_product.py"]
    again = parse(TrainConfig, words[5:], default_config("step_product"))
    told = replace(config, checkpoint="org/base@main", data=replace(config.data, train="it's data.jsonl"))
    assert again == told


def test_there_is_an_example_of_every_judgment() -> None:
    assert EXAMPLES.keys() == JUDGMENTS.keys()
    for name, judgment in JUDGMENTS.items():
        judgment.record.model_validate({"id": "example", "goal": "g", **EXAMPLES[name]})


def test_bins_of_the_picture() -> None:
    labels, p = [0, 1, 1, 0, 1], [0.01, 0.09, 0.55, 0.5, 1.0]
    found = reliability(labels, p)
    assert found == [(pytest.approx(0.05), 0.5, 2), (pytest.approx(0.525), 0.5, 2), (1.0, 1.0, 1)]


def test_the_picture_is_a_picture(tmp_path: Path) -> None:
    draw_reliability([0, 1], [0.2, 0.8], 0.5, "title", tmp_path)
    assert (tmp_path / PICTURE).read_bytes().startswith(b"\x89PNG")


def test_a_run_s_facts_are_measured_on_its_records(tiny_config: TrainConfig) -> None:
    made = make_trained(tiny_config)
    results = made.facts["results"]["validation"]
    accuracy, auc = results["metrics"]["accuracy"], results["metrics"]["auc"]
    assert accuracy["value"] == pytest.approx(accuracy_score(made.labels, made.p >= THRESHOLD))
    assert auc["value"] == pytest.approx(roc_auc_score(made.labels, made.p))
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    always = results["baselines"]["majority"]
    assert always["class"] == 1  # 20 of the 32 training records are yes
    assert always["metrics"]["accuracy"]["value"] == pytest.approx(np.mean(made.labels))
    assert re.fullmatch("[0-9a-f]{64}", made.facts["data"]["train"]["fingerprint"])
    assert json.loads((made.folder / "training.json").read_text()) == made.facts
    assert f"]({PICTURE})" in (made.folder / "README.md").read_text()
    assert f"](adapter/{PICTURE})" in (made.folder.parent / "README.md").read_text()
