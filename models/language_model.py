"""Loading a language model that writes: a checkpoint as it is, or with a LoRA adapter."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from peft import PeftConfig, PeftModel, PeftType
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from models.backbone import (
    LoadSettings,
    fingerprint,
    is_encoder,
    load_backbone,
    load_config,
    load_tokenizer,
    pinned,
    resolve_dtype,
)
from models.checkpoint import Checkpoint, CheckpointError, files_digest, resolve
from models.generation import Found
from models.judge import ADAPTER_CONFIG, ADAPTER_WEIGHTS, SPEC_FILE, JudgeSpec, base_checkpoint, holds_adapter
from models.local import ROWS, ROWS_ON_CPU, LocalGenerator
from models.manifest import folder_digest


@dataclass(frozen=True)
class Described:
    """A language model that has been found and whose weights are not read: what it is, and what fixes its outputs."""

    checkpoint: Checkpoint
    adapter: Path | None
    tokenizer: PreTrainedTokenizerBase
    settings: LoadSettings
    name: str
    facts: dict[str, Any]


def describe(reference: str, adapter: str | None = None, settings: LoadSettings | None = None) -> Described:
    """A checkpoint, with a LoRA adapter or without, whoever is to write with it.

    Raises ValueError or FileNotFoundError where it is no language model.
    """
    settings = replace(settings or LoadSettings(), head="verbalizer")
    folder = Path(adapter).expanduser() if adapter else None
    checkpoint = pinned(_backbone(reference, folder))
    config = load_config(checkpoint, settings.trust_remote_code)
    if is_encoder(config) or config.is_encoder_decoder:
        raise ValueError(f"{checkpoint.name} ({config.model_type}) writes no text; give a language model (a decoder)")
    tokenizer = load_tokenizer(_tokenizer_of(checkpoint, folder), settings.trust_remote_code)
    facts: dict[str, Any] = {
        "checkpoint": checkpoint.identity,
        "revision": checkpoint.revision,
        "weights": files_digest(checkpoint),
        "adapter": folder and folder_digest(folder),
        "dtype": "exact" if settings.dtype == "exact" else str(resolve_dtype(settings.dtype)).removeprefix("torch."),
        "quantization": settings.quantization,
        "template": "chat" if tokenizer.chat_template else "none",
    }
    return Described(checkpoint, folder, tokenizer, settings, _name(checkpoint, folder), facts)


def find_local(
    reference: str,
    adapter: str | None = None,
    settings: LoadSettings | None = None,
    rows: int | None = None,
    device: torch.device | str = "cpu",
) -> Found:
    """A checkpoint, with a LoRA adapter or without, as a generator; see models.generators.find_generator.

    Raises ValueError or FileNotFoundError where it is no language model, or the adapter does not belong to it.
    """
    found = describe(reference, adapter, settings)
    rows = rows or (ROWS_ON_CPU if torch.device(device).type == "cpu" else ROWS)
    facts = {**found.facts, "rows": rows}

    def load() -> LocalGenerator:
        model = load_backbone(found.checkpoint, found.settings, int(found.tokenizer.pad_token_id))
        if found.adapter is not None:
            model = _adapted(model, found.adapter, found.checkpoint)
        if not getattr(model, "is_quantized", False):
            model.to(device)
        return LocalGenerator(model, found.tokenizer, found.name, facts, rows)

    return Found(found.name, facts, load)


def _backbone(reference: str, folder: Path | None) -> Checkpoint:
    """The checkpoint to load: the one named, else the one that the adapter was trained on."""
    if folder is not None and not (folder.is_dir() and holds_adapter(folder)):
        raise FileNotFoundError(f"{folder}: no adapter; give a folder with {ADAPTER_CONFIG} and {ADAPTER_WEIGHTS}")
    if reference:
        return resolve(reference)
    if folder is None:
        raise ValueError("nobody to write: give a checkpoint, an adapter, or http://host:port/v1#model")
    if (folder / SPEC_FILE).is_file():
        return base_checkpoint(JudgeSpec.read(folder).base, folder)
    named = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8")).get("base_model_name_or_path") or ""
    try:
        return resolve(named)
    except CheckpointError as error:
        raise ValueError(f"{folder}: its backbone {named!r} is not here; give the checkpoint as well") from error


def _tokenizer_of(checkpoint: Checkpoint, folder: Path | None) -> Checkpoint:
    """Where the tokenizer comes from: the adapter's own folder if it has one, since its template may differ."""
    if folder is None or not (folder / "tokenizer_config.json").is_file():
        return checkpoint
    return Checkpoint(str(folder), str(folder.absolute()), revision=None, local=True, identity=folder.name)


def _adapted(model: PreTrainedModel, folder: Path, checkpoint: Checkpoint) -> PreTrainedModel:
    """The backbone with the adapter's layers in it. Raises ValueError where the adapter is not one for writing."""
    config = PeftConfig.from_pretrained(str(folder))
    if config.task_type not in (None, "CAUSAL_LM"):
        raise ValueError(f"{folder} was trained for {config.task_type}; only an adapter for CAUSAL_LM writes text")
    if config.peft_type != PeftType.LORA:
        raise ValueError(f"{folder} is a {config.peft_type} adapter; give a LoRA adapter")
    if (folder / SPEC_FILE).is_file():
        base = JudgeSpec.read(folder).base
        found = fingerprint(model)
        if base.fingerprint is not None and model.dtype != torch.float16 and found != base.fingerprint:
            raise ValueError(f"{folder} was trained on {base.id}; {checkpoint.identity} has other weights: wrong base")
    try:
        adapted = PeftModel.from_pretrained(model, str(folder))
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"{folder} does not fit {checkpoint.identity} ({error}); give its own backbone") from error
    writer = adapted.get_base_model()
    assert isinstance(writer, PreTrainedModel)
    return writer


def _name(checkpoint: Checkpoint, folder: Path | None) -> str:
    own = checkpoint.identity.rsplit("/", 1)[-1]
    if folder is None:
        return own
    trained = folder.absolute()
    return f"{own}+{trained.parent.name if trained.name == 'adapter' else trained.name}"
