"""Sentence embeddings: one normalised vector a text, from any encoder checkpoint, batched by length."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel
from transformers.utils import cached_file

from models.backbone import Dtype, load_tokenizer, position_limit, quiet_load_report, resolve_dtype
from models.checkpoint import Checkpoint
from models.scoring import plan_batches, usual_token_budget

Vectors = NDArray[np.float32]
Pooling = Literal["mean", "cls", "last"]

# Texts tokenised and sorted by length at once: enough for batches without padding, few enough for any memory.
CHUNK = 8192
# What a sentence-transformers folder says of its pooling, and what we call it.
POOLING_KEYS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
}
log = logging.getLogger(__name__)


class Embedder:
    """Turns texts into vectors of length 1, so that a dot product is the cosine of two texts.

    Token states are pooled as the checkpoint's sentence-transformers files say (mean, first or last token), by their
    mean where there are none; so is the length at which texts are cut.

    Args:
        dtype: what the model computes in; pooling and vectors are always float32.
        max_length: tokens a text, special tokens included; None is the checkpoint's own limit.

    Raises:
        ValueError: weights are missing, or the files ask for a pooling that is not known here.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        dtype: Dtype = "auto",
        max_length: int | None = None,
        trust_remote_code: bool = False,
        device: torch.device | str = "cpu",
    ) -> None:
        self.name = checkpoint.identity
        self.tokenizer = load_tokenizer(checkpoint, trust_remote_code)
        self.tokenizer.padding_side = "right"
        # A pooler that is not used may be drawn anew; the caller's seed stays.
        with quiet_load_report(), torch.random.fork_rng(devices=[]):
            model, info = AutoModel.from_pretrained(
                checkpoint.path,
                **checkpoint.model_kwargs(trust_remote_code),
                dtype=resolve_dtype(dtype),
                output_loading_info=True,
            )
        _refuse_missing(checkpoint.name, info["missing_keys"])
        self.model = model.to(device).eval()
        self.device = torch.device(device)
        self.pooling = _pooling(checkpoint)
        declared = _declared(checkpoint, "sentence_bert_config.json").get("max_seq_length")
        limits = [max_length, declared if max_length is None else None, position_limit(model)]
        self.max_length = min(int(limit) for limit in (*limits, self.tokenizer.model_max_length) if limit)
        self.dimension = int(model.config.hidden_size)
        # All that fixes a vector; no path among it.
        self.facts = {
            "checkpoint": checkpoint.identity,
            "revision": checkpoint.revision,
            "dtype": str(model.dtype).removeprefix("torch."),
            "pooling": self.pooling,
            "max_length": self.max_length,
        }

    def embed(self, texts: Sequence[str], token_budget: int | None = None) -> Vectors:
        """Vectors of all texts in the order given, [texts, dimension]."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        self._fill(vectors, texts, token_budget)
        return vectors

    def embed_to(self, path: Path, texts: Sequence[str], token_budget: int | None = None) -> Vectors:
        """The same written to ``path`` (.npy) as it goes and opened as a memory map, for more texts than fit in memory.

        The file appears under its name when it is whole.
        """
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        shape = (len(texts), self.dimension)
        vectors = np.lib.format.open_memmap(draft, mode="w+", dtype=np.float32, shape=shape)
        self._fill(vectors, texts, token_budget)
        vectors.flush()
        draft.replace(path)
        loaded: Vectors = np.load(path, mmap_mode="r")
        return loaded

    def _fill(self, vectors: Vectors, texts: Sequence[str], token_budget: int | None) -> None:
        token_budget = token_budget or usual_token_budget(self.model.device)
        cut = 0
        for start in range(0, len(texts), CHUNK):
            encoded = self.tokenizer(list(texts[start : start + CHUNK]), verbose=False, truncation=False)["input_ids"]
            cut += sum(len(ids) > self.max_length for ids in encoded)
            for rows, values in self._batches(texts[start : start + CHUNK], list(map(len, encoded)), token_budget):
                vectors[np.asarray(rows) + start] = values
        if cut:
            log.warning("%s: %d of %d texts were cut at %d tokens", self.name, cut, len(texts), self.max_length)

    def _batches(
        self, texts: Sequence[str], lengths: Sequence[int], token_budget: int
    ) -> Iterator[tuple[list[int], Vectors]]:
        for rows in plan_batches([min(length, self.max_length) for length in lengths], token_budget):
            batch = self.tokenizer(
                [texts[row] for row in rows],
                padding=True,
                truncation=True,
                max_length=self.max_length,
                return_tensors="pt",
            )
            yield rows, self._vectors(dict(batch))

    @torch.inference_mode()
    def _vectors(self, batch: dict[str, torch.Tensor]) -> Vectors:
        batch = {key: tensor.to(self.device) for key, tensor in batch.items()}
        states = self.model(**batch).last_hidden_state.float()
        pooled = pool(states, batch["attention_mask"], self.pooling)
        vectors: Vectors = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
        return vectors


def pool(states: torch.Tensor, mask: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """One vector a row, [rows, hidden], of right-padded token states [rows, tokens, hidden] and mask [rows, tokens]."""
    if pooling == "cls":
        return states[:, 0]
    if pooling == "last":
        return states[torch.arange(len(states), device=states.device), mask.sum(dim=1) - 1]
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


def _pooling(checkpoint: Checkpoint) -> Pooling:
    declared = _declared(checkpoint, "1_Pooling/config.json")
    asked = [key for key, value in declared.items() if key.startswith("pooling_mode") and value is True]
    if not asked:
        return "mean"
    if len(asked) > 1 or asked[0] not in POOLING_KEYS:
        raise ValueError(
            f"{checkpoint.name}: 1_Pooling/config.json asks for {', '.join(asked)}; "
            "known are the mean, the first token and the last token, one at a time"
        )
    return POOLING_KEYS[asked[0]]


def _declared(checkpoint: Checkpoint, file: str) -> dict[str, Any]:
    """What one of the files that sentence-transformers writes beside a checkpoint says; empty where there is none."""
    found = cached_file(
        checkpoint.path,
        file,
        revision=checkpoint.revision,
        local_files_only=checkpoint.local,
        _raise_exceptions_for_missing_entries=False,
    )
    fields: dict[str, Any] = json.loads(Path(found).read_text(encoding="utf-8")) if found else {}
    return fields


def _refuse_missing(name: str, missing: Sequence[str]) -> None:
    """A pooler that a checkpoint lacks is not used here; without any other weight its vectors mean nothing."""
    lacking = sorted(key for key in missing if "pooler" not in key.split("."))
    if lacking:
        shown = ", ".join(lacking[:5])
        raise ValueError(f"{name} lacks weights ({shown}); the checkpoint is incomplete or of another architecture")
