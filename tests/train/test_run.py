"""What a run leaves behind: a judge that loads anywhere, a card, curves; and what a dry run says."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny import write_scripts

from models.judge import JudgeSpec, load_judge
from models.scoring import margins
from recipes.reading import read_records
from recipes.script_verify import SCRIPT_VERIFY, ScriptRecord
from train.callbacks import wandb_mode
from train.config import TrainConfig
from train.data import prepare, read_run_data
from train.learning import training_arguments
from train.run import train
from train.runs import RunFolder


def folder_of(config: TrainConfig) -> RunFolder:
    return RunFolder(config, "script_verify")


@pytest.mark.parametrize("head", ["classification", "verbalizer"])
def test_the_lines_of_the_card_load_the_judge_with_peft_and_transformers_alone(
    tiny_config: TrainConfig, head: str, tmp_path: Path
) -> None:
    config = replace(tiny_config, model=replace(tiny_config.model, head=head))
    train(SCRIPT_VERIFY, config)
    adapter = folder_of(config).adapter
    card = (adapter / "README.md").read_text()
    code = card.split("```python\n")[1].split("```")[0]
    assert len([node for node in ast.parse(code).body if not isinstance(node, ast.ImportFrom)]) <= 5
    code = code.replace("'adapter'", repr(str(adapter))).replace("'tiny-llama'", repr(config.checkpoint))
    code += "\nimport json, sys\nassert not {'models', 'recipes', 'train'} & set(sys.modules)\n"
    code += "print(json.dumps(logits.tolist()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    found = np.array(json.loads(done.stdout.splitlines()[-1]))[0]
    judge = load_judge(adapter, config.checkpoint)
    script = ["Choose a date", "Invite the guests", "Hang warm lights in the garden"]
    record = ScriptRecord(id="example", goal="Plan an autumn party", script=script)
    encoded = judge.encoder.encode([SCRIPT_VERIFY.render(record, judge.style)])
    with torch.inference_mode():
        ours = judge.logits(judge.encoder.pad(encoded))[0].numpy()
    assert np.abs(found - ours).max() < 1e-5


def test_threshold_and_temperature_are_validation_s_and_travel_with_the_judge(tiny_config: TrainConfig) -> None:
    summary = train(SCRIPT_VERIFY, tiny_config)
    spec = JudgeSpec.read(folder_of(tiny_config).adapter)
    assert (spec.judgment, spec.template_version, spec.head) == ("script_verify", "script_verify-1", "classification")
    assert spec.base.id == "tiny-llama"
    judge = load_judge(folder_of(tiny_config).adapter, tiny_config.checkpoint)
    records = read_records(SCRIPT_VERIFY, str(tiny_config.data.validation))
    split = prepare("validation", SCRIPT_VERIFY, records, judge)
    values = margins(judge, split.dataset.encoded)
    labels = np.array(split.dataset.labels)
    said = 1 / (1 + np.exp(-values / spec.temperature)) >= spec.threshold
    assert summary is not None
    assert summary["validation"]["accuracy"] == pytest.approx(float((said == labels).mean()), abs=1e-6)
    for cut in np.linspace(0, 1, 101):  # no threshold beats the chosen one on validation
        other = 1 / (1 + np.exp(-values / spec.temperature)) >= cut
        f1 = [
            2 * ((other == c) & (labels == c)).sum() / max((other == c).sum() + (labels == c).sum(), 1) for c in (0, 1)
        ]
        assert np.mean(f1) <= summary["validation"]["macro_f1"] + 1e-6


def test_training_moves_every_adapter_and_no_base_weight(tiny_config: TrainConfig) -> None:
    train(SCRIPT_VERIFY, tiny_config)
    saved = load_file(folder_of(tiny_config).adapter / "adapter_model.safetensors")
    assert {name.rsplit(".", 2)[-2] for name in saved} == {"lora_A", "lora_B", "score"}
    assert all(tensor.abs().max() > 0 for name, tensor in saved.items() if "lora_B" in name)  # B starts at zero


def test_nothing_in_a_run_s_adapter_names_this_machine(tiny_config: TrainConfig, tmp_path: Path) -> None:
    train(SCRIPT_VERIFY, tiny_config)
    for path in folder_of(tiny_config).adapter.iterdir():
        assert str(tmp_path.parent).encode() not in path.read_bytes(), path.name
        assert str(Path(tiny_config.checkpoint).parent).encode() not in path.read_bytes(), path.name


def test_full_fine_tuning_ends_with_a_whole_model(tiny_config: TrainConfig) -> None:
    config = replace(tiny_config, method="full", optim=replace(tiny_config.optim, label_smoothing=0.1))
    config = replace(config, model=replace(config.model, dtype="bfloat16"))
    train(SCRIPT_VERIFY, config)
    judge = load_judge(folder_of(config).adapter)
    assert all(weight.dtype == torch.float32 for weight in judge.model.parameters())
    record = read_records(SCRIPT_VERIFY, config.data.train)[0]
    assert np.isfinite(margins(judge, judge.encoder.encode([SCRIPT_VERIFY.render(record, judge.style)]))).all()


def test_full_fine_tuning_of_quantized_weights_is_refused(tiny_config: TrainConfig) -> None:
    config = replace(tiny_config, method="full", model=replace(tiny_config.model, quantization="nf4"))
    with pytest.raises(ValueError, match="method full cannot train nf4 weights"):
        train(SCRIPT_VERIFY, config)


def test_a_dry_run_says_what_would_happen_and_trains_nothing(
    tiny_config: TrainConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(SCRIPT_VERIFY, replace(tiny_config, dry_run=True)) is None
    said = capsys.readouterr().out
    for words in (
        "learning_rate: 0.001",
        "score.modules_to_save.weight",
        "GiB  gradients and optimizer",
        "nothing was trained",
    ):
        assert words in said
    assert re.search(r"tokens, median\s+│\s+[\d.]+\s+│", said) and "…" not in said
    assert not folder_of(tiny_config).path.exists()


def test_splits_that_share_a_group_are_refused(tiny_config: TrainConfig, tmp_path: Path) -> None:
    shared = write_scripts(tmp_path / "shared.jsonl", 5, start=30)
    with pytest.raises(ValueError, match=r"2 groups are also in .*first 'goal number 30'"):
        read_run_data(SCRIPT_VERIFY, replace(tiny_config.data, validation=str(shared)), 0)


def test_validation_is_held_out_by_group_when_none_is_given(tiny_config: TrainConfig) -> None:
    data = read_run_data(SCRIPT_VERIFY, replace(tiny_config.data, validation=None, validation_share=0.25), 0)
    assert len(data.train) + len(data.validation) == 32
    assert 6 <= len(data.validation) <= 10
    assert not {r.group_key for r in data.train} & {r.group_key for r in data.validation}


def test_what_cannot_fit_is_refused_or_left_out_when_asked(tiny_config: TrainConfig) -> None:
    short = replace(tiny_config, data=replace(tiny_config.data, max_length=40))
    with pytest.raises(ValueError, match=r"data\.train: \d+ records do not fit 40 tokens .*data\.max_length"):
        train(SCRIPT_VERIFY, short)
    train(SCRIPT_VERIFY, replace(short, data=replace(short.data, drop_too_long=True)))


def test_a_batch_that_cannot_be_cut_is_refused(tiny_config: TrainConfig) -> None:
    odd = replace(tiny_config, optim=replace(tiny_config.optim, batch_size=10, micro_batch_size=4))
    with pytest.raises(
        ValueError, match=r"batch_size 10 is not a multiple of optim\.micro_batch_size 4 x 1 processes; give 8"
    ):
        training_arguments(odd, folder_of(odd), 32, 1)


def test_wandb_is_offline_without_an_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    assert wandb_mode("auto") == "offline"
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    assert wandb_mode("auto") == "online"
    assert wandb_mode("disabled") == "disabled"


def test_an_offline_run_leaves_a_wandb_folder_and_never_asks(
    tiny_config: TrainConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "data"))
    config = replace(tiny_config, tracking=replace(tiny_config.tracking, wandb="auto"))
    train(SCRIPT_VERIFY, config)
    assert list(folder_of(config).path.glob("wandb/offline-run-*/*.wandb"))


@pytest.mark.parametrize(("every", "updates"), [(0.25, 4), (0.001, 1), (1, 16), (1.0, 16), (2, 2), (100, 16)])
def test_up_to_1_a_share_of_the_run_lies_between_evaluations(
    every: float, updates: int, tiny_config: TrainConfig
) -> None:
    config = replace(
        tiny_config,
        optim=replace(tiny_config.optim, max_steps=16),
        evaluation=replace(tiny_config.evaluation, every=every),
    )
    arguments = training_arguments(config, folder_of(config), 32, 1)
    assert arguments.eval_steps == arguments.save_steps == updates


def test_every_training_line_has_throughput_and_the_share_of_padding(tiny_config: TrainConfig) -> None:
    train(SCRIPT_VERIFY, tiny_config)
    lines = [json.loads(line) for line in folder_of(tiny_config).metrics.read_text().splitlines()]
    trained = [line for line in lines if "loss" in line]
    assert len(trained) == 4
    for line in trained:
        assert line["tokens_per_second"] > line["records_per_second"] > 0
        assert 0 <= line["padding_share"] < 1 and 0 <= line["shared_share"] < 1 and line["mfu"] > 0
