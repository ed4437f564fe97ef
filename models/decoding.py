"""Keys and values of texts that grow side by side behind one shared beginning, and attention over them.

The beginning (a system prompt with its examples, say) is held once, whatever the number of rows. Each row has a slot
of its own that it fills from the left, so that rows of any length stand side by side without padding, a finished row's
slot is taken by the next, and nothing is copied when a token is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

# The implementation's name for transformers. None of its mask functions bears it, so that it builds no masks.
IMPLEMENTATION = "ecomjudge_slots"
LAYER_TYPES = {"full_attention", "sliding_attention"}

Layer = tuple[torch.Tensor, torch.Tensor]


class KeyValues:
    """Keys and values of ``slots`` rows behind ``prefix``, for every layer of a model.

    A forward pass is announced by `reading` (whole prompts into empty slots) or `writing` (one token more for each of
    the first rows), and `next_logits` makes it.

    Args:
        prefix: (keys, values) of each layer, [heads, tokens, size] each; empty where nothing is shared.
        capacity: tokens that a slot takes.
    """

    def __init__(self, prefix: Sequence[Layer], slots: int, capacity: int) -> None:
        self.prefix = prefix
        self.shared = prefix[0][0].shape[1] if prefix else 0
        self.slots, self.capacity = slots, capacity
        self.layers: list[Layer] = []
        self.rows: torch.Tensor | None = None
        self.lengths: torch.Tensor | None = None
        self.longest = 0
        self._masks: dict[int | None, torch.Tensor] = {}

    def reading(self, rows: torch.Tensor) -> None:
        """The next pass reads whole prompts, padded on the right, into the slots ``rows`` [rows]."""
        self.rows, self.lengths = rows, None
        self._masks = {}

    def writing(self, lengths: torch.Tensor) -> None:
        """The next pass adds a token to each of the first slots, which hold ``lengths`` [rows] tokens already."""
        self.rows, self.lengths = None, lengths
        self.longest = int(lengths.max()) + 1
        self._masks = {}

    @torch.inference_mode()
    def move(self, source: int, target: int, length: int) -> None:
        """Take over the first ``length`` tokens of one slot into another."""
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
        """Keep what is new, and attend to all that a row may see.

        Args:
            query: [rows, query heads, new tokens, size]; ``key`` and ``value``: [rows, heads, new tokens, size].
            window: tokens back that a token sees, itself included; None is all.

        Returns:
            [rows, new tokens, query heads, size].
        """
        number: Any = module.layer_idx
        if number == len(self.layers):
            self.layers.append((self._room(key), self._room(value)))
        if self.lengths is None:
            return self._read(module, number, (query, key, value), scaling, window)
        return self._write(number, (query, key, value), scaling, window)

    def _room(self, like: torch.Tensor) -> torch.Tensor:
        return like.new_zeros(self.slots, like.shape[1], self.capacity, like.shape[3])

    def _read(
        self,
        module: torch.nn.Module,
        number: int,
        new: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        scaling: float,
        window: int | None,
    ) -> torch.Tensor:
        """Whole prompts: padding comes last, where no token of the prompt looks."""
        query, key, value = new
        rows, count = len(query), query.shape[2]
        for kept, fresh in zip(self.layers[number], (key, value), strict=True):
            kept[self.rows, :, :count] = fresh
        mask = None
        if self.shared:
            above = [tensor.expand(rows, -1, -1, -1) for tensor in self.prefix[number]]
            key, value = torch.cat([above[0], key], dim=2), torch.cat([above[1], value], dim=2)
        if self.shared or window is not None:
            mask = self._mask(window, lambda: self._reading_mask(count, window, query.device))
        found: torch.Tensor = sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]
        return found

    def _reading_mask(self, count: int, window: int | None, device: torch.device) -> torch.Tensor:
        """Whether a new token (second to last index) sees a token of the prefix or a new one, [1, 1, new, all]."""
        places = torch.arange(self.shared + count, device=device)
        back = places[self.shared :, None] - places
        seen = back >= 0 if window is None else (back >= 0) & (back < window)
        return seen[None, None]

    def _write(
        self,
        number: int,
        new: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        scaling: float,
        window: int | None,
    ) -> torch.Tensor:
        """One token a row: products with the prefix, held once, and with each row's own slot, under one softmax."""
        query, key, value = new
        assert self.lengths is not None
        rows, heads, size = len(query), key.shape[1], query.shape[3]
        every = torch.arange(rows, device=query.device)
        keys, values = self.layers[number]
        keys[every, :, self.lengths] = key[:, :, 0]
        values[every, :, self.lengths] = value[:, :, 0]
        asked = query.view(rows, heads, -1, size)  # query heads that share a key head side by side
        scores = asked @ keys[:rows, :, : self.longest].transpose(2, 3)
        if self.shared:
            above_keys, above_values = self.prefix[number]
            outside = _by_head(asked) @ above_keys.transpose(1, 2)
            scores = torch.cat([_by_row(outside, rows), scores], dim=-1)
        unseen = self._mask(window, lambda: self._writing_mask(window))
        weights = functional.softmax((scores * scaling).masked_fill_(unseen, float("-inf")).float(), dim=-1)
        weights = weights.to(query.dtype)
        found = weights[..., self.shared :] @ values[:rows, :, : self.longest]
        if self.shared:
            found = found + _by_row(_by_head(weights[..., : self.shared]) @ above_values, rows)
        return found.reshape(rows, 1, -1, found.shape[-1])

    def _writing_mask(self, window: int | None) -> torch.Tensor:
        """Whether a row's new token does not see a token of the prefix or of its slot, [rows, 1, 1, all]."""
        assert self.lengths is not None
        places = torch.arange(self.shared + self.longest, device=self.lengths.device)
        back = (self.lengths + self.shared)[:, None] - places
        unseen = back < 0 if window is None else (back < 0) | (back >= window)
        return unseen[:, None, None]

    def _mask(self, window: int | None, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        """A mask of the pass, made once for all layers of one window."""
        if window not in self._masks:
            self._masks[window] = make()
        return self._masks[window]


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
        rows: new tokens of each row, as ``store`` was told; the shorter ones are padded on the right.
        starts: the position of each row's first new token.
    """
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=model.device)
    positions = torch.tensor(starts, device=model.device)[:, None] + torch.arange(longest, device=model.device)
    last = torch.tensor([[len(row) - 1] for row in rows], device=model.device)
    logits: torch.Tensor = model(
        input_ids=ids, position_ids=positions, use_cache=False, logits_to_keep=last, key_values=store
    ).logits
    return logits[:, 0].float()


def read_prefix(model: PreTrainedModel, ids: Sequence[int]) -> list[Layer]:
    """Keys and values of tokens that rows begin with, for `KeyValues`; nothing for no tokens."""
    if not ids:
        return []
    store = KeyValues([], 1, len(ids))
    store.reading(torch.zeros(1, dtype=torch.long, device=model.device))
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
        store = KeyValues(read_prefix(model, ids[:4]), 1, len(ids))
        store.reading(torch.zeros(1, dtype=torch.long, device=model.device))
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
