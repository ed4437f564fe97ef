"""Tiny random checkpoints of real architectures, with a tokenizer of their own: everything runs on a CPU in seconds."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
DECODERS = ("llama", "mistral", "qwen2", "qwen3", "gemma")
OTHER_DECODERS = ("gemma3_text", "smollm3", "phi3")
ENCODERS = ("bert", "roberta", "deberta-v2", "modernbert")
# What published checkpoints of an architecture have, and its default configuration has not.
LIKE_PUBLISHED: dict[str, dict[str, Any]] = {
    "qwen3": {"head_dim": 8},
    "gemma": {"head_dim": 8},
    "gemma3_text": {"head_dim": 8},
    "bert": {"type_vocab_size": 2},
    "roberta": {"type_vocab_size": 2, "max_position_embeddings": 514},
    "deberta-v2": {
        "type_vocab_size": 2,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 16,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "position_biased_input": False,
    },
}
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT = [
    "Goal: bake bread at home Script: 1. mix flour and water 2. let it rise 3. heat the oven 4. bake",
    "Goal: plan an autumn party Step: hang the lights Product: string lights (party; 12.50) - warm white; 10 m",
    "Is this script a feasible way to reach the goal? Answer Yes or No. Yes No",
    "You check plans. Given a goal and a script of ordered steps, say whether following the script is feasible.",
]


@cache
def _tokenizer_json(kind: str) -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = (
        ["<pad>", "<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>"]
        if kind == "decoder"
        else ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(TEXT + [" Yes", " No", "Yes", "No"] * 50, trainer)
    if kind == "encoder":
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
        )
    text: str = tokenizer.to_str()
    return text


def tiny_tokenizer(kind: str, chat: bool = False) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of 400 tokens; ``kind`` is decoder or encoder."""
    inner = Tokenizer.from_str(_tokenizer_json(kind))
    if kind == "decoder":
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=inner, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>"
        )
    else:
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=inner,
            pad_token="[PAD]",
            unk_token="[UNK]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            mask_token="[MASK]",
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        )
    if chat:
        tokenizer.chat_template = CHATML
    return tokenizer


def tiny_checkpoint(
    folder: Path,
    architecture: str = "llama",
    chat: bool = False,
    head: str = "pretrained",
    seed: int = 0,
    **more: Any,
) -> Path:
    """Save a random two-layer checkpoint and its tokenizer to ``folder``.

    ``head`` is pretrained (as published: causal or masked language model) or classification; ``more`` are settings of
    the architecture's configuration.
    """
    torch.manual_seed(seed)
    decoder = architecture in DECODERS + OTHER_DECODERS
    tokenizer = tiny_tokenizer("decoder" if decoder else "encoder", chat)
    sizes = dict(SIZES)
    if not decoder:
        sizes.pop("num_key_value_heads")
    if architecture == "modernbert":
        sizes.update(cls_token_id=tokenizer.cls_token_id, sep_token_id=tokenizer.sep_token_id)
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id if decoder else tokenizer.cls_token_id,
        eos_token_id=tokenizer.eos_token_id if decoder else tokenizer.sep_token_id,
        **{**sizes, **LIKE_PUBLISHED.get(architecture, {}), **more},
    )
    if head == "classification":
        model = AutoModelForSequenceClassification.from_config(config)
    else:
        model = (AutoModelForCausalLM if decoder else AutoModelForMaskedLM).from_config(config)
    # Random weights of the usual scale (0.02) give logits too small to test anything by.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(5)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


STEPS = ["mix flour and water", "let it rise", "heat the oven", "bake the bread", "hang the lights", "call the guests"]


def write_scripts(path: Path, count: int, start: int = 0) -> Path:
    """``count`` script records, labels alternating but for every fifth, lengths varied; a group of its own each."""
    lines = []
    for number in range(start, start + count):
        steps = [STEPS[(number + place) % len(STEPS)] for place in range(1 + number % 5)]
        label = 1 if number % 5 == 0 else number % 2
        lines.append(json.dumps({"id": f"r{number}", "goal": f"goal number {number}", "script": steps, "label": label}))
    path.write_text("\n".join(lines) + "\n")
    return path
