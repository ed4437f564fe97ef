"""Purchase intents in a run: three ways to be taught them, what is refused, and kills that change nothing."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import TrainerState

import train.trainer as trainer_module
from benchmarks.ecomscript.config import EcomScriptConfig
from benchmarks.ecomscript.run import evaluate
from judging.judges import find_judges
from models.judge import Judge, JudgeSpec
from recipes.judgments import get_judgment
from recipes.script_verify import SCRIPT_VERIFY
from recipes.step_product import STEP_PRODUCT
from train import intents_first, run
from train.arguments import parse
from train.command import training_command
from train.config import IntentsConfig, TrainConfig
from train.run import train
from train.runs import RunFolder

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ("runtime", "per_second", "mfu", "peak_memory")


def write_pairs(path: Path, count: int, start: int = 0) -> str:
    """``count`` step-product records, each of a goal and a product of its own."""
    lines = [
        {"id": f"r{n}", "goal": f"goal number {n}", "step": "bake", "product": {"title": f"Tin {n}"}, "label": n % 2}
        for n in range(start, start + count)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def write_intents(path: Path, products: range) -> str:
    """Two intents for each product."""
    lines = [
        {"id": f"i{n}-{k}", "product": {"title": f"Tin {n}"}, "intent": f"because they want to bake loaf {n} {k} times"}
        for n in products
        for k in (1, 2)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture
def config(tiny_config: TrainConfig, tmp_path: Path) -> TrainConfig:
    """Four updates of eight records over 32 products, intents of 16 of them, and dropout: the random state matters."""
    data = replace(
        tiny_config.data,
        train=write_pairs(tmp_path / "train.jsonl", 32),
        validation=write_pairs(tmp_path / "validation.jsonl", 11, start=100),
        validation_share=0.2,
    )
    intents = IntentsConfig(data=(write_intents(tmp_path / "intents.jsonl", range(16)),), hard=0.0, epochs=1)
    return replace(tiny_config, data=data, intents=intents, lora=replace(tiny_config.lora, dropout=0.2))


def told(config: TrainConfig, name: str, **changes: Any) -> TrainConfig:
    return replace(config, intents=replace(config.intents, **changes), run=replace(config.run, name=name))


def folder_of(config: TrainConfig) -> RunFolder:
    return RunFolder(config, "step_product")


def ended(config: TrainConfig) -> tuple[bytes, str, list[dict[str, object]]]:
    folder = folder_of(config)
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    kept = [{k: v for k, v in line.items() if not any(word in k for word in MEASURED)} for line in lines]
    weights = (folder.adapter / "adapter_model.safetensors").read_bytes()
    return weights, (folder.adapter / "judge.json").read_text(), kept


def in_child(work: Callable[[], object]) -> int:
    """Do the work in a forked process; the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # a child must never run on as a second pytest
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert not (os.WIFEXITED(status) and os.WEXITSTATUS(status)), "the child failed"
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def killed(stage: str, step: int, config: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after an update of the stage: ``intents`` or the judgment's own, ``checkpoints``."""

    def die(self: object, args: Any, state: TrainerState, control: object, **_: object) -> None:
        here = "intents" if Path(args.output_dir).parent.name == "intents" else "judgment"
        if (here, state.global_step) == (stage, step):
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(trainer_module.Throughput, "on_step_end", die, raising=False)
        assert in_child(lambda: train(STEP_PRODUCT, config)) == signal.SIGKILL


def test_a_killed_sequential_run_goes_on_in_its_stage_to_the_same_bits(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    config = told(config, "whole", mode="sequential")
    in_child(lambda: train(STEP_PRODUCT, config))
    assert "learned the intents" in capfd.readouterr().err
    whole = ended(config)
    for stage, step, said in (("intents", 3, "/intents from update 2"), ("judgment", 1, "are learned")):
        again = told(config, f"{stage}-{step}", mode="sequential")
        killed(stage, step, again, monkeypatch)
        capfd.readouterr()
        in_child(lambda again=again: train(STEP_PRODUCT, again))
        assert said in capfd.readouterr().err
        assert ended(again) == whole, f"killed in {stage} after update {step}"


def test_the_adapter_carries_over_and_the_head_starts_fresh(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: dict[str, dict[str, torch.Tensor]] = {}

    def begin(judgment: Any, config: TrainConfig, folder: RunFolder, judge: Judge, *_: Any) -> dict[str, Any]:
        found = get_peft_model_state_dict(judge.model, save_embedding_layers=False)
        begun[config.intents.mode] = {name: weight.clone() for name, weight in found.items()}
        return {}

    monkeypatch.setattr(run, "_learn", begin)
    for mode in ("none", "sequential"):
        train(STEP_PRODUCT, told(config, mode, mode=mode))
    stage = intents_first.stage_of(config, folder_of(told(config, "sequential")))
    last = load_file(max(stage.checkpoints.glob("checkpoint-*")) / "adapter_model.safetensors")
    learned = load_file(stage.path / "adapter_model.safetensors")
    fresh, carried = begun["none"], begun["sequential"]
    assert {"lora" in name for name in carried} == {True, False}
    assert all(torch.equal(learned[name], last[name]) for name in learned)
    for name in carried:
        expected, other = (learned, fresh) if "lora_" in name else (fresh, learned)
        assert torch.equal(carried[name], expected[name]) and not torch.equal(expected[name], other[name])


def test_mixed_batches_hold_pairs_beside_the_records_in_the_ratio_asked_for(
    config: TrainConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    train(STEP_PRODUCT, told(config, "half", mode="mixed", ratio=0.5))
    assert "16 pairs among 32 records" in capsys.readouterr().err
    lines = [json.loads(line) for line in folder_of(told(config, "half")).metrics.read_text().splitlines()]
    assert max(line["step"] for line in lines) == 6  # (32 + 16) / 8
    train(STEP_PRODUCT, told(config, "all", mode="mixed", ratio=100, negatives=0.5))
    assert "48 pairs among 32 records" in capsys.readouterr().err  # 32 right ones and half as many wrong ones


def test_without_intents_a_run_is_what_it_was(config: TrainConfig) -> None:
    train(STEP_PRODUCT, told(config, "none", mode="none"))
    train(STEP_PRODUCT, replace(told(config, "bare"), intents=IntentsConfig()))
    assert ended(told(config, "none"))[0] == ended(told(config, "bare"))[0]


def test_a_judge_taught_beside_intents_says_so_and_is_examined_so(
    config: TrainConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(STEP_PRODUCT, told(config, "beside", mode="context", shown=1, hidden=0.0))
    assert "train: 16 of 32 products are shown with their intents" in capsys.readouterr().err
    adapter = folder_of(told(config, "beside")).adapter
    spec = JudgeSpec.read(adapter)
    assert spec.template_version == "step_product-1+intents1"
    (found,) = find_judges([str(adapter)])
    assert found.judgment.intents == 1 and get_judgment("step_product").intents == 0
    test = write_pairs(tmp_path / "test.jsonl", 8, start=200)
    known = write_intents(tmp_path / "known.jsonl", range(200, 204))
    asked = EcomScriptConfig(
        "step_product", test, checkpoint=config.checkpoint, adapter=str(adapter), threads=1, resamples=10
    )
    margins = {}
    for name, intents in (("alone", ()), ("known", (known,))):
        evaluate(replace(asked, intents=intents, out=str(tmp_path / name)))
        lines = (tmp_path / name / "predictions.jsonl").read_text().splitlines()
        margins[name] = [json.loads(line)["margin"] for line in lines]
    differs = np.array(margins["alone"]) != np.array(margins["known"])
    assert differs.tolist() == [True] * 4 + [False] * 4


def test_no_path_of_a_knowledge_file_is_in_the_training_command(config: TrainConfig, tmp_path: Path) -> None:
    command = training_command("step_product", told(config, "run", mode="mixed"), "minilm")
    assert "--intents.mode=mixed" in command and "--intents.data='[intents.jsonl]'" in command
    assert str(tmp_path) not in command.replace(config.run.folder, "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "mixed", "data": ()}, r"intents\.mode mixed needs intents\.data"),
        (
            {"mode": "context", "apart": ("{train}",)},
            r"16 products are also in what is to be judged: 'Tin 0' \(.*train",
        ),
        ({"mode": "sequential", "apart": ("{train}",), "overlap": "drop"}, r"nothing is left\. 16 products"),
        ({"mode": "sequential", "method": "full"}, "method full has none; take mixed"),
    ],
)
def test_what_cannot_be_injected_is_refused_before_anything_is_trained(
    config: TrainConfig, changes: dict[str, Any], message: str
) -> None:
    changes = {key: (config.data.train,) if value == ("{train}",) else value for key, value in changes.items()}
    method = changes.pop("method", "lora")
    with pytest.raises(ValueError, match=message):
        train(STEP_PRODUCT, replace(told(config, "refused", **changes), method=method))
    assert not folder_of(told(config, "refused")).path.exists()


def test_a_script_has_no_products_to_set_intents_beside(tiny_config: TrainConfig) -> None:
    config = replace(tiny_config, intents=IntentsConfig(mode="context", data=("sample:train",)))
    with pytest.raises(ValueError, match="script_verify shows no products to set intents beside"):
        train(SCRIPT_VERIFY, config)


def test_the_example_is_read_and_its_header_runs_it() -> None:
    path = ROOT / "configs" / "intents" / "step_product-minilm.yaml"
    config = parse(TrainConfig, ["--config", str(path)])
    assert (config.intents.mode, config.intents.data, config.intents.apart) == (
        "sequential",
        ("sample:train",),
        ("sample:test",),
    )
    command = path.read_text(encoding="utf-8").splitlines()[1].split()
    assert command[:4] == ["#", "accelerate", "launch", "--config_file"] and command[6] == "--config"
    assert (ROOT / command[4]).is_file() and (ROOT / command[5]).is_file() and ROOT / command[7] == path


def test_a_stage_shorter_than_the_time_between_evaluations_is_looked_at_when_it_ends(config: TrainConfig) -> None:
    rarely = replace(config, evaluation=replace(config.evaluation, every=1000))
    train(STEP_PRODUCT, told(rarely, "rarely", mode="sequential"))
    folder = folder_of(told(config, "rarely")).path
    for stage in (folder, folder / "intents"):
        lines = [json.loads(line) for line in (stage / "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines if "eval_macro_f1" in line] == [lines[-1]["step"]]
