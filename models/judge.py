"""A judge: a backbone with an adapter and a head, and the folder that carries it anywhere."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file
from torch import nn
from transformers import PreTrainedModel

from models.backbone import Dtype, Head, LoadSettings, Quantization, is_encoder, load_backbone, load_tokenizer, resolve_dtype
from models.checkpoint import Checkpoint, commit_of, resolve
from models.encoding import Encoder
from models.lora import LoraSettings, attach_lora, prepare_trainable

SPEC_FILE = "judge.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"


@dataclass(frozen=True)
class Base:
    """The backbone that an adapter was trained on; ``id`` is publishable (never a path). Sizes tell a wrong base."""

    id: str
    revision: str | None
    model_type: str
    hidden_size: int
    num_hidden_layers: int
    dtype: Dtype
    quantization: Quantization = "none"


@dataclass(frozen=True)
class JudgeSpec:
    """What ``judge.json`` holds: everything beside weights and tokenizer that a judge needs to say the same again.

    ``p_yes = sigmoid((logit_yes - logit_no) / temperature)``; the verdict is yes at ``p_yes >= threshold``.
    """

    judgment: str
    template_version: str
    label_words: tuple[str, str]
    head: Head
    base: Base
    threshold: float = 0.5
    temperature: float = 1.0
    max_length: int | None = None
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> JudgeSpec:
        """The spec of a judge's folder. Raises FileNotFoundError or ValueError in words."""
        path = folder / SPEC_FILE
        if not path.is_file():
            raise FileNotFoundError(f"{folder}: no {SPEC_FILE}; give the folder that training wrote (runs/.../adapter)")
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            data["base"] = Base(**data["base"])
            data["label_words"] = tuple(data["label_words"])
            return cls(**data)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{path}: not a judge's description ({error}); train again or restore the file") from error


class Judge:
    """A model that answers yes or no, with the encoder that reads for it.

    ``model`` is a PeftModel, or the bare model where nothing was attached (untrained, or fully fine-tuned).
    """

    def __init__(self, model: PreTrainedModel | PeftModel, encoder: Encoder, spec: JudgeSpec) -> None:
        self.model = model
        self.encoder = encoder
        self.spec = spec
        self.label_ids = encoder.label_ids(spec.label_words) if spec.head == "verbalizer" else None
        if self.label_ids is not None:
            _project_labels_only(model, self.label_ids)

    @property
    def style(self) -> str:
        """The rendering style that this judge reads: see recipes.base.Judgment.render."""
        return "instruction" if self.spec.head == "verbalizer" else "plain"

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def max_length(self) -> int:
        """Tokens that the judge takes: the spec's limit, and never more than the backbone has positions."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or 2**31
        # RoBERTa's position table starts after its pad token's index.
        if self.model.config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
            positions -= 2
        return min(self.spec.max_length or positions, positions)

    def logits(self, batch: dict[str, torch.Tensor], model: nn.Module | None = None) -> torch.Tensor:
        """Class logits (no, yes) in float32, [rows, 2].

        ``model`` stands in for the judge's own where a trainer has wrapped it.
        """
        output = (model or self.model)(**batch, **self._forward_options())
        if self.label_ids is None:
            return output.logits.float()
        return output.logits[:, -1].float()

    def _forward_options(self) -> dict[str, Any]:
        if self.encoder.bidirectional:
            return {}
        return {"use_cache": False, "logits_to_keep": 1} if self.label_ids is not None else {"use_cache": False}

    def with_spec(self, **changes: Any) -> Judge:
        """The same judge with parts of its spec changed."""
        return Judge(self.model, self.encoder, replace(self.spec, **changes))

    def save(self, folder: Path) -> None:
        """Write the judge's folder in one move: weights, tokenizer, spec; no path of this machine in any of them.

        An existing folder is replaced. Raises RuntimeError if what was written is not what is in memory.
        """
        draft = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        if isinstance(self.model, PeftModel):
            self.model.save_pretrained(str(draft), save_embedding_layers=False)
        else:
            self.model.save_pretrained(str(draft))
        (draft / "README.md").unlink(missing_ok=True)  # peft's card names local paths; training writes its own
        if isinstance(self.model, PeftModel):
            _publishable_adapter_config(draft / "adapter_config.json", self.spec.base)
            _check_saved(self.model, draft / ADAPTER_WEIGHTS)
        else:
            _publishable_config(draft / "config.json")
        self.encoder.tokenizer.save_pretrained(str(draft))
        text = json.dumps(asdict(self.spec), indent=2, sort_keys=True) + "\n"
        (draft / SPEC_FILE).write_text(text, encoding="utf-8")
        old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
        if folder.exists():
            folder.rename(old)
        draft.rename(folder)
        shutil.rmtree(old, ignore_errors=True)


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
        ValueError: the backbone is not the one that the adapter was trained on, or weights are missing.
    """
    spec = JudgeSpec.read(folder)
    as_trained = LoadSettings(dtype=spec.base.dtype, quantization=spec.base.quantization)
    settings = replace(settings or as_trained, head=spec.head)
    adapted = (folder / ADAPTER_WEIGHTS).is_file()
    base = resolve(checkpoint or _base_name(spec.base, folder)) if adapted else resolve(str(folder))
    tokenizer = load_tokenizer(replace(base, path=str(folder), local=True, revision=None))
    model: PreTrainedModel | PeftModel = load_backbone(base, settings, int(tokenizer.pad_token_id))
    bidirectional = is_encoder(model.config)
    if adapted:
        _check_base(describe_base(base, model, settings), spec.base, folder)
        model = PeftModel.from_pretrained(model, str(folder), is_trainable=True)
        prepare_trainable(model)
        set_peft_model_state_dict(model, load_file(folder / ADAPTER_WEIGHTS))  # again: the cast above came after rounding
        _check_saved(model, folder / ADAPTER_WEIGHTS)
        model.requires_grad_(False)
    return Judge(model.eval(), Encoder(tokenizer, spec.head, bidirectional), spec)


