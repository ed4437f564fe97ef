"""Loading a backbone with its head, in the right precision, with a pad token that cannot be mistaken for text."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from models.checkpoint import Checkpoint

logger = logging.getLogger(__name__)

Head = Literal["classification", "verbalizer"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
Quantization = Literal["none", "nf4", "int8"]

LABEL_NAMES = ("no", "yes")
# The last name of every module that stands between a backbone's hidden states and its class logits, over the
# architectures tested: Llama, Mistral, Qwen, Gemma (score), BERT (pooler, classifier), RoBERTa (classifier),
# DeBERTa (pooler, classifier), DistilBERT (pre_classifier, classifier), ModernBERT (head, classifier).
HEAD_MODULES = ("score", "classifier", "pooler", "pre_classifier", "head")


@dataclass(frozen=True)
class LoadSettings:
    """How a backbone is loaded. ``dtype`` auto is bfloat16 where the hardware multiplies it fast, else float32."""

    head: Head = "classification"
    dtype: Dtype = "auto"
    quantization: Quantization = "none"
    attention: str | None = None
    trust_remote_code: bool = False


def resolve_dtype(dtype: Dtype) -> torch.dtype:
    """The torch dtype that ``dtype`` stands for on this machine."""
    if dtype != "auto":
        chosen = getattr(torch, dtype)
        assert isinstance(chosen, torch.dtype)
        return chosen
    if torch.cuda.is_available():
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    return torch.bfloat16 if torch.cpu._is_avx512_bf16_supported() else torch.float32


def load_tokenizer(checkpoint: Checkpoint, trust_remote_code: bool = False) -> PreTrainedTokenizerBase:
    """The tokenizer, with a pad token that is not the end-of-text token wherever the vocabulary has another.

    A pad token that is also a real token makes a classification head pool the wrong position
    (huggingface/transformers#35352). Nothing is added to the vocabulary.
    """
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.path, **checkpoint.tokenizer_kwargs(trust_remote_code))
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id == tokenizer.eos_token_id:
        tokenizer.pad_token = _spare_token(tokenizer)
    return tokenizer


def _spare_token(tokenizer: PreTrainedTokenizerBase) -> str:
    """A special token that text never holds: a pad or reserved token, the unknown token, or, failing all, eos."""
    special = [token for token in tokenizer.all_special_tokens if token not in (tokenizer.eos_token, tokenizer.bos_token)]
    added = [str(token) for token in tokenizer.added_tokens_decoder.values()]
    for word in ("pad", "reserved", "unused"):
        for token in [*special, *added]:
            if word in token.lower():
                return token
    spare: str | None = tokenizer.unk_token or tokenizer.eos_token
    if spare is None:
        raise ValueError(
            f"the tokenizer of {tokenizer.name_or_path} has no pad, unknown or end token; add a pad token to it first"
        )
    return spare


def load_backbone(checkpoint: Checkpoint, settings: LoadSettings, pad_token_id: int) -> PreTrainedModel:
    """The backbone with the head asked for, its new modules initialised from torch's current seed.

    Raises:
        ValueError: the checkpoint is an encoder but the head a verbalizer, or weights outside the head are missing.
    """
    config = AutoConfig.from_pretrained(checkpoint.path, **checkpoint.tokenizer_kwargs(settings.trust_remote_code))
    if settings.head == "verbalizer" and is_encoder(config):
        raise ValueError(
            f"{checkpoint.name} is an encoder ({config.model_type}): it predicts no next token, so it takes no verbalizer "
            "head; use head: classification"
        )
    kwargs: dict[str, Any] = {
        **checkpoint.model_kwargs(settings.trust_remote_code),
        "dtype": resolve_dtype(settings.dtype),
        "quantization_config": _quantization(settings),
        "output_loading_info": True,
    }
    if settings.attention:
        kwargs["attn_implementation"] = settings.attention
    auto = AutoModelForCausalLM
    if settings.head == "classification":
        auto = AutoModelForSequenceClassification
        labels = dict(enumerate(LABEL_NAMES))
        kwargs.update(num_labels=len(labels), id2label=labels, label2id={name: index for index, name in labels.items()})
    with _quiet_load_report():
        model, info = auto.from_pretrained(checkpoint.path, **kwargs)
    _refuse_missing(checkpoint, info["missing_keys"])
    model.config.pad_token_id = pad_token_id
    model.config.use_cache = False
    return model


@contextmanager
def _quiet_load_report() -> Iterator[None]:
    """Without transformers' table of missing and unexpected weights (`_refuse_missing` reads the same facts) and its
    note that a model on one device is not sharded."""
    sharding = logging.getLogger("transformers.distributed.tensor_parallel")
    loading = logging.getLogger("transformers.modeling_utils")
    levels = sharding.level, loading.level
    sharding.setLevel(logging.ERROR)
    loading.setLevel(logging.ERROR)
    try:
        yield
    finally:
        sharding.setLevel(levels[0])
        loading.setLevel(levels[1])


def _refuse_missing(checkpoint: Checkpoint, missing: set[str] | list[str]) -> None:
    outside = [key for key in missing if not any(part in HEAD_MODULES for part in key.split("."))]
    if outside:
        raise ValueError(
            f"{checkpoint.name} lacks weights that are not part of a new head: {', '.join(sorted(outside)[:5])}"
            f"{' ...' if len(outside) > 5 else ''}; the checkpoint is incomplete or of another architecture"
        )


def _quantization(settings: LoadSettings) -> BitsAndBytesConfig | None:
    """bitsandbytes settings; heads and the vocabulary projection stay in floating point."""
    keep = [*HEAD_MODULES, "lm_head"]
    if settings.quantization == "nf4":
        return BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=resolve_dtype(settings.dtype),
            llm_int8_skip_modules=keep,
        )
    if settings.quantization == "int8":
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=keep)
    return None


ENCODERS = ("bert", "roberta", "electra", "mpnet", "albert", "nomic")


def is_encoder(config: Any) -> bool:
    """Whether a model reads its input in both directions (BERT's family) rather than left to right."""
    kind = config.model_type.lower()
    return any(name in kind for name in ENCODERS) and not getattr(config, "is_decoder", False)


def head_modules(model: torch.nn.Module) -> list[str]:
    """Names (last parts) of the head's modules that this model has, outermost only."""
    found: list[str] = []
    for name, _ in model.named_modules():
        *parents, last = name.split(".")
        if last in HEAD_MODULES and not any(parent in HEAD_MODULES for parent in parents) and last not in found:
            found.append(last)
    return found
