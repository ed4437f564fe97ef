"""What LoRA adapts, what it trains, and that its arithmetic is the published one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
import torch
from tiny import DECODERS, ENCODERS
from tiny_judges import COMBINATIONS, PROMPTS, logits_of, shake
from torch import nn

from models.judge import Judge
from models.lora import LoraSettings, check_head, trainable_parts, trained_heads

LINEAR = {
    "llama": {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
    "bert": {"query", "key", "value", "dense"},
    "roberta": {"query", "key", "value", "dense"},
    "deberta-v2": {"query_proj", "key_proj", "value_proj", "dense"},
    "modernbert": {"Wqkv", "Wo", "Wi"},
}
# Linear layers in one layer of the backbone.
PER_LAYER = {"bert": 6, "roberta": 6, "deberta-v2": 6, "modernbert": 4, **dict.fromkeys(DECODERS, 7)}
LABELS = torch.tensor([0, 1, 1, 0])


def step(judge: Judge, rate: float = 0.5) -> dict[str, torch.Tensor | None]:
    """One step of plain gradient descent on the prompts; the gradients of trainable parameters."""
    judge.model.train()
    trainable = {name: p for name, p in judge.model.named_parameters() if p.requires_grad}
    batch = judge.encoder.pad(judge.encoder.encode(PROMPTS))
    nn.functional.cross_entropy(judge.logits(batch), LABELS).backward()
    gradients = {name: p.grad for name, p in trainable.items()}
    torch.optim.SGD(trainable.values(), lr=rate).step()
    judge.model.zero_grad()
    return gradients


def snapshot(judge: Judge) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in judge.model.named_parameters()}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_two_steps_move_every_adapter_and_the_head_and_nothing_else(
    fresh: Callable[..., Judge], architecture: str, head: str, dtype: str
) -> None:
    judge = fresh(architecture, head, dtype=dtype)
    start = snapshot(judge)
    gradients = step(judge)
    assert all(gradient is not None for gradient in gradients.values())
    step(judge)  # the first left A alone, for B was zero
    moved = {name for name, value in snapshot(judge).items() if not torch.equal(value, start[name])}
    assert moved == gradients.keys()
    assert all(start[name].dtype == torch.float32 for name in moved)
    kinds = {"lora_A", "lora_B"} | ({"modules_to_save"} if head == "classification" else set())
    assert {re.search("lora_A|lora_B|modules_to_save", name)[0] for name in moved} == kinds  # type: ignore[index]


@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_by_default_every_linear_layer_of_the_backbone_is_adapted_and_no_other(
    fresh: Callable[..., Judge], architecture: str, head: str
) -> None:
    model = fresh(architecture, head).model
    adapted = [name for name, module in model.named_modules() if hasattr(module, "lora_A")]
    assert len(adapted) == 2 * PER_LAYER[architecture]
    names = {name.rsplit(".", 1)[-1] for name in adapted}
    assert names == LINEAR.get(architecture, LINEAR["llama"])
    assert not any(part in name for name in adapted for part in ("score", "classifier", "pooler", ".head.", "lm_head"))


@pytest.mark.parametrize("architecture", [*DECODERS, *ENCODERS])
def test_of_the_top_layers_only_those_are_adapted(fresh: Callable[..., Judge], architecture: str) -> None:
    judge = fresh(architecture, lora=LoraSettings(rank=4, top_layers=1))
    adapted = [name for name, module in judge.model.named_modules() if hasattr(module, "lora_A")]
    assert len(adapted) == PER_LAYER[architecture]
    assert {re.search(r"\.layers?\.(\d+)\.", name)[1] for name in adapted} == {"1"}  # type: ignore[index]
    assert all(gradient is not None for gradient in step(judge).values())


@pytest.mark.parametrize("count", [0, 3, -1])
def test_more_layers_than_there_are_or_none_are_refused(fresh: Callable[..., Judge], count: int) -> None:
    with pytest.raises(ValueError, match=rf"lora.top_layers: {count} given; the model has 2 layers, give 1 to 2"):
        fresh("llama", lora=LoraSettings(top_layers=count))


def test_named_layers_alone_are_adapted(fresh: Callable[..., Judge]) -> None:
    judge = fresh("llama", lora=LoraSettings(rank=4, targets=("v_proj", "q_proj")))
    adapted = {name.rsplit(".", 1)[-1] for name, module in judge.model.named_modules() if hasattr(module, "lora_A")}
    assert adapted == {"q_proj", "v_proj"}


@pytest.mark.parametrize(
    ("architecture", "head", "targets", "unknown"),
    [
        ("llama", "classification", ("q_proj", "query", "value"), "query, value"),
        ("llama", "classification", ("q_proj", "score"), "score"),  # the head is trained whole
        ("llama", "verbalizer", ("q_proj", "lm_head"), "lm_head"),  # only two of its rows are ever computed
        ("bert", "classification", ("query", "classifier"), "classifier"),
    ],
)
def test_a_layer_that_does_not_exist_or_is_no_part_of_the_backbone_is_refused(
    fresh: Callable[..., Judge], architecture: str, head: str, targets: tuple[str, ...], unknown: str
) -> None:
    with pytest.raises(ValueError, match=rf"lora.targets: the backbone has no linear layer named {unknown}; there are"):
        fresh(architecture, head, lora=LoraSettings(targets=targets))


# Arithmetic, on one layer with random adapters


def layer_of(judge: Judge) -> nn.Module:
    """An adapted layer, without dropout."""
    shake(judge)
    judge.model.eval()
    return next(module for name, module in judge.model.named_modules() if name.endswith("layers.0.mlp.up_proj"))


@pytest.mark.parametrize(
    ("settings", "scale"),
    [
        (LoraSettings(rank=4, alpha=8), 8 / 4),  # Hu et al. 2021, section 4.1
        (LoraSettings(rank=4, alpha=8, rslora=True), 8 / math.sqrt(4)),  # Kalajdzievski 2023
        (LoraSettings(), 64 / 32),
    ],
)
def test_lora_adds_b_a_x_times_its_scale(fresh: Callable[..., Judge], settings: LoraSettings, scale: float) -> None:
    layer = layer_of(fresh("llama", lora=settings))
    a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    assert (a.shape, b.shape) == ((settings.rank, 32), (64, settings.rank))
    x = torch.randn(5, 32)
    expected = x @ layer.base_layer.weight.T + scale * (x @ a.T) @ b.T
    assert (layer(x) - expected).abs().max() < 1e-4


def test_dora_scales_each_row_to_its_own_length(fresh: Callable[..., Judge]) -> None:
    """W' = m (W + s B A) / ||W + s B A||, the norm over each row of the output (Liu et al. 2024, equation 5)."""
    judge = fresh("llama", lora=LoraSettings(rank=4, alpha=8, dora=True))
    layer = layer_of(judge)
    weight, m = layer.base_layer.weight, layer.lora_magnitude_vector["default"].weight
    assert torch.allclose(m, weight.norm(dim=1))  # as initialised
    with torch.no_grad():
        m.mul_(torch.linspace(0.5, 1.5, len(m)))
    direction = weight + 2.0 * layer.lora_B["default"].weight @ layer.lora_A["default"].weight
    x = torch.randn(5, 32)
    expected = x @ (m[:, None] * direction / direction.norm(dim=1, keepdim=True)).T
    assert (layer(x) - expected).abs().max() < 1e-4


