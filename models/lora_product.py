"""A LoRA layer's product in one step, in the precision of its backbone.

peft computes the low-rank part in float32 beside a bfloat16 backbone: it copies every input and output to float32 and
back and multiplies at float32 speed, which costs a CPU about a third of each update. Here the low-rank factors are
rounded to the backbone's precision for the product (the weights that learn stay in float32), and both parts of the
result and of the gradient are added up inside the matrix products.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from peft.tuners.lora.layer import Linear as LoraLinear
from torch import nn


def install(model: nn.Module) -> None:
    """Use the product in every plain LoRA layer of a model that does not yet; layers of other kinds, and a plain one in
    a state that the product does not cover (merged, several adapters, active dropout, sharded weights), go on as peft
    has them."""
    for module in model.modules():
        plain = type(module) is LoraLinear and type(module.base_layer) is nn.Linear
        if plain and "forward" not in vars(module):
            module.forward = partial(_forward, module, module.forward)


def _forward(layer: LoraLinear, by_peft: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    name = _sole_adapter(layer)
    if name is None or args or kwargs or not _plain(layer, name, x):
        result: torch.Tensor = by_peft(x, *args, **kwargs)
        return result
    base: Any = layer.base_layer
    a, b = layer.lora_A[name].weight.to(x.dtype), layer.lora_B[name].weight.to(x.dtype)
    product: torch.Tensor = _Product.apply(x, base, a, b, layer.scaling[name])
    return product


def _sole_adapter(layer: LoraLinear) -> str | None:
    """The one adapter in use; None where there is none, or several, or one that is more than a plain LoRA."""
    if layer.disable_adapters or layer.merged or len(layer.active_adapters) != 1:
        return None
    name: str = layer.active_adapters[0]
    variants = (name in layer.lora_variant, name not in layer.lora_A, layer.lora_bias.get(name, False))
    return None if any(variants) else name


def _plain(layer: LoraLinear, name: str, x: torch.Tensor) -> bool:
    dropout, weight = layer.lora_dropout[name], layer.base_layer.weight
    drops = layer.training and not isinstance(dropout, nn.Identity)
    # A sharded weight (FSDP's DTensor, ZeRO-3's empty one) is made whole by the hooks of the layer that peft calls.
    whole = type(weight) in (nn.Parameter, torch.Tensor) and not hasattr(weight, "ds_id")
    return whole and not drops and x.dtype == weight.dtype and not torch.is_autocast_enabled(x.device.type)


class _Product(torch.autograd.Function):
    """x W' + bias + scaling (x A') B', where the weight itself takes no gradient.

    Shapes: x [..., in], ``base``'s weight [out, in], a [rank, in], b [out, rank]; the result is [..., out].
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        base: nn.Linear,
        a: torch.Tensor,
        b: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        low = rows @ a.T
        result: torch.Tensor = base(rows)  # not its weight alone: it may have hooks (models.precision)
        result.addmm_(low, b.T, alpha=scaling)
        ctx.save_for_backward(rows, low, base.weight, a, b)
        ctx.scaling = scaling
        return result.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        rows, low, weight, a, b = ctx.saved_tensors
        gradient = gradients[0].reshape(-1, gradients[0].shape[-1])
        of_low = (gradient @ b).mul_(ctx.scaling)
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x = gradient @ weight
            of_x.addmm_(of_low, a)
            of_x = of_x.view(*gradients[0].shape[:-1], -1)
        of_b = (gradient.T @ low).mul_(ctx.scaling)
        return of_x, None, of_low.T @ rows, of_b, None
