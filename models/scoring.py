"""Scoring prompts with a judge: batches planned by content, so that a score depends on neither order nor restarts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from models.encoding import Encoded
from models.judge import Batch, Judge
from models.packing import Forest, Memory, Packed, pack

# Tokens in a batch, padding included. On a CPU larger batches fall out of the cache (docs/experiments.md); a GPU has
# work for all its units only from some thousands on, and where those do not fit, batches are halved.
TOKEN_BUDGET = 1024
GPU_TOKEN_BUDGET = 16384
# Behind a prefix of more tokens than this a batch holds half as many: each of them attends to the prefix as well, and
# on a CPU the table of their weights falls out of the cache (docs/experiments.md).
LONG_PREFIX = 256


def plan_batches(lengths: Sequence[int], token_budget: int = TOKEN_BUDGET) -> list[list[int]]:
    """Row numbers in batches of at most ``token_budget`` padded tokens (a longer row goes alone), longest first.

    The plan follows from the lengths alone.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batches: list[list[int]] = []
    for row in order:
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= token_budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def usual_token_budget(device: torch.device) -> int:
    """Tokens computed at once on a device where nobody says how many."""
    return TOKEN_BUDGET if device.type == "cpu" else GPU_TOKEN_BUDGET


class Scoring:
    """One set of prompts and how it is scored: in batches that follow from the prompts alone; where the judge packs
    (decoders), what all prompts begin with is computed once for all batches, and what some share once a batch.

    Args:
        token_budget: tokens computed at once, padding included; half as many behind a prefix of over LONG_PREFIX. None
            is what suits the judge's device.

    Attributes:
        batches: row numbers; every row stands in one of them.
        computed: tokens computed so far, padding included.
    """

    rescored: tuple[int, ...] = ()

    def __init__(self, judge: Judge, encoded: Sequence[Encoded], token_budget: int | None = None) -> None:
        token_budget = token_budget or usual_token_budget(judge.device)
        self.judge = judge
        self.encoded = encoded
        self._head: list[int] = []
        self._memory: Memory | None = None
        self.computed = 0
        self._too_many = math.inf
        rows = [row["input_ids"] for row in encoded]
        if judge.packs and rows:
            forest = Forest(rows)
            self._head = list(rows[0][: forest.prefix])
            self.batches = forest.batches(token_budget // 2 if forest.prefix > LONG_PREFIX else token_budget)
        else:
            self.batches = plan_batches(list(map(len, rows)), token_budget)

    @property
    def prefix(self) -> int:
        """Tokens that all prompts begin with and that are computed once."""
        return len(self._head)

    def margins(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """logit(yes) - logit(no) of a batch, [rows]. A batch that does not fit in memory is halved until it does, and
        later ones of as many tokens are halved at once."""
        tokens = sum(len(self.encoded[row]["input_ids"]) for row in rows)
        if len(rows) == 1 or tokens < self._too_many:
            try:
                return self._margins(rows)
            except RuntimeError as error:
                if len(rows) == 1 or not _out_of_memory(error):
                    raise
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            if self._too_many == math.inf:
                warnings.warn(
                    f"{len(rows)} prompts at once do not fit in memory and are halved; lower token_budget", stacklevel=2
                )
            self._too_many = tokens
        middle = len(rows) // 2
        return np.concatenate([self.margins(rows[:middle]), self.margins(rows[middle:])])

    @torch.inference_mode()
    def _margins(self, rows: Sequence[int]) -> NDArray[np.float64]:
        judge = self.judge
        judge.model.eval()
        chosen = [self.encoded[row] for row in rows]
        if judge.packs:
            batch: Batch = pack([row["input_ids"] for row in chosen], self.prefix, self._shared_memory())
        else:
            batch = judge.encoder.pad(chosen)
        logits = judge.logits(batch)
        self.computed += batch.tokens if isinstance(batch, Packed) else batch["input_ids"].numel()
        found: NDArray[np.float64] = (logits[:, 1] - logits[:, 0]).double().cpu().numpy()
        return found

    def _shared_memory(self) -> Memory | None:
        """Keys and values of the prefix, computed at the first call."""
        if self._head and self._memory is None:
            whole = replace(pack([self._head]), keep=[])
            self.judge.logits(whole)
            self.computed += whole.tokens
            self._memory = tuple(whole.keep or ())
        return self._memory

    def __iter__(self) -> Iterator[tuple[list[int], NDArray[np.float64]]]:
        """(row numbers, margins), batch by batch; every row comes exactly once."""
        for rows in self.batches:
            yield rows, self.margins(rows)


def _out_of_memory(error: RuntimeError) -> bool:
    """CUDA has an error of its own; torch's allocator for CPUs says it in words."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def margins(judge: Judge, encoded: Sequence[Encoded], token_budget: int | None = None) -> NDArray[np.float64]:
    """Margins of all rows in the order given, [rows]."""
    result = np.full(len(encoded), np.nan)
    for rows, values in Scoring(judge, encoded, token_budget):
        result[rows] = values
    return result


def probabilities(margins: NDArray[np.float64], temperature: float = 1.0) -> NDArray[np.float64]:
    """P(yes) of each margin: sigmoid(margin / temperature)."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(margins / temperature, -700, 700))))