@pytest.mark.parametrize("architecture", ["llama", "bert", "modernbert"])
def test_dora_trains_its_magnitudes_too(fresh: Callable[..., Judge], architecture: str) -> None:
    judge = fresh(architecture, lora=LoraSettings(rank=4, dora=True))
    start = snapshot(judge)
    magnitudes = {name for name in step(judge) if "magnitude" in name}
    step(judge)
    after = snapshot(judge)
    assert len(magnitudes) == 2 * PER_LAYER[architecture]
    assert not any(torch.equal(after[name], start[name]) for name in magnitudes)


def test_a_new_adapter_changes_nothing_yet(fresh: Callable[..., Judge]) -> None:
    """B begins at zero (Hu et al. 2021), so that training starts from the backbone as it is."""
    adapted, bare = fresh("qwen3", "verbalizer"), fresh("qwen3", "verbalizer", lora=None)
    rows = bare.encoder.encode(PROMPTS)
    assert torch.equal(logits_of(adapted, rows), logits_of(bare, rows))


# Training's other ways


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize(
    ("architecture", "head"), [("llama", "classification"), ("qwen3", "verbalizer"), ("bert", "classification")]
)
def test_gradient_checkpointing_gives_the_same_gradients(
    fresh: Callable[..., Judge], architecture: str, head: str, reentrant: bool
) -> None:
    def gradients(checkpointing: bool) -> dict[str, torch.Tensor | None]:
        judge = fresh(architecture, head, lora=LoraSettings(rank=4, dropout=0.0), checkpointing=checkpointing)
        for module in judge.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        if checkpointing:
            judge.model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        step(judge)
        return step(judge)

    plain, checkpointed = gradients(False), gradients(True)
    for name, gradient in plain.items():
        assert torch.allclose(gradient, checkpointed[name], atol=1e-6), name


def test_a_head_that_is_not_trained_in_float32_is_noticed(fresh: Callable[..., Judge]) -> None:
    judge = fresh("llama")
    check_head(judge.model)
    trained_heads(judge.model)[0].half()
    with pytest.raises(RuntimeError, match="the classification head is not trainable in float32"):
        check_head(judge.model)
    with pytest.raises(RuntimeError, match="not trainable"):
        check_head(nn.Linear(2, 2))


def test_parts_are_counted_by_kind(fresh: Callable[..., Judge]) -> None:
    parts = trainable_parts(fresh("llama", lora=LoraSettings(rank=4, targets=("q_proj",))).model)
    assert parts == {
        "model.model.layers.*.self_attn.q_proj.lora_A.weight": 2 * 4 * 32,
        "model.model.layers.*.self_attn.q_proj.lora_B.weight": 2 * 32 * 4,
        "model.score.modules_to_save.weight": 2 * 32,
    }
