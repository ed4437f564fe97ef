"""Conversations over one model, side by side: what is kept of each turn is not computed again in the next.

Each conversation has a slot that holds the keys and values of its tokens. A turn gives the whole text so far; as much
of it as the slot holds already stays, the rest is read, and the answer is written, one token of every conversation a
pass. A turn so costs its new tokens, and its answer is what reading everything anew would give: the text is compared
token by token, so that a template that writes history in other words merely costs what it changed.

Prompts are read slot by slot, and every pass of writing has all slots, busy or not: on a CPU the numbers that a
conversation is made of do not depend, to the last bit, on which others are under way. (On other devices attention is
computed for all rows at once, and the last bits of a row's numbers may depend on the longest row.)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional
from transformers import PreTrainedModel

from models.decoding import KeyValues, next_logits
from models.generation import SamplingSettings
from models.writing import Guide, Row, choose

READ_TOKENS = 512  # tokens of a prompt that are read in one pass
FIRST_ROOM = 2048  # tokens that a slot takes at first; it doubles when they are used up


@dataclass
class Turn:
    """A conversation's next turn: the whole text so far as tokens, the dice for drawn answers, and a guide that allows
    some tokens only."""

    slot: int
    ids: Sequence[int]
    dice: random.Random | None = None
    guide: Guide | None = None


@dataclass
class Answer:
    """What was written in a turn: tokens, the end token among them, and how many tokens of the prompt were read."""

    written: list[int] = field(default_factory=list)
    computed: int = 0


class Conversations:
    """``slots`` conversations over a model that attends over slots (models.decoding.use_slots).

    Args:
        keep: whether turns build on what earlier ones left; off, every turn reads its whole text, for comparison.
    """

    def __init__(self, model: PreTrainedModel, slots: int, keep: bool = True) -> None:
        self.model, self.keep = model, keep
        self.store = _Slots(slots, FIRST_ROOM)
        self.held: list[list[int]] = [[] for _ in range(slots)]
        self.beginning: list[int] = []

    def begin_with(self, ids: Sequence[int]) -> None:
        """Read what all conversations begin with, once for all slots."""
        if self.keep and ids:
            self._read(0, list(ids), 0)
            self.beginning = list(ids)
            self.held = [list(ids) for _ in self.held]
            for slot in range(1, self.store.slots):
                self.store.move(0, slot, len(ids))

    def restart(self, slot: int) -> None:
        """The slot's next turn begins another conversation; of the last one, only the common beginning is kept, so that
        what is read for the next does not depend on it."""
        kept = _shared(self.held[slot], self.beginning, len(self.beginning))
        self.held[slot] = self.beginning[:kept]

    @torch.inference_mode()
    def answer(
        self, turns: Sequence[Turn], settings: SamplingSettings, finished: Callable[[list[int]], bool]
    ) -> list[Answer]:
        """The answers to one turn each of several conversations, in order.

        Args:
            finished: whether tokens written so far are a whole answer; ``settings.max_tokens`` ends one at the latest.
        """
        answers = [Answer() for _ in turns]
        rows = [Row(turn.slot, list(turn.ids), turn.dice, guide=turn.guide) for turn in turns]
        for turn, row, answer in zip(turns, rows, answers, strict=True):
            kept = self._kept(turn)
            answer.computed = len(turn.ids) - kept
            row.take(*choose(self._read(turn.slot, row.own, kept), [row], settings))
        busy = [row for row in rows if not self._done(row, settings, finished)]
        while busy:
            logits = self._write(busy)
            for row in busy:
                row.take(*choose(logits[row.number : row.number + 1], [row], settings))
            busy = [row for row in busy if not self._done(row, settings, finished)]
        for row, answer in zip(rows, answers, strict=True):
            answer.written = row.written
            self.held[row.number] = [*row.own, *row.written[:-1]]
        return answers

    def _kept(self, turn: Turn) -> int:
        """Tokens of a turn that its slot holds; the last one is always read, as the answer follows from it."""
        if not self.keep:
            return 0
        return _shared(self.held[turn.slot], turn.ids, len(turn.ids) - 1)

    def _done(self, row: Row, settings: SamplingSettings, finished: Callable[[list[int]], bool]) -> bool:
        return len(row.written) >= settings.max_tokens or finished(row.written)

    @torch.inference_mode()
    def _read(self, slot: int, ids: list[int], start: int) -> torch.Tensor:
        """Read tokens from ``start`` on into a slot; the logits behind the last, [1, vocabulary]."""
        self.store.make_room(len(ids) + 1)
        while True:
            end = min(start + READ_TOKENS, len(ids))
            self.store.extending(slot, start)
            logits = next_logits(self.model, self.store, [ids[start:end]], [start])
            if end == len(ids):
                return logits
            start = end

    def _write(self, busy: Sequence[Row]) -> torch.Tensor:
        """One token more of every busy conversation, [slots, vocabulary]; what idle slots get is overwritten later."""
        lengths = [len(held) for held in self.held]
        tokens = [[0] for _ in self.held]
        for row in busy:
            lengths[row.number] = row.held
            tokens[row.number] = row.written[-1:]
        self.store.make_room(max(lengths) + 1)
        self.store.writing(torch.tensor(lengths, device=self.model.device))
        self.store.busy = [(row.number, row.held + 1) for row in busy]
        return next_logits(self.model, self.store, tokens, lengths)


def _shared(one: Sequence[int], other: Sequence[int], most: int) -> int:
    """How many tokens two texts begin with alike, ``most`` at most."""
    most = min(len(one), len(other), most)
    return next((place for place in range(most) if one[place] != other[place]), most)


class _Slots(KeyValues):
    """Slots that can be read into where something stands already, and that grow."""

    def __init__(self, slots: int, capacity: int) -> None:
        super().__init__([], slots, capacity)
        self.extended: tuple[int, int] | None = None
        self.busy: list[tuple[int, int]] = []  # slots that a pass of writing is about, and the tokens each then holds

    def extending(self, slot: int, start: int) -> None:
        """The next pass reads tokens into one slot behind the ``start`` tokens that it holds."""
        self.reading()
        self.extended = slot, start

    def writing(self, lengths: torch.Tensor) -> None:
        super().writing(lengths)
        self.extended = None

    def attend(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float,
        window: int | None,
    ) -> torch.Tensor:
        if self.extended is None:
            return super().attend(module, query, key, value, scaling, window)
        number: Any = module.layer_idx
        if number == len(self.layers):
            self.layers.append((self._room(key), self._room(value)))
        slot, start = self.extended
        end = start + query.shape[2]
        for kept, fresh in zip(self.layers[number], (key, value), strict=True):
            kept[slot, :, start:end] = fresh[0]
        keys, values = (kept[slot : slot + 1, :, :end] for kept in self.layers[number])
        return self._attend_behind(module, query, keys, values, scaling, window)

    def _write(
        self,
        number: int,
        new: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        scaling: float,
        window: int | None,
    ) -> torch.Tensor:
        """On a CPU each busy row by itself, over its own tokens only: exact whatever the others are, and no slower."""
        query, key, value = new
        if query.device.type != "cpu":
            return super()._write(number, new, scaling, window)
        rows, heads, size = len(query), key.shape[1], query.shape[3]
        keys, values = self.layers[number]
        asked = query.view(rows, heads, -1, size)  # query heads that share a key head side by side
        found = torch.zeros_like(asked)
        for row, length in self.busy:
            keys[row, :, length - 1], values[row, :, length - 1] = key[row, :, 0], value[row, :, 0]
            seen = slice(0 if window is None else max(0, length - window), length)
            scores = (asked[row] @ keys[row, :, seen].transpose(1, 2)) * scaling
            found[row] = functional.softmax(scores.float(), dim=-1).to(query.dtype) @ values[row, :, seen]
        return found.reshape(rows, 1, -1, size)

    @torch.inference_mode()
    def make_room(self, tokens: int) -> None:
        """Let every slot take ``tokens``, doubling what it takes until it does."""
        while self.capacity < tokens:
            self.capacity *= 2
            self.layers = [(_doubled(keys), _doubled(values)) for keys, values in self.layers]


def _doubled(kept: torch.Tensor) -> torch.Tensor:
    return torch.cat([kept, torch.zeros_like(kept)], dim=2)
