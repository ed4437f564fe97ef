"""A merged judge gives the adapter's logits, to transformers alone and to us, and is refused where it would not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plain
import pytest
import torch
from safetensors.torch import load_file
from tiny import ENCODERS
from tiny_judges import COMBINATIONS, PROMPTS, Made, logits_of, shake
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from models.backbone import LoadSettings
from models.judge import Judge, JudgeSpec, load_judge
from models.lora import LoraSettings
from models.merge import merge

FLOAT32 = LoadSettings(dtype="float32")


@pytest.mark.parametrize(
    ("architecture", "head", "trained_in"),
    [(*pair, "float32") for pair in COMBINATIONS] + [("llama", "verbalizer", "bfloat16")],
)
def test_a_merged_folder_gives_the_adapter_s_logits(
    made: Callable[..., Made], tmp_path: Path, architecture: str, head: str, trained_in: str
) -> None:
    judge = made(architecture, head, trained_in)
    found = merge(judge.folder, tmp_path / "merged", str(judge.base))
    assert found.merging < 1e-5 > found.saving
    assert found.quantized is None
    tokenizer, model = plain.load(str(judge.folder), str(judge.base), head)
    texts, words = plain.texts_of(PROMPTS, head, architecture in ENCODERS), None
    if head == "verbalizer":
        words = [" No", " Yes"]
    expected = np.array(plain.logits(tokenizer, model, texts, words))
    by_us = load_judge(tmp_path / "merged")
    assert np.abs(logits_of(by_us, judge.encoded).numpy() - expected).max() < 1e-5
    tokenizer, model = plain.load_whole(str(tmp_path / "merged"), head)
    assert np.abs(np.array(plain.logits(tokenizer, model, texts, words)) - expected).max() < 1e-5
    assert model.dtype == torch.float32
    if head == "classification":
        assert model.config.id2label == {0: "no", 1: "yes"}
    spec, was = by_us.spec, judge.judge.spec
    assert (spec.judgment, spec.template_version, spec.threshold, spec.temperature) == (
        "script_verify",
        "script_verify-1",
        0.4,
        1.5,
    )
    assert (spec.base.id, spec.base.dtype, spec.label_words) == (was.base.id, "float32", was.label_words)


def test_a_merged_weight_is_the_backbone_s_plus_the_scaled_product(made: Callable[..., Made], tmp_path: Path) -> None:
    judge = made("llama", "classification", "bfloat16")
    merge(judge.folder, tmp_path / "merged", str(judge.base))
    name = "model.layers.1.self_attn.q_proj"
    adapter = load_file(judge.folder / "adapter_model.safetensors")
    a, b = (adapter[f"base_model.model.{name}.lora_{part}.weight"] for part in "AB")
    weight = load_file(judge.base / "model.safetensors")[f"{name}.weight"].float()
    merged = load_file(tmp_path / "merged" / "model.safetensors")
    assert (merged[f"{name}.weight"] - (weight + 8 / 4 * b @ a)).abs().max() < 1e-6
    assert torch.equal(merged["score.weight"], adapter["base_model.model.score.weight"])


@pytest.mark.parametrize("lora", [LoraSettings(rank=4, dora=True), LoraSettings(rank=4, rslora=True, top_layers=1)])
def test_dora_and_rank_stabilised_adapters_merge_as_well(
    fresh: Callable[..., Judge], base: Callable[..., Path], tmp_path: Path, lora: LoraSettings
) -> None:
    judge = fresh("qwen3", lora=lora)
    shake(judge)
    judge.save(tmp_path / "adapter")
    assert merge(tmp_path / "adapter", tmp_path / "merged", str(base("qwen3"))).saving < 1e-5
    rows = judge.encoder.encode(PROMPTS)
    assert (logits_of(load_judge(tmp_path / "merged"), rows) - logits_of(judge, rows)).abs().max() < 1e-5


@pytest.mark.parametrize(("architecture", "head"), [("llama", "verbalizer"), ("bert", "classification")])
def test_in_bfloat16_the_drift_is_measured_and_the_weights_are_those_of_float32_rounded_once(
    made: Callable[..., Made], tmp_path: Path, architecture: str, head: str
) -> None:
    judge = made(architecture, head)
    found = merge(judge.folder, tmp_path / "bfloat16", str(judge.base), "bfloat16")
    assert found.merging < 1e-5
    assert 1e-5 < found.saving < 0.1 * max(1.0, found.size)
    merge(judge.folder, tmp_path / "float32", str(judge.base))
    fine, coarse = (load_file(tmp_path / dtype / "model.safetensors") for dtype in ("float32", "bfloat16"))
    assert all(torch.equal(tensor.bfloat16(), coarse[name]) for name, tensor in fine.items())
    loaded = load_judge(tmp_path / "bfloat16")
    assert (loaded.spec.base.dtype, next(loaded.model.parameters()).dtype) == ("bfloat16", torch.bfloat16)


def test_no_file_of_a_merged_judge_names_the_machine(made: Callable[..., Made], tmp_path: Path) -> None:
    judge = made("llama", "verbalizer")
    merge(judge.folder, tmp_path / "merged", str(judge.base))
    files = sorted(path.name for path in (tmp_path / "merged").iterdir())
    assert files == [
        "config.json",
        "generation_config.json",
        "judge.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    for name in files:
        data = (tmp_path / "merged" / name).read_bytes()
        assert not any(str(part).encode() in data for part in (tmp_path, judge.base.parent, Path.home(), "/tmp"))
    config = json.loads((tmp_path / "merged" / "config.json").read_text())
    assert (config["use_cache"], config["architectures"]) == (True, ["LlamaForCausalLM"])


@pytest.fixture
def quantized(fresh: Callable[..., Judge], tmp_path: Path) -> Judge:
    """A judge trained over a backbone in 4 bits, saved in ``adapter``."""
    judge = fresh("llama", quantization="nf4")
    shake(judge)
    judge.save(tmp_path / "adapter")
    return judge


def test_an_adapter_trained_over_four_bits_is_refused_in_words(
    quantized: Judge, base: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"trained over llama in nf4.* not the model .* give --onto_full_precision"):
        merge(tmp_path / "adapter", tmp_path / "merged", str(base("llama")))
    assert not (tmp_path / "merged").exists()


def test_an_adapter_trained_over_four_bits_is_merged_where_that_is_asked_for_and_the_change_is_measured(
    quantized: Judge, base: Callable[..., Path], tmp_path: Path
) -> None:
    found = merge(tmp_path / "adapter", tmp_path / "merged", str(base("llama")), onto_full_precision=True)
    assert found.merging < 1e-5 > found.saving
    assert found.quantized is not None
    assert found.quantized > 1e-3
    spec = JudgeSpec.read(tmp_path / "merged")
    assert (spec.base.quantization, spec.base.dtype) == ("none", "float32")
    rows = quantized.encoder.encode(PROMPTS)
    full = logits_of(load_judge(tmp_path / "adapter", str(base("llama")), FLOAT32), rows)
    assert (logits_of(load_judge(tmp_path / "merged"), rows) - full).abs().max() < 1e-5


@pytest.mark.parametrize("consent", [False, True])
def test_merging_into_a_backbone_stored_in_four_bits_is_refused_in_words(
    quantized: Judge, base: Callable[..., Path], tmp_path: Path, consent: bool
) -> None:
    four_bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    stored = AutoModelForCausalLM.from_pretrained(base("llama"), quantization_config=four_bits)
    stored.save_pretrained(tmp_path / "stored")
    with pytest.raises(ValueError, match=r"stored is stored in 4 bits: an adapter is not merged .* full precision"):
        merge(tmp_path / "adapter", tmp_path / "merged", str(tmp_path / "stored"), onto_full_precision=consent)


def test_a_merged_model_that_says_something_else_is_not_written(
    made: Callable[..., Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from peft import PeftModel

    def forgetful(self: Any, **options: Any) -> Any:
        """Drops the trained head, as merge scripts have done (trl#297)."""
        model = self.base_model.merge_and_unload(**options)
        torch.nn.init.zeros_(model.score.weight)
        return model

    monkeypatch.setattr(PeftModel, "merge_and_unload", forgetful, raising=False)
    judge = made("llama")
    with pytest.raises(RuntimeError, match=r"the merged model's logits differ by .* nothing was written"):
        merge(judge.folder, tmp_path / "merged", str(judge.base))
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_merged_or_written_is_refused(
    made: Callable[..., Made], base: Callable[..., Path], tmp_path: Path
) -> None:
    judge = made("llama")
    shutil.copytree(judge.folder, tmp_path / "adapter")
    merge(judge.folder, tmp_path / "merged", str(judge.base))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    refusals = [
        ("merged", "out", None, "holds a whole model and no adapter; there is nothing to merge"),
        ("adapter", "out", None, "trained on a local folder called 'llama'; give that folder as the checkpoint"),
        ("adapter", "out", str(base("llama", seed=1)), "other weights: wrong base"),
        ("adapter", "adapter", str(judge.base), "is the adapter's own folder; give another to write"),
        ("adapter", "other", str(judge.base), r"holds other things \(no judge.json"),
    ]
    for adapter, out, checkpoint, said in refusals:
        with pytest.raises(ValueError, match=said):
            merge(tmp_path / adapter, tmp_path / out, checkpoint)
    with pytest.raises(FileNotFoundError, match=r"no judge.json"):
        merge(tmp_path / "other", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapter", "merged", "other"]


def test_an_earlier_merged_judge_is_replaced(made: Callable[..., Made], tmp_path: Path) -> None:
    for architecture in ("llama", "bert"):
        judge = made(architecture)
        merge(judge.folder, tmp_path / "merged", str(judge.base))
        assert JudgeSpec.read(tmp_path / "merged").base.id == architecture
