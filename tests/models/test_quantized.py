"""Backbones in 4 and 8 bits, on the CPU: what stays in floating point, that training works, that files say the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from bitsandbytes.functional import dequantize_4bit
from bitsandbytes.nn import Linear4bit, Linear8bitLt
from tiny_judges import COMBINATIONS, PROMPTS, logits_of, shake
from torch import nn

from models.backbone import LoadSettings, head_modules
from models.judge import Judge, load_judge
from models.lora import LoraSettings

LABELS = torch.tensor([0, 1, 1, 0])
KINDS = {"nf4": Linear4bit, "int8": Linear8bitLt}


def train_step(judge: Judge) -> dict[str, torch.Tensor]:
    """One step of gradient descent; the gradients."""
    judge.model.train()
    trainable = {name: p for name, p in judge.model.named_parameters() if p.requires_grad}
    batch = judge.encoder.pad(judge.encoder.encode(PROMPTS))
    nn.functional.cross_entropy(judge.logits(batch), LABELS).backward()
    torch.optim.SGD(trainable.values(), lr=0.2).step()
    gradients = {name: p.grad.clone() for name, p in trainable.items() if p.grad is not None}
    judge.model.zero_grad()
    assert gradients.keys() == trainable.keys()
    return gradients


@pytest.mark.parametrize("quantization", ["nf4", "int8"])
@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_every_linear_layer_of_the_backbone_is_quantized_and_head_and_vocabulary_are_not(
    fresh: Callable[..., Judge], architecture: str, head: str, quantization: str
) -> None:
    judge = fresh(architecture, head, quantization=quantization, dtype="bfloat16")
    heads = {*head_modules(judge.model), "lm_head"}
    linear = {
        name: module
        for name, module in judge.model.named_modules()
        if isinstance(module, nn.Linear) and "lora_" not in name
    }
    assert linear
    for name, module in linear.items():
        inside = any(part in heads for part in name.split("."))
        assert isinstance(module, KINDS[quantization]) != inside, name
    for name, parameter in judge.model.named_parameters():
        if not isinstance(judge.model.get_submodule(name.rpartition(".")[0]), KINDS[quantization]):
            assert parameter.dtype == (torch.float32 if parameter.requires_grad else torch.bfloat16), name


@pytest.mark.parametrize("quantization", ["nf4", "int8"])
@pytest.mark.parametrize(
    ("architecture", "head", "dtype"),
    [(*pair, "float32") for pair in COMBINATIONS]
    + [(*pair, "bfloat16") for pair in COMBINATIONS if pair[0] in ("llama", "bert", "modernbert")],
)
def test_it_learns_before_and_after_an_evaluation_and_is_loaded_saying_the_same(
    fresh: Callable[..., Judge],
    base: Callable[..., Path],
    tmp_path: Path,
    architecture: str,
    head: str,
    quantization: str,
    dtype: str,
) -> None:
    judge = fresh(architecture, head, quantization=quantization, dtype=dtype)
    rows = judge.encoder.encode(PROMPTS)
    start = logits_of(judge, rows)
    train_step(judge)
    assert all(gradient.abs().max() > 0 for name, gradient in train_step(judge).items() if "bias" not in name)
    trained = logits_of(judge, rows)
    assert not torch.equal(start, trained)
    judge.save(tmp_path / "adapter")
    loaded = load_judge(tmp_path / "adapter", str(base(architecture)))
    assert (loaded.spec.base.quantization, loaded.spec.base.dtype) == (quantization, dtype)
    assert torch.equal(logits_of(loaded, rows), trained)


@pytest.mark.parametrize(
    ("architecture", "head"), [("llama", "classification"), ("qwen2", "verbalizer"), ("bert", "classification")]
)
def test_four_bits_compute_as_their_unpacked_weights_do_in_any_batch(
    fresh: Callable[..., Judge], architecture: str, head: str
) -> None:
    """In float32, on every CPU: bitsandbytes' own way for AVX512-BF16 would round to bfloat16."""
    judge, plain = (fresh(architecture, head, lora=None, quantization=kind) for kind in ("nf4", "none"))
    head_parts = set(head_modules(plain.model))
    heads = [name for name in plain.model.state_dict() if head_parts.intersection(name.split("."))]
    with torch.no_grad():
        for name, module in judge.model.named_modules():
            if isinstance(module, Linear4bit):
                unpacked = dequantize_4bit(module.weight.data, module.weight.quant_state)
                plain.model.get_submodule(name).weight.copy_(unpacked)
        for name in heads:
            plain.model.state_dict()[name].copy_(judge.model.state_dict()[name])
    rows = judge.encoder.encode(PROMPTS)
    alone = torch.cat([logits_of(judge, [row]) for row in rows])
    assert (alone - logits_of(plain, rows)).abs().max() < 1e-5
    assert (alone - logits_of(judge, rows, length=200)).abs().max() < 1e-5


@pytest.mark.parametrize(("quantization", "dora"), [("nf4", True), ("int8", False)])
def test_gradient_checkpointing_works_over_a_quantized_backbone(
    fresh: Callable[..., Judge], quantization: str, dora: bool
) -> None:
    lora = LoraSettings(rank=4, dora=dora, dropout=0.0)
    judge = fresh("llama", "verbalizer", lora=lora, quantization=quantization, checkpointing=True)
    judge.model.gradient_checkpointing_enable({"use_reentrant": False})
    shake(judge)
    assert all(gradient.abs().max() > 0 for gradient in train_step(judge).values())


def test_dora_over_eight_bits_is_refused_on_a_cpu(fresh: Callable[..., Judge]) -> None:
    with pytest.raises(ValueError, match=r"lora.dora: DoRA over int8 works on no CPU; take quantization nf4"):
        fresh("llama", lora=LoraSettings(dora=True), quantization="int8")


def test_an_adapter_trained_in_four_bits_may_be_loaded_over_full_precision(
    fresh: Callable[..., Judge], base: Callable[..., Path], tmp_path: Path
) -> None:
    judge = fresh("llama", quantization="nf4")
    shake(judge)
    judge.save(tmp_path / "adapter")
    loaded = load_judge(tmp_path / "adapter", str(base("llama")), LoadSettings(dtype="float32"))
    assert not any(isinstance(module, Linear4bit) for module in loaded.model.modules())
    assert loaded.spec.base.quantization == "nf4"  # what it was trained over


def test_a_quantized_backbone_without_an_adapter_is_not_saved(fresh: Callable[..., Judge], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="quantized backbone without an adapter holds nothing that was trained"):
        fresh("llama", lora=None, quantization="nf4").save(tmp_path / "adapter")
    assert list(tmp_path.iterdir()) == []


def test_a_quantized_vocabulary_is_noticed(fresh: Callable[..., Judge]) -> None:
    judge: Any = fresh("llama", "verbalizer", lora=None)
    judge.model.lm_head.weight = nn.Parameter(judge.model.lm_head.weight.to(torch.int8), requires_grad=False)
    with pytest.raises(RuntimeError, match="the projection to the vocabulary was quantized"):
        Judge(judge.model, judge.encoder, judge.spec)
