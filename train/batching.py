"""Encoded records as a dataset, and the order in which training sees them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import cycle, islice, pairwise
from typing import Any

import torch
from torch.utils.data import Dataset, Sampler

from models.encoding import Encoded
from models.judge import Judge

BLOCK = 16  # updates whose records are sorted by length together


class EncodedDataset(Dataset[dict[str, Any]]):
    """Encoded prompts with their labels (0 or 1) and row numbers."""

    def __init__(self, encoded: Sequence[Encoded], labels: Sequence[int]) -> None:
        self.encoded = encoded
        self.labels = labels

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {"encoded": self.encoded[row], "labels": self.labels[row], "row": row}

    @property
    def lengths(self) -> list[int]:
        """Tokens of each record."""
        return [len(encoded["input_ids"]) for encoded in self.encoded]


class Collator:
    """Items of an EncodedDataset to a batch: ``labels`` [rows], ``row`` [rows], and what the judge reads, ``batch``."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def __call__(self, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "labels": torch.tensor([item["labels"] for item in items], dtype=torch.long),
            "row": torch.tensor([item["row"] for item in items], dtype=torch.long),
            "batch": self.judge.collate([item["encoded"] for item in items]),
        }


class LengthBlockSampler(Sampler[int]):
    """Rows in shuffled order, of similar length within an update, the longest update of all first.

    Every epoch is shuffled anew; blocks of ``BLOCK`` updates are sorted by length and cut into updates, and the updates
    are shuffled. Order follows from (seed, epoch, lengths, batch_size, alike) alone: neither the number of processes
    nor how a batch is cut nor a restart changes it. The longest comes first, so that a batch that does not fit in
    memory fails in the first minute. Where the rows do not fill the last update, rows of the epoch come a second time:
    every update is of ``batch_size`` rows, which can be shared out to any number of processes.

    Args:
        batch_size: records an update, over all processes.
        alike: runs of rows that share something, most with their neighbours; rows that stand in none go alone.
        together: how many rows of a run go into one update. Where a run is cut changes from epoch to epoch.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        seed: int,
        alike: Sequence[Sequence[int]] = (),
        together: int = 1,
    ) -> None:
        self.lengths = list(lengths)
        self.batch_size = batch_size
        self.seed = seed
        alone = set(range(len(self.lengths))).difference(*alike)
        self.runs = [*alike, *([row] for row in sorted(alone))]
        self.together = together
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Which epoch's order comes next."""
        self.epoch = epoch

    def __len__(self) -> int:
        return math.ceil(len(self.lengths) / self.batch_size) * self.batch_size

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        pieces = self._pieces(generator)
        order: list[int] = torch.randperm(len(pieces), generator=generator).tolist()
        rows: list[int] = []
        block: list[list[int]] = []
        held = 0
        for place in order:
            block.append(pieces[place])
            held += len(pieces[place])
            if held >= BLOCK * self.batch_size or place == order[-1]:
                block.sort(key=lambda piece: -max(self.lengths[row] for row in piece))
                rows += [row for piece in block for row in piece]
                block, held = [], 0
        rows = list(islice(cycle(rows), len(self)))
        updates = [rows[cut : cut + self.batch_size] for cut in range(0, len(rows), self.batch_size)]
        shuffled = [updates[place] for place in torch.randperm(len(updates), generator=generator).tolist()]
        longest = max(range(len(shuffled)), key=lambda place: sum(self.lengths[row] for row in shuffled[place]))
        shuffled.insert(0, shuffled.pop(longest))
        for update in shuffled:
            yield from update

    def _pieces(self, generator: torch.Generator) -> list[list[int]]:
        """Rows that go into one update together: each run cut after every ``together`` rows, from a drawn place on."""
        pieces: list[list[int]] = []
        for run in self.runs:
            first = int(torch.randint(self.together, (1,), generator=generator)) if self.together > 1 else 0
            cuts = [0, *range(first or self.together, len(run), self.together), len(run)]
            pieces += [list(run[low:high]) for low, high in pairwise(cuts)]
        return pieces
