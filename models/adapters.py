"""Several judges over one backbone in memory: each adapter with its own head, switched before it judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from models.backbone import LoadSettings, load_tokenizer
from models.checkpoint import Checkpoint
from models.encoding import Encoder
from models.judge import ADAPTER_WEIGHTS, Batch, Judge, JudgeSpec, holds_adapter, load_judge
from models.lora import prepare_trainable


class SharingJudge(Judge):
    """A judge whose backbone holds the adapters of others too. Such judges are for judging, one at a time: they share
    one model, whose active adapter changes with who is asked."""

    def __init__(self, model: PeftModel, encoder: Encoder, spec: JudgeSpec, adapter: str) -> None:
        super().__init__(model, encoder, spec)
        self.adapter = adapter

    def logits(self, batch: Batch, model: nn.Module | None = None) -> torch.Tensor:
        if self.model.active_adapter != self.adapter:
            self.model.set_adapter(self.adapter, inference_mode=True)
        return super().logits(batch, model)

    def with_spec(self, **changes: Any) -> Judge:
        return SharingJudge(self.model, self.encoder, replace(self.spec, **changes), self.adapter)

    def write(self, folder: Path) -> None:
        """Raises RuntimeError: its folder is already there."""
        raise RuntimeError("a judge that shares its backbone is not saved; load it alone with load_judge")


def load_judges(
    folders: Sequence[Path], checkpoint: str | None = None, settings: Sequence[LoadSettings | None] | None = None
) -> list[Judge]:
    """The judges of several folders, in their order. A backbone is loaded once for all adapters that were trained over
    it with the same kind of head; whole models are loaded each for itself.

    Args:
        checkpoint: as for `load_judge`, for all of them.
        settings: as for `load_judge`, for each of them.

    Raises FileNotFoundError or ValueError as `load_judge` does.
    """
    specs = [JudgeSpec.read(folder) for folder in folders]
    wanted = settings or [None] * len(folders)
    keys = [
        _shared(spec, checkpoint, own) if holds_adapter(folder) else (number,)
        for number, (folder, spec, own) in enumerate(zip(folders, specs, wanted, strict=True))
    ]
    judges: list[Judge] = []
    for number, (folder, spec, key, own) in enumerate(zip(folders, specs, keys, wanted, strict=True)):
        if keys.index(key) < number:
            judges.append(_beside(judges[keys.index(key)], folder, spec, f"adapter{number}", own))
            continue
        judge = load_judge(folder, checkpoint, own)
        if keys.count(key) > 1:
            judge = SharingJudge(judge.model, judge.encoder, judge.spec, judge.model.active_adapter)
        judges.append(judge)
    return judges


def _shared(spec: JudgeSpec, checkpoint: str | None, settings: LoadSettings | None) -> tuple[Any, ...]:
    """What two adapters must have in common to stand over one backbone."""
    base = spec.base
    own = checkpoint or base.fingerprint or (base.id, base.revision)
    sizes = (base.model_type, base.hidden_size, base.num_hidden_layers)
    kind = (settings.dtype, settings.quantization) if settings else (base.dtype, base.quantization)
    words = (spec.label_words, spec.label_ids) if spec.head == "verbalizer" else None
    return own, base.fingerprint, sizes, kind, spec.head, words


def _beside(first: Judge, folder: Path, spec: JudgeSpec, name: str, settings: LoadSettings | None) -> SharingJudge:
    """The folder's judge over the backbone of ``first``, every tensor bit for bit that of the file."""
    remote = settings.trust_remote_code if settings else False
    own = Checkpoint(str(folder), str(folder.absolute()), revision=None, local=True, identity=folder.name)
    model: PeftModel = first.model
    try:
        weights = load_file(folder / ADAPTER_WEIGHTS)
        model.load_adapter(str(folder), name, is_trainable=True, torch_device=str(first.device))
        prepare_trainable(model)
        set_peft_model_state_dict(model, weights, adapter_name=name)  # again: the cast above came after rounding
    except (SafetensorError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{folder}: the adapter cannot be loaded ({error}); copy the folder again") from error
    live = get_peft_model_state_dict(model, adapter_name=name, save_embedding_layers=False)
    if odd := sorted(key for key in live.keys() | weights if not _same(live.get(key), weights.get(key))):
        raise ValueError(f"{folder}: {', '.join(odd[:5])}: not what the model takes; copy the folder again")
    model.requires_grad_(False)
    encoder = Encoder(load_tokenizer(own, remote), spec.head, first.encoder.bidirectional)
    return SharingJudge(model.eval(), encoder, spec, name)


def _same(live: torch.Tensor | None, saved: torch.Tensor | None) -> bool:
    return live is not None and saved is not None and torch.equal(live.detach().cpu(), saved)
