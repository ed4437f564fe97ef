"""A judge: a backbone with an adapter and a head, and the folder that carries it anywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from peft import PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from models.attention import uses_packed_attention
from models.backbone import (
    LoadSettings,
    fingerprint,
    head_modules,
    is_encoder,
    load_backbone,
    load_config,
    load_tokenizer,
    pinned,
    position_limit,
    refuse_random_head,
    resolve_dtype,
)
from models.checkpoint import PACKAGED, Checkpoint, resolve
from models.encoding import Encoded, Encoder
from models.folder import written_whole
from models.lora import LoraSettings, attach_lora, float_heads, prepare_trainable
from models.packing import Packed, pack
from models.spec import SPEC_FILE, Base, JudgeSpec

__all__ = ["ADAPTER_WEIGHTS", "SPEC_FILE", "Base", "Judge", "JudgeSpec", "load_judge", "new_judge"]

ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
Batch = Packed | dict[str, torch.Tensor]


class Judge:
    """A model that answers yes or no, with the encoder that reads for it.

    ``model`` is a PeftModel, or the bare model where nothing was attached (untrained, or fully fine-tuned).
    """

    def __init__(self, model: PreTrainedModel | PeftModel, encoder: Encoder, spec: JudgeSpec) -> None:
        self.model = model
        self.encoder = encoder
        self.label_ids = encoder.label_ids(spec.label_words) if spec.head == "verbalizer" else None
        if spec.label_ids is not None and spec.label_ids != self.label_ids:
            raise ValueError(
                f"the label words {spec.label_words} are tokens {self.label_ids} here, but the judge was taught tokens "
                f"{spec.label_ids}: {SPEC_FILE} or the tokenizer was altered; restore the folder"
            )
        self.spec = replace(spec, label_ids=self.label_ids)
        if self.label_ids is not None:
            _project_labels_only(model, self.label_ids)
        elif self.packs:
            _pool_packed_rows(model.get_base_model() if isinstance(model, PeftModel) else model)

    @property
    def style(self) -> Literal["plain", "instruction"]:
        """The rendering style that this judge reads: see recipes.base.Judgment.render."""
        return "instruction" if self.spec.head == "verbalizer" else "plain"

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def max_length(self) -> int:
        """Tokens that the judge takes: the spec's limit, and never more than the backbone has positions."""
        positions = position_limit(self.model) or 2**31
        return min(self.spec.max_length or positions, positions)

    @property
    def packs(self) -> bool:
        """Whether batches are packed, so that what their rows share is computed once: see models.packing."""
        return uses_packed_attention(self.model)

    def collate(self, rows: Sequence[Encoded]) -> Batch:
        """A batch of encoded prompts on the CPU: packed where the backbone can, else padded."""
        return pack([row["input_ids"] for row in rows]) if self.packs else self.encoder.pad(rows)

    def logits(self, batch: Batch, model: nn.Module | None = None) -> torch.Tensor:
        """Class logits (no, yes) in float32, [rows, 2], on the judge's device.

        ``model`` stands in for the judge's own where a trainer has wrapped it.
        """
        model = model or self.model
        if isinstance(batch, Packed):
            batch = batch.to(self.device)
            keep = {} if self.label_ids is None else {"logits_to_keep": batch.ends}
            packed: torch.Tensor = model(**batch.model_inputs(), **keep).logits
            return packed.float() if self.label_ids is None else packed[0].float()
        batch = {key: tensor.to(self.device) for key, tensor in batch.items()}
        logits: torch.Tensor = model(**batch, **self._forward_options()).logits
        return logits.float() if self.label_ids is None else logits[:, -1].float()

    def _forward_options(self) -> dict[str, Any]:
        if self.encoder.bidirectional:
            return {}
        return {"use_cache": False, "logits_to_keep": 1} if self.label_ids is not None else {"use_cache": False}

    def with_spec(self, **changes: Any) -> Judge:
        """The same judge with parts of its spec changed."""
        return Judge(self.model, self.encoder, replace(self.spec, **changes))

    def save(self, folder: Path) -> None:
        """Write the judge's folder in one move: weights, tokenizer, spec; no path of this machine in any of them.

        An earlier judge there is replaced once the new one is whole; after any error the folder is as it was.

        Raises:
            ValueError: the folder holds other things, or a quantized backbone has no adapter to save.
            RuntimeError: what was written is not what is in memory.
        """
        with written_whole(folder, SPEC_FILE) as draft:
            self.write(draft)

    def write(self, folder: Path) -> None:
        """The files of `save`, into a folder that is there and empty."""
        if isinstance(self.model, PeftModel):
            self.model.save_pretrained(str(folder), save_embedding_layers=False)
            (folder / "README.md").unlink(missing_ok=True)  # peft's card names local paths; training writes its own
            _publishable_adapter_config(folder / ADAPTER_CONFIG, self.spec.base)
            _check_saved(self.model, folder / ADAPTER_WEIGHTS)
        elif getattr(self.model, "is_quantized", False):
            raise ValueError("a quantized backbone without an adapter holds nothing that was trained; nothing to save")
        else:
            self.model.save_pretrained(str(folder))
            _rewrite(folder / "config.json", without=("_name_or_path",))
        tokenizer = self.encoder.tokenizer
        tokenizer.save_pretrained(str(folder))
        local = ("name_or_path", "is_local", "local_files_only")
        _rewrite(folder / "tokenizer_config.json", without=local, padding_side=tokenizer.padding_side)
        self.spec.write(folder)


