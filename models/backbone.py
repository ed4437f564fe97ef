"""Loading a backbone with its head, in the right precision, with a pad token that cannot be mistaken for text."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
)
from transformers.utils import CONFIG_NAME, cached_file
from transformers.utils.hub import extract_commit_hash

from models.attention import IMPLEMENTATION, packs
from models.checkpoint import Checkpoint
from models.precision import fastest, speed_up_float32

Head = Literal["classification", "verbalizer"]
Dtype = Literal["auto", "exact", "float32", "bfloat16", "float16"]
Quantization = Literal["none", "nf4", "int8"]

LABEL_NAMES = ("no", "yes")
# The last name of every module that stands between a backbone's hidden states and its class logits, over the
# architectures tested: Llama, Mistral, Qwen, Gemma (score), BERT (pooler, classifier), RoBERTa (classifier),
# DeBERTa (pooler, classifier), DistilBERT (pre_classifier, classifier), ModernBERT (head, classifier).
HEAD_MODULES = ("score", "classifier", "pooler", "pre_classifier", "head")
# What bitsandbytes must leave in floating point: heads wherever they stand (BERT's is bert.pooler), and the projection
# to the vocabulary. transformers matches each as a regular expression from the start of a module's full name.
NEVER_QUANTIZED = [rf"(?:.*\.)?(?:{'|'.join((*HEAD_MODULES, 'lm_head', 'embed_out'))})"]
FINGERPRINT_ROWS = 64


@dataclass(frozen=True)
class LoadSettings:
    """How a backbone is loaded. ``dtype`` auto is bfloat16 where this machine was measured to multiply it faster, else
    float32; float32 takes the faster of two libraries of the same accuracy; exact is float32 as torch comes.

    int8 chooses the columns that it keeps in 16 bits by what a batch holds, so that a score depends a little on the
    rows beside it; nf4 does not.
    """

    head: Head = "classification"
    dtype: Dtype = "auto"
    quantization: Quantization = "none"
    attention: str | None = None
    trust_remote_code: bool = False


def resolve_dtype(dtype: Dtype) -> torch.dtype:
    """The torch dtype that ``dtype`` stands for on this machine."""
    if dtype == "auto":
        return fastest()
    chosen = getattr(torch, "float32" if dtype == "exact" else dtype)
    assert isinstance(chosen, torch.dtype)
    return chosen


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
    """A token that no text ends with: a pad or reserved token, the unknown token, that which begins a text, or eos."""
    ends = tokenizer.eos_token
    special = [*tokenizer.all_special_tokens, *map(str, tokenizer.added_tokens_decoder.values())]
    for word in ("pad", "reserved", "unused"):
        for token in special:
            if word in token.lower() and token not in (ends, tokenizer.bos_token):
                return str(token)
    for token in (tokenizer.unk_token, tokenizer.bos_token):
        if token is not None and token != ends:
            return str(token)
    if ends is None:
        raise ValueError(
            f"the tokenizer of {tokenizer.name_or_path} has no pad, unknown, begin or end token; "
            "add a pad token to it first"
        )
    return str(ends)


def pinned(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint at the very commit that its revision means now, so that all that is loaded of it is of one state
    and what is recorded can be had again. A folder is returned as it is.
    """
    if checkpoint.local:
        return checkpoint
    config = cached_file(checkpoint.path, CONFIG_NAME, revision=checkpoint.revision)
    return replace(checkpoint, revision=extract_commit_hash(config, None) or checkpoint.revision)


def load_config(checkpoint: Checkpoint, trust_remote_code: bool = False) -> Any:
    """The checkpoint's configuration, its weights untouched."""
    return AutoConfig.from_pretrained(checkpoint.path, **checkpoint.tokenizer_kwargs(trust_remote_code))


