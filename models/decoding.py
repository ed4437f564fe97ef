"""Keys and values of texts that grow side by side behind shared beginnings, and attention over them.

A beginning (a system prompt with its examples, say) is held once, whatever the number of rows behind it. Each row has
a slot of its own that it fills from the left, so that rows of any length stand side by side without padding, a
finished row's slot is taken by the next, and nothing is copied when a token is added.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch.nn import functional
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from models.pieces import attend_in_pieces

# The implementation's name for transformers. None of its mask functions bears it, so that it builds no masks.
IMPLEMENTATION = "ecomjudge_slots"
LAYER_TYPES = {"full_attention", "sliding_attention"}

Layer = tuple[torch.Tensor, torch.Tensor]
New = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class KeyValues:
    """Keys and values of ``slots`` rows behind ``beginnings``, for every layer of a model.

    A forward pass is announced by `reading` (whole prompts into slots) or `writing` (one token more for each of the
    first rows), and `next_logits` makes it.

    Args:
        beginnings: (keys, values) of each layer of each beginning, [heads, tokens, size] each; a beginning without
            layers is that of rows that share nothing.
        capacity: tokens that a slot takes.
    """

    def __init__(self, beginnings: Sequence[Sequence[Layer]], slots: int, capacity: int) -> None:
        self.beginnings = beginnings
        self.slots, self.capacity = slots, capacity
        self.layers: list[Layer] = []
        self.lengths: torch.Tensor | None = None
        self.longest = 0
        self._behind = [0] * slots  # the beginning of each slot's row
        self._spans: list[tuple[int, int, int]] = []  # slot, first and last place (exclusive) of the rows being read
        self._together: list[tuple[Sequence[Layer], torch.Tensor]] = []  # beginnings, and the rows behind each
        self._before = torch.empty(0)  # tokens of the beginning of each row being written
        self._masks: dict[Hashable, torch.Tensor] = {}

    def shared(self, beginning: int) -> int:
        """Tokens of a beginning."""
        return _tokens(self.beginnings[beginning]) if self.beginnings else 0

    def reading(self, rows: Sequence[tuple[int, int, int]] = ()) -> None:
        """The next pass reads whole prompts, one behind the other: (slot, tokens, beginning) of each."""
        self.lengths, self._masks, self._spans = None, {}, []
        place = 0
        for slot, tokens, beginning in rows:
            self._spans.append((slot, place, place + tokens))
            self._behind[slot] = beginning
            place += tokens

    def writing(self, lengths: torch.Tensor) -> None:
        """The next pass adds a token to each of the first slots, which hold ``lengths`` [rows] tokens already."""
        self.lengths, self._masks = lengths, {}
        self.longest = int(lengths.max()) + 1
        behind = self._behind[: len(lengths)]
        self._before = torch.tensor([self.shared(beginning) for beginning in behind], device=lengths.device)
        self._together = []
        for beginning in dict.fromkeys(behind):
            rows = [row for row, own in enumerate(behind) if own == beginning]
            if self.shared(beginning):
                self._together.append((self.beginnings[beginning], torch.tensor(rows, device=lengths.device)))

    @torch.inference_mode()
    def move(self, source: int, target: int, length: int) -> None:
        """Take over the first ``length`` tokens of one slot into another."""
        self._behind[target] = self._behind[source]
        for keys, values in self.layers:
            keys[target, :, :length] = keys[source, :, :length]
            values[target, :, :length] = values[source, :, :length]

    def attend(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float,
        window: int | None,
    ) -> torch.Tensor:
        """Keep what is new, and attend to all that a token may see.

        Args:
            query: [1, query heads, tokens, size] where prompts are read, [rows, query heads, 1, size] where rows are
                written; ``key`` and ``value`` alike, with their own number of heads.
            window: tokens back that a token sees, itself included; None is all.

        Returns:
            [1, tokens, query heads, size] or [rows, 1, query heads, size].
        """
        number: Any = module.layer_idx
        if number == len(self.layers):
            self.layers.append((self._room(key), self._room(value)))
        if self.lengths is None:
            return self._read(module, number, (query, key, value), scaling, window)
        return self._write(number, (query, key, value), scaling, window)

    def _room(self, like: torch.Tensor) -> torch.Tensor:
        return like.new_zeros(self.slots, like.shape[1], self.capacity, like.shape[3])

    def _read(self, module: torch.nn.Module, number: int, new: New, scaling: float, window: int | None) -> torch.Tensor:
        """Each prompt by itself, behind its beginning."""
        found = []
        for slot, start, end in self._spans:
            query, key, value = (tensor[:, :, start:end] for tensor in new)
            for kept, fresh in zip(self.layers[number], (key, value), strict=True):
                kept[slot, :, : end - start] = fresh[0]
            if self.shared(self._behind[slot]):
                above = self.beginnings[self._behind[slot]][number]
                key, value = (torch.cat([a[None], b], dim=2) for a, b in zip(above, (key, value), strict=True))
            found.append(self._attend_behind(module, query, key, value, scaling, window))
        return torch.cat(found, dim=1)

    def _attend_behind(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float,
        window: int | None,
    ) -> torch.Tensor:
        """Attention of the last tokens of one text, [1, query heads, new, size], to those of [1, heads, all, size] that
        each may see; [1, new, query heads, size]."""
        if query.device.type == "cpu":
            return causal_in_pieces(query, key, value, scaling, window)
        new, every = query.shape[2], key.shape[2]
        mask = None
        if new < every or window is not None:  # else each simply sees those before it
            mask = self._mask((new, every, window), lambda: _seen(new, every, window, query.device))
        found: torch.Tensor = sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]
        return found

    def _write(self, number: int, new: New, scaling: float, window: int | None) -> torch.Tensor:
        """One token a row: products with its beginning, held once, and with its own slot, under one softmax."""
        query, key, value = new
        assert self.lengths is not None
        rows, heads, size = len(query), key.shape[1], query.shape[3]
        every = torch.arange(rows, device=query.device)
        keys, values = self.layers[number]
        keys[every, :, self.lengths] = key[:, :, 0]
        values[every, :, self.lengths] = value[:, :, 0]
        # Query heads that share a key head side by side.
        asked = (query * scaling).view(rows, heads, -1, size)
        most = max((_tokens(beginning) for beginning, _ in self._together), default=0)
        scores = asked.new_empty(*asked.shape[:3], most + self.longest)
        # Keys come first: the other way round oneDNN copies all of them in bfloat16, which takes four times as long.
        scores[..., most:] = (keys[:rows, :, : self.longest] @ asked.transpose(2, 3)).transpose(2, 3)
        for beginning, behind in self._together:
            products = _by_head(asked[behind]) @ beginning[number][0].transpose(1, 2)
            scores[behind, :, :, : products.shape[-1]] = _by_row(products, len(behind))
        scores.masked_fill_(self._mask(window, lambda: self._unseen(most, window)), float("-inf"))
        weights = functional.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
        found = weights[..., most:] @ values[:rows, :, : self.longest]
        for beginning, behind in self._together:
            own = _by_head(weights[behind, :, :, : _tokens(beginning)])
            found[behind] += _by_row(own @ beginning[number][1], len(behind))
        return found.reshape(rows, 1, -1, found.shape[-1])

    def _unseen(self, most: int, window: int | None) -> torch.Tensor:
        """Whether a row's new token does not see a token of its beginning or of its slot, [rows, 1, 1, all]."""
        assert self.lengths is not None
        before, own = self._before[:, None], self.lengths[:, None]
        outside = torch.arange(most, device=own.device).expand(len(own), -1)
        inside = torch.arange(self.longest, device=own.device)
        back = torch.cat([(before + own) - outside, own - inside], dim=1)
        unseen = back < 0 if window is None else (back < 0) | (back >= window)
        unseen[:, :most] |= outside >= before
        return unseen[:, None, None]

    def _mask(self, key: Hashable, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        """A mask of the pass, made once for all layers that it is for."""
        if key not in self._masks:
            self._masks[key] = make()
        return self._masks[key]


def causal_in_pieces(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float, window: int | None
) -> torch.Tensor:
    """What `KeyValues._attend_behind` is, for a CPU."""
    new, heads = query.shape[2], key.shape[1]
    before = key.shape[2] - new

    def hide(table: torch.Tensor, start: int, end: int, seen: slice) -> None:
        back = torch.arange(before + start, before + end)[:, None] - torch.arange(seen.start, seen.stop)
        table.masked_fill_(back < 0 if window is None else (back < 0) | (back >= window), float("-inf"))

    asked = (query[0] * scaling).unflatten(0, (heads, -1))  # query heads that share a key head side by side
    found = attend_in_pieces(asked, key[0].transpose(1, 2), value[0], hide, window)
    return found.flatten(0, 1).transpose(0, 1)[None]


def _seen(new: int, every: int, window: int | None, device: torch.device) -> torch.Tensor:
    """Whether one of the last ``new`` tokens (second to last index) sees a token, [1, 1, new, every]."""
    places = torch.arange(every, device=device)
    back = places[every - new :, None] - places
    seen = back >= 0 if window is None else (back >= 0) & (back < window)
    return seen[None, None]


def _tokens(beginning: Sequence[Layer]) -> int:
    return beginning[0][0].shape[1] if beginning else 0


def _by_head(rows: torch.Tensor) -> torch.Tensor:
    """[rows, heads, queries, any] -> [heads, rows * queries, any]"""
    return rows.transpose(0, 1).flatten(1, 2)


def _by_row(heads: torch.Tensor, rows: int) -> torch.Tensor:
    """[heads, rows * queries, any] -> [rows, heads, queries, any]"""
    by_query: torch.Tensor = heads.unflatten(1, (rows, -1))
    return by_query.transpose(0, 1)


def slot_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    key_values: KeyValues | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' interface to `KeyValues.attend`."""
    if key_values is None or options.get("softcap") is not None or options.get("s_aux") is not None:
        raise ValueError("its attention takes more than scaling and a sliding window")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return key_values.attend(module, query, key, value, scale, sliding_window), None


AttentionInterface.register(IMPLEMENTATION, slot_attention)


@torch.inference_mode()
def next_logits(
    model: PreTrainedModel, store: KeyValues, rows: Sequence[Sequence[int]], starts: Sequence[int]
) -> torch.Tensor:
    """What follows the new tokens of each row, [rows, vocabulary] in float32.

    Args:
        rows: new tokens of each row, as ``store`` was told.
        starts: the position of each row's first new token.
    """
    ids = torch.tensor([token for row in rows for token in row], device=model.device)
    places = [start + place for row, start in zip(rows, starts, strict=True) for place in range(len(row))]
    positions = torch.tensor(places, device=model.device)
    if store.lengths is None:  # prompts: one row of tokens, without padding
        ends = torch.tensor([len(row) for row in rows], device=model.device).cumsum(0) - 1
        ids, positions, last = ids[None], positions[None], ends[None]
    else:
        ids, positions = ids[:, None], positions[:, None]
        last = torch.zeros_like(ids)
    logits: torch.Tensor = model(
        input_ids=ids, position_ids=positions, use_cache=False, logits_to_keep=last, key_values=store
    ).logits
    return logits.flatten(0, 1).float()


def read_beginning(model: PreTrainedModel, ids: Sequence[int]) -> list[Layer]:
    """Keys and values of tokens that rows begin with, for `KeyValues`; nothing for no tokens."""
    if not ids:
        return []
    store = KeyValues([], 1, len(ids))
    store.reading([(0, len(ids), 0)])
    next_logits(model, store, [ids], [0])
    return [(keys[0], values[0]) for keys, values in store.layers]


def use_slots(model: PreTrainedModel, name: str) -> None:
    """Make a model attend over slots.

    Raises ValueError where it cannot, or a few tokens do not come out as with the model's own attention.
    """
    kinds = set(getattr(model.config, "layer_types", None) or LAYER_TYPES) - LAYER_TYPES
    reason = f"it has layers of {', '.join(sorted(kinds))}" if kinds else _unlike_own(model)
    if reason:
        raise ValueError(
            f"{name} ({model.config.model_type}) is not written with here: {reason}; serve it, and give "
            "http://host:port/v1#model"
        )


@torch.inference_mode()
def _unlike_own(model: PreTrainedModel) -> str | None:
    """Exchange a model's attention; what is wrong with that, None if nothing."""
    if not getattr(model, "_supports_attention_backend", False):
        return "its attention cannot be exchanged"
    ids = list(range(1, 13))
    expected = model(input_ids=torch.tensor([ids], device=model.device), use_cache=False).logits[0, -1].float()
    model.set_attn_implementation(IMPLEMENTATION)
    try:
        store = KeyValues([read_beginning(model, ids[:4])], 1, len(ids))
        store.reading([(0, len(ids) - 5, 0)])
        next_logits(model, store, [ids[4:-1]], [4])
        store.writing(torch.tensor([len(ids) - 5], device=model.device))
        found = next_logits(model, store, [ids[-1:]], [len(ids) - 1])[0]
    except (AttributeError, TypeError, ValueError) as error:
        return str(error)
    # Another mask or scale moves logits by about as much as they spread. Rounding in 16 bits moves SmolLM2's by up to
    # a twelfth of that (root mean square), whichever of transformers' attentions it is compared with.
    allowed = 0.01 if model.dtype == torch.float32 else 0.25
    moved = (found - expected).square().mean().sqrt() / expected.std()
    return None if moved < allowed else "its own attention gives other numbers"
