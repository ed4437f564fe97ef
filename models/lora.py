"""LoRA: what is adapted, what is trained whole, and the checks that it is so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from torch import nn
from transformers import PreTrainedModel

from models.backbone import HEAD_MODULES, Head, head_modules
from models.limits import Limits
from models.lora_product import install


@dataclass(frozen=True)
class LoraSettings:
    """LoRA's settings. Rank 32, alpha 64 and dropout 0.1 are those of the MARS benchmark's code (the sister benchmark
    of EcomScriptBench by the same first author); EcomScriptBench's own are not published.

    ``targets`` empty means every linear layer of the backbone; else the last names of the layers (q_proj, ...).
    ``top_layers`` adapts only that many layers nearest the head; None adapts all.
    """

    rank: Annotated[int, Limits(1)] = 32
    alpha: Annotated[float, Limits(above=0)] = 64.0
    dropout: Annotated[float, Limits(0, below=1)] = 0.1
    targets: tuple[str, ...] = ()
    dora: bool = False
    rslora: bool = False
    top_layers: Annotated[int, Limits(1)] | None = None


def attach_lora(
    model: PreTrainedModel, head: Head, settings: LoraSettings, gradient_checkpointing: bool = False
) -> PeftModel:
    """The model with fresh adapters; a classification head is trained whole, in float32, beside them.

    Raises:
        ValueError: a layer to adapt does not exist or is part of the head, there are not that many layers, or DoRA is
            asked for over 8 bits on a CPU, where peft 0.21 loses the weights' scales.
    """
    if settings.dora and getattr(model, "is_loaded_in_8bit", False) and model.device.type == "cpu":
        raise ValueError("lora.dora: DoRA over int8 works on no CPU; take quantization nf4, or LoRA without DoRA")
    heads = head_modules(model) if head == "classification" else []
    config = LoraConfig(
        task_type=TaskType.SEQ_CLS if head == "classification" else TaskType.CAUSAL_LM,
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=_targets(model, heads, settings.targets),
        layers_to_transform=_top_layers(model, settings.top_layers),
        use_dora=settings.dora,
        use_rslora=settings.rslora,
        modules_to_save=list(heads) or None,
    )
    if gradient_checkpointing:
        model.enable_input_require_grads()  # a reentrant checkpoint whose inputs need no gradient hands none back
    peft_model = get_peft_model(model, config)
    prepare_trainable(peft_model)
    if head == "classification":
        check_head(peft_model)
    return peft_model


def prepare_trainable(model: nn.Module) -> None:
    """Trainable parameters in float32, whatever the backbone's precision, heads that take what it hands them, and LoRA
    layers that compute in its precision."""
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.dtype in (torch.float16, torch.bfloat16):
            parameter.data = parameter.data.float()
    for module in trained_heads(model):
        module.register_forward_pre_hook(_cast_to_own_dtype)
    install(model)


def trained_heads(model: nn.Module) -> list[nn.Module]:
    """The live copies of the head's modules (peft keeps the untrained original beside each)."""
    return [
        module
        for name, module in model.named_modules()
        if ".modules_to_save." in name and name.rsplit(".", 2)[-2] == "modules_to_save"
    ]


def float_heads(model: nn.Module) -> None:
    """The head of a model without adapters in float32, as it is beside adapters: logits finer than bfloat16's steps."""
    for name, module in model.named_modules():
        *parents, last = name.split(".")
        if last in HEAD_MODULES and not any(parent in HEAD_MODULES for parent in parents):
            module.float()
            module.register_forward_pre_hook(_cast_to_own_dtype)


def _cast_to_own_dtype(module: nn.Module, inputs: tuple[object, ...]) -> tuple[object, ...]:
    dtype = next(module.parameters()).dtype
    return tuple(x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs)


def check_head(model: nn.Module) -> None:
    """Raises RuntimeError unless the head is trainable and in floating point (peft#577, transformers#24037)."""
    parameters = [parameter for module in trained_heads(model) for parameter in module.parameters()]
    if not parameters or not all(p.requires_grad and p.dtype == torch.float32 for p in parameters):
        raise RuntimeError("the classification head is not trainable in float32; no adapter was made")


def trainable_parts(model: nn.Module) -> dict[str, int]:
    """Trainable parameters counted by part: layer numbers and adapter names are folded into one line each."""
    parts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            words = [word for word in name.split(".") if word not in ("default", "base_model")]
            part = ".".join("*" if word.isdigit() else word for word in words)
            parts[part] = parts.get(part, 0) + parameter.numel()
    return parts


def _targets(model: PreTrainedModel, heads: list[str], asked: tuple[str, ...]) -> list[str]:
    """Last names of the layers to adapt: those asked for, or every linear layer outside head and vocabulary projection.

    peft leaves alone what lies inside a head, even where it bears such a name (BERT's pooler has a ``dense``).
    """
    output = model.get_output_embeddings()
    known = {
        name.rsplit(".", 1)[-1]
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not output and not any(part in heads for part in name.split("."))
    }
    if unknown := sorted(set(asked) - known):
        raise ValueError(
            f"lora.targets: the backbone has no linear layer named {', '.join(unknown)}; "
            f"there are {', '.join(sorted(known))}"
        )
    if not known:
        raise ValueError(f"a {model.config.model_type} has no linear layers to adapt; train it whole")
    return sorted(asked or known)


def _top_layers(model: PreTrainedModel, count: int | None) -> list[int] | None:
    if count is None:
        return None
    total = model.config.num_hidden_layers
    if not 1 <= count <= total:
        raise ValueError(f"lora.top_layers: {count} given; the model has {total} layers, give 1 to {total}")
    return list(range(total - count, total))
