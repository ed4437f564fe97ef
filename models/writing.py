"""The decoding loop: rows take slots as they fall free, and leave when they are finished."""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from transformers import PreTrainedModel

from models.decoding import KeyValues, Layer, next_logits
from models.generation import Chat, SamplingSettings

READ_TOKENS = 2048  # prompt tokens that are read in one pass


class Guide(Protocol):
    """What narrows the choice of tokens; see models.guiding."""

    def narrow(self, logits: torch.Tensor) -> None: ...
    def took(self, token: int) -> None: ...


@dataclass
class Row:
    """A text on its way: its own tokens behind the beginning of that number, and those written so far. A guide allows
    some tokens only."""

    number: int
    own: list[int]
    dice: random.Random | None
    beginning: int = 0
    written: list[int] = field(default_factory=list)
    guide: Guide | None = None

    def take(self, token: int) -> None:
        """Go on with a token."""
        self.written.append(token)
        if self.guide is not None:
            self.guide.took(token)

    @property
    def held(self) -> int:
        """Tokens whose keys and values are in its slot: all but the last one written."""
        return len(self.own) + len(self.written) - 1


class Writing:
    """Texts that are written side by side in the slots of one store, and those that wait for a slot.

    Which rows meet in a forward pass follows from the rows and the settings alone.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        beginnings: Sequence[Sequence[Layer]],
        rows: Sequence[Row],
        slots: int,
        settings: SamplingSettings,
    ) -> None:
        self.model, self.settings = model, settings
        capacity = max(len(row.own) for row in rows) + settings.max_tokens
        self.store = KeyValues(beginnings, min(len(rows), slots), capacity)
        self.waiting = deque(rows)
        self.active: list[Row] = []

    def run(self, finished: Callable[[Row], bool]) -> Iterator[Row]:
        """Every row as soon as it is ``finished``, which is asked after each token."""
        while self.waiting or self.active:
            free = self.store.slots - len(self.active)
            # A pass over new prompts keeps the others waiting: it is made for a quarter of the slots at once.
            if self.waiting and (not self.active or 4 * free >= self.store.slots):
                moved = self._read(free)
            else:
                moved = self._write()
            for row in [row for row in moved if finished(row)]:
                self._release(row)
                yield row

    def _read(self, free: int) -> list[Row]:
        """Read the next prompts into free slots, as many as go into one pass."""
        rows: list[Row] = []
        tokens = 0
        while self.waiting and len(rows) < free and (not rows or tokens + len(self.waiting[0].own) <= READ_TOKENS):
            rows.append(self.waiting.popleft())
            tokens += len(rows[-1].own)
        places = range(len(self.active), len(self.active) + len(rows))
        self.active += rows
        self.store.reading([(slot, len(row.own), row.beginning) for slot, row in zip(places, rows, strict=True)])
        self._add(rows, [row.own for row in rows], [self.store.shared(row.beginning) for row in rows])
        return rows

    def _write(self) -> list[Row]:
        """Write one token more of every active row."""
        held = [row.held for row in self.active]
        starts = [self.store.shared(row.beginning) + count for row, count in zip(self.active, held, strict=True)]
        self.store.writing(torch.tensor(held, device=self.model.device))
        self._add(self.active, [row.written[-1:] for row in self.active], starts)
        return self.active

    def _add(self, rows: Sequence[Row], new: Sequence[Sequence[int]], starts: Sequence[int]) -> None:
        tokens = choose(next_logits(self.model, self.store, new, starts), rows, self.settings)
        for row, token in zip(rows, tokens, strict=True):
            row.take(token)

    def _release(self, row: Row) -> None:
        """Give a slot back; the last active row takes it over, so that the active ones stay the first."""
        place, last = self.active.index(row), self.active[-1]
        if last is not row:
            self.store.move(len(self.active) - 1, place, last.held)
            self.active[place] = last
        self.active.pop()


@torch.inference_mode()
def choose(logits: torch.Tensor, rows: Sequence[Row], settings: SamplingSettings) -> list[int]:
    """The next token of each row, from ``logits`` [rows, vocabulary], in which what a row's guide rules out is struck
    out: the likeliest, or drawn with the row's dice."""
    for own, row in zip(logits, rows, strict=True):
        if row.guide is not None:
            row.guide.narrow(own)
    if settings.temperature == 0:
        likeliest: list[int] = logits.argmax(dim=-1).tolist()
        return likeliest
    p, order = (logits.double() / settings.temperature).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    kept = p.cumsum(dim=-1) - p < settings.top_p
    reached = (p * kept).cumsum(dim=-1)
    throws = torch.tensor([[row.dice.random()] for row in rows if row.dice], dtype=p.dtype, device=p.device)
    place = torch.searchsorted(reached, throws * reached[:, -1:], right=True)
    place = torch.minimum(place, kept.sum(dim=-1, keepdim=True) - 1)
    drawn: list[int] = order.gather(1, place)[:, 0].tolist()
    return drawn


def dice_of(chat: Chat, settings: SamplingSettings) -> random.Random | None:
    """Random numbers that follow from the seed, the turns and the sample's number alone; None where none are drawn."""
    if settings.temperature == 0:
        return None
    turns = [f"{message.role}\x00{message.content}" for message in chat.messages]
    return random.Random(hashlib.sha256("\x01".join([str(settings.seed), str(chat.sample), *turns]).encode()).digest())