def load_backbone(
    checkpoint: Checkpoint, settings: LoadSettings, pad_token_id: int, trained_head: bool = False
) -> PreTrainedModel:
    """The backbone with the head asked for, its new modules initialised from torch's current seed.

    A head of another task that the checkpoint may hold (three NLI labels, say) makes room for a new one.

    Args:
        trained_head: the checkpoint must hold the whole head: it is a judge, not a backbone.

    Raises:
        ValueError: the architecture takes no such head, or weights outside the head are missing or of other shapes.
    """
    config = load_config(checkpoint, settings.trust_remote_code)
    _check_architecture(checkpoint.name, config, settings)
    kwargs: dict[str, Any] = {
        **checkpoint.model_kwargs(settings.trust_remote_code),
        "dtype": resolve_dtype(settings.dtype),
        "output_loading_info": True,
    }
    if settings.quantization != "none":
        kwargs["quantization_config"] = _quantization(settings)
    if settings.attention or packs(config):
        kwargs["attn_implementation"] = settings.attention or IMPLEMENTATION
    auto = AutoModelForCausalLM
    if settings.head == "classification":
        auto = AutoModelForSequenceClassification
        labels = dict(enumerate(LABEL_NAMES))
        kwargs.update(num_labels=len(labels), id2label=labels, label2id={name: index for index, name in labels.items()})
        kwargs["ignore_mismatched_sizes"] = True
    with quiet_load_report():
        model, info = auto.from_pretrained(checkpoint.path, **kwargs)
    other_shape = [key for key, *_ in info["mismatched_keys"]]
    _refuse_missing(checkpoint, [*info["missing_keys"], *other_shape], trained_head)
    if pad_token_id >= model.get_input_embeddings().num_embeddings:
        raise ValueError(
            f"the tokenizer of {checkpoint.name} pads with token {pad_token_id}, but the model has embeddings for "
            f"{model.get_input_embeddings().num_embeddings} tokens only; set pad_token to one that it has"
        )
    model.config.pad_token_id = pad_token_id
    _same_on_every_cpu(model)
    if settings.dtype != "exact" and resolve_dtype(settings.dtype) == torch.float32:
        speed_up_float32(model)
    return model


def _check_architecture(name: str, config: Any, settings: LoadSettings) -> None:
    """Raises ValueError, in words, for a model that takes no such head or was quantized beforehand."""
    kind, remote = config.model_type, getattr(config, "auto_map", None) or {}
    if config.is_encoder_decoder:
        raise ValueError(
            f"{name} is an encoder-decoder ({kind}); a judge is a decoder (Llama, Mistral, Qwen, Gemma, SmolLM ...) "
            "or an encoder (BERT, RoBERTa, DeBERTa, ModernBERT ...)"
        )
    if config.get_text_config() is not config:
        raise ValueError(f"{name} ({kind}) reads more than text; take a model of text alone (gemma3_text, qwen3 ...)")
    if settings.head == "verbalizer" and is_encoder(config):
        raise ValueError(
            f"{name} is an encoder ({kind}): it predicts no next token, so it takes no verbalizer head; "
            "use head: classification"
        )
    heads = {
        "classification": ("AutoModelForSequenceClassification", MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES),
        "verbalizer": ("AutoModelForCausalLM", MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    }
    loader, known = heads[settings.head]
    readers = {**MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, **MODEL_FOR_MASKED_LM_MAPPING_NAMES}
    if loader not in remote and (kind not in known or kind not in readers):
        raise ValueError(f"{name} ({kind}) is no architecture that transformers gives a {settings.head} head to")
    if (stored := stored_quantization(config)) and settings.quantization == "none":
        raise ValueError(f"{name} is stored {stored}; give the checkpoint in full precision, or set quantization")


def stored_quantization(config: Any) -> str | None:
    """How a checkpoint's weights were quantized before it was saved, in words; None if they were not."""
    stored = getattr(config, "quantization_config", None)
    if stored is None:
        return None
    fields = stored if isinstance(stored, dict) else stored.to_dict()
    bits = {"load_in_4bit": "in 4 bits", "load_in_8bit": "in 8 bits"}
    return next((words for key, words in bits.items() if fields.get(key)), "quantized")


@contextmanager
def quiet_load_report() -> Iterator[None]:
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


def _refuse_missing(checkpoint: Checkpoint, missing: list[str], trained_head: bool) -> None:
    head = sorted({part for key in missing for part in key.split(".") if part in HEAD_MODULES})
    outside = sorted(key for key in missing if not any(part in HEAD_MODULES for part in key.split(".")))
    if outside:
        raise ValueError(
            f"{checkpoint.name} lacks weights that are not part of a new head: {', '.join(outside[:5])}"
            f"{' ...' if len(outside) > 5 else ''}; the checkpoint is incomplete or of another architecture"
        )
    if head and trained_head:
        refuse_random_head(checkpoint.name, head)


def refuse_random_head(name: object, absent: list[str]) -> NoReturn:
    """Raises ValueError for a judge whose files lack parts of its head."""
    raise ValueError(f"{name} holds no trained {', '.join(absent)}: its head would be one of random weights")


def _quantization(settings: LoadSettings) -> BitsAndBytesConfig:
    if settings.quantization == "int8":
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=NEVER_QUANTIZED)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=resolve_dtype(settings.dtype),
        llm_int8_skip_modules=NEVER_QUANTIZED,
    )