def new_judge(
    checkpoint: Checkpoint,
    judgment: str,
    template_version: str,
    label_words: tuple[str, str],
    settings: LoadSettings,
    lora: LoraSettings | None = None,
    max_length: int | None = None,
    gradient_checkpointing: bool = False,
) -> Judge:
    """An untrained judge: the backbone, its head, and fresh adapters if ``lora`` is given.

    New weights come from torch's current seed: seed before calling.
    """
    checkpoint = pinned(checkpoint)
    tokenizer = load_tokenizer(checkpoint, settings.trust_remote_code)
    model: PreTrainedModel | PeftModel = load_backbone(checkpoint, settings, int(tokenizer.pad_token_id))
    base = describe_base(checkpoint, model, settings)
    bidirectional = is_encoder(model.config)
    if lora is not None:
        model = attach_lora(model, settings.head, lora, gradient_checkpointing)
    spec = JudgeSpec(judgment, template_version, label_words, settings.head, base, max_length=max_length)
    return Judge(model.eval(), Encoder(tokenizer, settings.head, bidirectional), spec)


def load_judge(folder: Path, checkpoint: str | None = None, settings: LoadSettings | None = None) -> Judge:
    """The judge of a folder that ``Judge.save`` wrote.

    Args:
        checkpoint: the backbone, where the folder cannot name it (it was trained on a local folder).
        settings: precision and the like; the head is the folder's own. Left out, precision and quantization are
            those of training.

    Raises:
        FileNotFoundError: there is no judge in the folder.
        ValueError: the backbone is not the one that the adapter was trained on, or a file is missing or altered.
    """
    spec = JudgeSpec.read(folder)
    as_trained = LoadSettings(dtype=spec.base.dtype, quantization=spec.base.quantization)
    settings = replace(settings or as_trained, head=spec.head)
    own = Checkpoint(str(folder), str(folder.absolute()), revision=None, local=True, identity=folder.name)
    tokenizer = load_tokenizer(own, settings.trust_remote_code)
    pad_token_id = int(tokenizer.pad_token_id)
    model: PreTrainedModel | PeftModel
    if holds_adapter(folder):
        model = _adapted(folder, spec, checkpoint, settings, pad_token_id)
    else:
        model = load_backbone(resolve(own.path), settings, pad_token_id, trained_head=True)
        if spec.head == "classification":
            float_heads(model)
    model.requires_grad_(False)
    return Judge(model.eval(), Encoder(tokenizer, spec.head, is_encoder(model.config)), spec)


def holds_adapter(folder: Path) -> bool:
    """Whether a judge's folder holds an adapter rather than a whole model. Raises ValueError for half an adapter."""
    there = {name: (folder / name).is_file() for name in (ADAPTER_WEIGHTS, ADAPTER_CONFIG)}
    if len(set(there.values())) == 2:
        missing = next(name for name, found in there.items() if not found)
        raise ValueError(f"{folder}: {missing} is missing; copy the whole folder again")
    return there[ADAPTER_WEIGHTS]


def _adapted(
    folder: Path, spec: JudgeSpec, checkpoint: str | None, settings: LoadSettings, pad_token_id: int
) -> PeftModel:
    """The backbone with the folder's adapter, every tensor bit for bit that of the file."""
    weights = _adapter_weights(folder)
    base = pinned(resolve(checkpoint) if checkpoint else base_checkpoint(spec.base, folder))
    config = load_config(base, settings.trust_remote_code)
    for name in ("model_type", "hidden_size", "num_hidden_layers"):
        here, there = getattr(config, name, None), getattr(spec.base, name)
        if here != there:
            was = f"{folder} was trained on {spec.base.id} ({name} {there})"
            raise ValueError(f"{was}; {base.identity} has {name} {here}: wrong base")
    model = load_backbone(base, settings, pad_token_id)
    found = describe_base(base, model, settings).fingerprint
    if None not in (found, spec.base.fingerprint) and found != spec.base.fingerprint:
        was = f"{folder} was trained on {spec.base.id}"
        raise ValueError(f"{was}; {base.identity} has the same sizes but other weights: wrong base")
    heads = head_modules(model) if spec.head == "classification" else []
    if absent := [name for name in heads if not any(f".{name}." in key for key in weights)]:
        refuse_random_head(folder, absent)
    try:
        adapted = PeftModel.from_pretrained(model, str(folder), is_trainable=True)
        prepare_trainable(adapted)
        set_peft_model_state_dict(adapted, weights)  # again: the cast above came after rounding
        _check_saved(adapted, folder / ADAPTER_WEIGHTS)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"{folder}: the adapter's files do not belong together or were altered ({error}); copy the folder again"
        ) from error
    return adapted


