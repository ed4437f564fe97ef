"""The LoRA product is peft's, in value and gradient, and stands aside where it does not apply."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn

from models import lora_product
from models.lora_product import _Product, install


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 5), nn.Linear(5, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(self.first(x).tanh())
        return out


def adapted(seed: int = 0, **settings: Any) -> Any:
    torch.manual_seed(seed)
    model = get_peft_model(Small(), LoraConfig(r=2, lora_alpha=3, target_modules=["first", "second"], **settings))
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            nn.init.normal_(parameter)
    return model


def test_values_and_gradients_are_those_of_the_formula() -> None:
    torch.manual_seed(0)
    x, a, b = (torch.randn(*shape, dtype=torch.float64) for shape in ((2, 3, 7), (2, 7), (4, 2)))
    base = nn.Linear(7, 4, dtype=torch.float64).requires_grad_(False)
    for leaf in (x, a, b):
        leaf.requires_grad_()
    expected = x @ base.weight.T + base.bias + 1.7 * (x @ a.T) @ b.T
    assert torch.allclose(_Product.apply(x, base, a, b, 1.7), expected)
    assert torch.autograd.gradcheck(lambda x, a, b: _Product.apply(x, base, a, b, 1.7), (x, a, b))


def test_the_layers_own_hooks_are_called() -> None:
    model = adapted()
    install(model)
    called: list[str] = []
    model.base_model.model.first.base_layer.register_forward_pre_hook(lambda *_: called.append("before"))
    model.base_model.model.first.base_layer.register_forward_hook(lambda *_: called.append("after"))
    model(torch.randn(3, 6))
    assert called == ["before", "after"]


def test_a_model_computes_and_learns_as_with_peft_alone() -> None:
    x = torch.randn(3, 4, 6)
    found = []
    for ours in (False, True):
        model = adapted()
        if ours:
            install(model)
        out = model(x)
        out.square().sum().backward()
        found.append((out, {name: p.grad for name, p in model.named_parameters() if p.requires_grad}))
    assert torch.allclose(found[0][0], found[1][0], atol=1e-5)
    assert found[0][1].keys() == found[1][1].keys()
    for name, gradient in found[0][1].items():
        assert torch.allclose(gradient, found[1][1][name], rtol=1e-4, atol=1e-4), name


@pytest.mark.parametrize("state", ["merged", "disabled", "two adapters", "dropout", "dora", "rank-stabilised"])
def test_other_states_are_pefts_business(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"dropout": {"lora_dropout": 0.5}, "dora": {"use_dora": True}, "rank-stabilised": {"use_rslora": True}}
    model, plain = (adapted(**settings.get(state, {})) for _ in range(2))
    install(model)
    for one in (model, plain):
        one.train(state == "dropout")
        if state == "merged":
            one.merge_adapter()
        if state == "disabled":
            one.base_model.disable_adapter_layers()
        if state == "two adapters":
            torch.manual_seed(1)
            one.add_adapter("other", LoraConfig(r=2, target_modules=["first"], init_lora_weights=False))
            one.base_model.set_adapter(["default", "other"])
    used: list[bool] = []
    apply = _Product.apply
    monkeypatch.setattr(lora_product._Product, "apply", lambda *given: used.append(True) or apply(*given))
    x = torch.randn(3, 6)
    found = []
    for one in (model, plain):
        torch.manual_seed(2)
        found.append(one(x))
    assert torch.allclose(found[0], found[1], atol=1e-5)
    assert len(used) == (2 if state == "rank-stabilised" else 0)  # a matter of the scale alone


def test_beside_a_bfloat16_backbone_the_low_rank_part_is_bfloat16_and_its_weights_are_not() -> None:
    model = adapted()
    for name, parameter in model.named_parameters():
        if "lora_" not in name:
            parameter.data = parameter.data.bfloat16()
    exact = adapted()
    install(model)
    x = torch.randn(8, 6)
    out, expected = model(x.bfloat16()), exact(x)
    assert out.dtype == torch.bfloat16
    assert (out.float() - expected).abs().max() < 0.05 * expected.abs().max()
    out.float().square().sum().backward()
    gradient = model.base_model.model.first.lora_A["default"].weight.grad
    assert gradient is not None and gradient.dtype == torch.float32