def _same_on_every_cpu(model: PreTrainedModel) -> None:
    """Switch off what bitsandbytes 0.50 does to 4-bit weights on CPUs with AVX512-BF16.

    At the first pass in eval mode it repacks them into a form that has no gradient (training after an evaluation
    would learn nothing), computes in bfloat16 whatever was asked for, and refuses sizes that are no multiple of its
    block.
    """
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def is_encoder(config: Any) -> bool:
    """Whether a model reads its input in both directions (BERT's family) rather than left to right.

    An encoder is what transformers offers for masked language modelling; for remote code, what comes without a class
    for causal language modelling.
    """
    if config.is_encoder_decoder or getattr(config, "is_decoder", False):
        return False
    remote = getattr(config, "auto_map", None) or {}
    if any(loader.startswith("AutoModel") for loader in remote):
        return "AutoModelForCausalLM" not in remote
    return config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES


def head_modules(model: nn.Module) -> list[str]:
    """Names (last parts) of the head's modules that this model has, outermost only."""
    found: list[str] = []
    for name, _ in model.named_modules():
        *parents, last = name.split(".")
        if last in HEAD_MODULES and not any(parent in HEAD_MODULES for parent in parents) and last not in found:
            found.append(last)
    return found


def position_limit(model: nn.Module) -> int | None:
    """Tokens that a model has positions for; None where it says no limit.

    RoBERTa and its kin count positions from behind their pad token's index, so that a table of 514 serves 512.
    """
    config: Any = model.config
    positions = getattr(config, "max_position_embeddings", None)
    if not positions or positions < 0:
        return None
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(positions) - int(module.padding_idx) - 1
    return int(positions)


def fingerprint(model: PreTrainedModel) -> str:
    """Tells models of the same sizes apart: a digest of embedding rows, norms and biases, as bfloat16 rounds them.

    The same in float32 and bfloat16, and over a quantized backbone (which keeps these in floating point).
    """
    table = model.get_input_embeddings().weight
    rows = torch.linspace(0, len(table) - 1, FINGERPRINT_ROWS, dtype=torch.float64).long()
    tensors = [table[rows.to(table.device)]]
    for name, parameter in sorted(model.named_parameters()):
        if parameter.dim() == 1 and not any(part in HEAD_MODULES for part in name.split(".")):
            tensors.append(parameter)
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().to("cpu", torch.bfloat16).contiguous().view(torch.int16).numpy().tobytes())
    return digest.hexdigest()[:16]