def _adapter_weights(folder: Path) -> dict[str, torch.Tensor]:
    try:
        json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        weights: dict[str, torch.Tensor] = load_file(folder / ADAPTER_WEIGHTS)
    except (SafetensorError, ValueError) as error:
        name = ADAPTER_WEIGHTS if isinstance(error, SafetensorError) else ADAPTER_CONFIG
        raise ValueError(f"{folder / name}: cut short or altered ({error}); copy it again") from error
    return weights


def describe_base(checkpoint: Checkpoint, model: PreTrainedModel, settings: LoadSettings) -> Base:
    """What is recorded of a loaded backbone, before anything is attached to it."""
    config: Any = model.config
    dtype = resolve_dtype(settings.dtype)
    return Base(
        id=checkpoint.identity,
        revision=checkpoint.revision,
        model_type=config.model_type,
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        dtype=str(dtype).removeprefix("torch."),  # type: ignore[arg-type]
        quantization=settings.quantization,
        fingerprint=None if dtype == torch.float16 else fingerprint(model),  # float16 rounds otherwise
    )


def _project_labels_only(model: nn.Module, label_ids: tuple[int, int]) -> None:
    """Make the vocabulary projection compute the label words alone, in float32.

    Two rows instead of a vocabulary; and a bfloat16 logit near 10 moves in steps of 1/16, which would leave only a
    handful of different margins. Weights are untouched, so that what is saved is an ordinary model.
    """
    projection = model.get_output_embeddings()  # type: ignore[operator]
    if not projection.weight.is_floating_point():
        raise RuntimeError("the projection to the vocabulary was quantized; the verbalizer head needs it as it is")

    def project(hidden: torch.Tensor) -> torch.Tensor:
        rows = projection.weight[list(label_ids)].float()
        bias = projection.bias[list(label_ids)].float() if getattr(projection, "bias", None) is not None else None
        return nn.functional.linear(hidden.float(), rows, bias)

    projection.forward = project


def _pool_packed_rows(model: PreTrainedModel) -> None:
    """Make a classification head judge each row of a packed batch, where transformers' own pools one token of it."""
    forward = model.forward

    def pooled(*args: Any, packed: Packed | None = None, **kwargs: Any) -> Any:
        if packed is None:
            return forward(*args, **kwargs)
        hidden = model.base_model(**packed.model_inputs()).last_hidden_state[0, packed.ends]
        return SequenceClassifierOutput(logits=model.score(hidden))

    model.forward = pooled


def base_checkpoint(base: Base, folder: Path) -> Checkpoint:
    """The backbone of the judge in ``folder`` by its recorded name: a packaged model or a hub id, never a local folder.

    Raises ValueError where it was trained on a local folder: that some folder here bears its name proves nothing.
    """
    if base.id in PACKAGED:
        return resolve(base.id)
    organisation, slash, own = base.id.partition("/")
    if slash and "/" not in own and not organisation.startswith((".", "~")) and organisation and own:
        return Checkpoint(base.id, base.id, revision=base.revision, local=False, identity=base.id)
    raise ValueError(
        f"{folder} was trained on a local folder called {base.id.removeprefix('./')!r}; "
        "give that folder as the checkpoint"
    )


def _check_saved(model: PeftModel, path: Path) -> None:
    """The file holds each tensor of the adapter in memory, bit for bit, none empty (accelerate#3508, peft#2450)."""
    saved, live = load_file(path), get_peft_model_state_dict(model, save_embedding_layers=False)
    if saved.keys() != live.keys():
        odd = sorted(saved.keys() ^ live.keys())
        raise RuntimeError(f"{path}: tensors differ from the model's: {', '.join(odd[:5])}")
    for name, tensor in live.items():
        if tensor.numel() == 0 or not torch.equal(saved[name], tensor.detach().cpu()):
            raise RuntimeError(f"{path}: tensor {name} is empty or not what the model holds")


def _publishable_adapter_config(path: Path, base: Base) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = base.id
    config["revision"] = base.revision
    for key in ("target_modules", "modules_to_save"):  # sets, in an order that changes from run to run
        if isinstance(config.get(key), list):
            config[key] = sorted(set(config[key]))
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _rewrite(path: Path, without: tuple[str, ...], **more: Any) -> None:
    """Take keys that say something of this machine out of a JSON file, and add others."""
    config = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: value for key, value in config.items() if key not in without}
    path.write_text(json.dumps({**kept, **more}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