def describe_base(checkpoint: Checkpoint, model: nn.Module, settings: LoadSettings) -> Base:
    """What is recorded of a loaded backbone."""
    config: Any = model.config
    return Base(
        id=checkpoint.identity,
        revision=commit_of(config) or checkpoint.revision,
        model_type=config.model_type,
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        dtype=str(resolve_dtype(settings.dtype)).removeprefix("torch."),  # type: ignore[arg-type]
        quantization=settings.quantization,
    )


def _project_labels_only(model: nn.Module, label_ids: tuple[int, int]) -> None:
    """Make the vocabulary projection compute the label words alone, in float32.

    Two rows instead of a vocabulary; and a bfloat16 logit near 10 moves in steps of 1/16, which would leave only a
    handful of different margins. Weights are untouched, so that what is saved is an ordinary model.
    """
    projection = model.get_output_embeddings()  # type: ignore[operator]

    def project(hidden: torch.Tensor) -> torch.Tensor:
        rows = projection.weight[list(label_ids)].float()
        bias = projection.bias[list(label_ids)].float() if getattr(projection, "bias", None) is not None else None
        return nn.functional.linear(hidden.float(), rows, bias)

    projection.forward = project


def _base_name(base: Base, folder: Path) -> str:
    name = base.id if base.revision is None or "/" not in base.id else f"{base.id}@{base.revision}"
    try:
        resolve(name, fetch=False)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{folder} was trained on {base.id!r}, which is no hub id: give its folder as the checkpoint ({error})"
        ) from error
    return name


def _check_base(found: Base, wanted: Base, folder: Path) -> None:
    for name in ("model_type", "hidden_size", "num_hidden_layers"):
        here, there = getattr(found, name), getattr(wanted, name)
        if here != there:
            raise ValueError(f"{folder} was trained on {wanted.id} ({name} {there}); {found.id} has {name} {here}: wrong base")


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


def _publishable_config(path: Path) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    config.pop("_name_or_path", None)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
