"""Merging an adapter into its backbone: one ordinary checkpoint that gives the judge's logits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from peft import PeftModel

from models.backbone import LoadSettings, load_config, stored_quantization
from models.checkpoint import resolve
from models.folder import check_replaceable, written_whole
from models.judge import Judge, base_checkpoint, holds_adapter, load_judge
from models.scoring import TOKEN_BUDGET, plan_batches
from models.spec import SPEC_FILE, Base, JudgeSpec

# Merging reorders float32 sums: on models up to 135M parameters the logits moved by less than 1e-5 of their size.
TOLERANCE = 1e-4

SENTENCES = (
    "The kettle boils, and two cups stand ready on the table beside the window.",
    "Open the window before you paint the door, then let everything dry for a day.",
    "Nobody remembers where the spare key to the old garage was put last winter.",
    "A long list: paper, scissors, glue, four brushes, a ruler, and one roll of tape.",
    "First check the weather; if rain is likely, move the chairs and the lamps inside.",
    "Yes.",
    "Twelve people answered, three of them twice, and the other nine not at all.",
    "The train leaves at 7:45 from platform 2, or at 8:10 from platform 11 on Sundays.",
)


@dataclass(frozen=True)
class Probe:
    """A text to compare logits on, as models.encoding reads prompts."""

    prefix: tuple[str, ...]
    suffix: str


@dataclass(frozen=True)
class Merged:
    """How far logits moved on the probe texts, as the largest absolute difference of any.

    Attributes:
        size: the largest logit before.
        merging: adapter beside the float32 backbone, against the merged weights in float32.
        saving: adapter beside the float32 backbone, against the folder as `load_judge` loads it.
        quantized: the judge over the quantized backbone that it was trained on, against the folder; None if it was
            trained on one in floating point.
    """

    size: float
    merging: float
    saving: float
    quantized: float | None


def merge(
    adapter: Path,
    out: Path,
    checkpoint: str | None = None,
    dtype: Literal["float32", "bfloat16"] = "float32",
    onto_full_precision: bool = False,
) -> Merged:
    """Merge the adapter of a judge's folder into its backbone in float32, compare, and write the folder ``out``.

    ``out`` is a checkpoint that transformers loads by itself, and a judge that `load_judge` loads. It is written whole
    or not at all.

    Args:
        checkpoint: the backbone, where the folder cannot name it.
        dtype: of the weights that are written; the merging itself is always in float32.
        onto_full_precision: merge an adapter that was trained over a quantized backbone into the full-precision one
            all the same, although that is not the model it was trained on.

    Raises:
        FileNotFoundError: there is no judge in ``adapter``.
        ValueError: the folder holds no adapter, the backbone is quantized or not the adapter's own, or ``out`` holds
            other things.
        RuntimeError: the merged model does not give the judge's logits.
    """
    spec = JudgeSpec.read(adapter)
    if not holds_adapter(adapter):
        raise ValueError(f"{adapter} holds a whole model and no adapter; there is nothing to merge")
    check_replaceable(out, SPEC_FILE)
    if out.exists() and out.samefile(adapter):
        raise ValueError(f"{out} is the adapter's own folder; give another to write")
    _refuse_quantized(adapter, spec.base, checkpoint, onto_full_precision)
    trained = _logits(load_judge(adapter, checkpoint)) if spec.base.quantization != "none" else None
    judge = load_judge(adapter, checkpoint, LoadSettings(dtype="float32"))
    before = _logits(judge)
    merged = _merged(judge, dtype)
    size = float(before.abs().max())
    merging = _difference(before, _logits(merged))
    if not merging <= TOLERANCE * max(1.0, size):
        raise RuntimeError(
            f"the merged model's logits differ by {merging:.2g} from the adapter's (largest logit {size:.2g}); "
            f"{TOLERANCE:.0e} of that is allowed, so nothing was written"
        )
    merged.model.to(getattr(torch, dtype))
    with written_whole(out, SPEC_FILE) as draft:
        merged.write(draft)
        del judge, merged
        after = _logits(load_judge(draft))
        saving = _difference(before, after)
        if dtype == "float32" and not saving <= TOLERANCE * max(1.0, size):
            raise RuntimeError(f"the files' logits differ by {saving:.2g} from the adapter's; nothing was written")
    return Merged(size, merging, saving, None if trained is None else _difference(trained, after))


def _refuse_quantized(adapter: Path, base: Base, checkpoint: str | None, onto_full_precision: bool) -> None:
    """Raises ValueError for a backbone stored in 4 or 8 bits, or one that was quantized in training without consent."""
    found = resolve(checkpoint) if checkpoint else base_checkpoint(base, adapter)
    if stored := stored_quantization(load_config(found)):
        raise ValueError(
            f"{found.name} is stored {stored}: an adapter is not merged into it, because what the adapter learned is "
            "finer than such weights' steps; give the backbone in full precision"
        )
    if base.quantization != "none" and not onto_full_precision:
        raise ValueError(
            f"{adapter} was trained over {base.id} in {base.quantization}. Merged into such weights it would be "
            f"rounded away, and {base.id} in full precision is not the model that it was trained on, so that its "
            "answers will differ. To merge into that all the same, and see by how much, give --onto_full_precision"
        )


def _merged(judge: Judge, dtype: Literal["float32", "bfloat16"]) -> Judge:
    """The judge with its adapter merged into its (now changed) backbone."""
    assert isinstance(judge.model, PeftModel)
    model = judge.model.merge_and_unload(safe_merge=True)
    base = replace(judge.spec.base, dtype=dtype, quantization="none")
    return Judge(model, judge.encoder, replace(judge.spec, base=base))


def _probes() -> Iterator[Probe]:
    """Texts of one to eight sentences."""
    for count in range(1, len(SENTENCES) + 1):
        yield Probe((SENTENCES[-count] + "\n",), " ".join(SENTENCES[:count]))


@torch.inference_mode()
def _logits(judge: Judge) -> torch.Tensor:
    """Class logits of the probe texts that the judge has room for, [texts, 2], on the CPU."""
    encoded = [row for row in judge.encoder.encode(list(_probes())) if len(row["input_ids"]) <= judge.max_length]
    logits = torch.empty(len(encoded), 2)
    for rows in plan_batches([len(row["input_ids"]) for row in encoded], TOKEN_BUDGET):
        logits[rows] = judge.logits(judge.collate([encoded[row] for row in rows])).cpu()
    return logits


def _difference(before: torch.Tensor, after: torch.Tensor) -> float:
    return float((before - after).abs().max())
