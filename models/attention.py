"""Attention over a packed batch, as an attention implementation that transformers' decoders can be told to use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from models.packing import Packed
from models.pieces import KEYS, attend_in_pieces, round_up

IMPLEMENTATION = "ecomjudge_packed"
# Decoders whose layers know of other tokens through the attention function alone and of places through position_ids
# alone. Others, and those of other architectures, read padded batches.
PACKABLE = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma3_text", "smollm3", "phi3")

# Bytes of a tree's table of weights from which on a CPU takes tree after tree: all at once fall out of its cache.
LARGE = 1 << 18


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    packed: Packed | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of each token to what its own row holds before it; without a layout, transformers' SDPA attention.

    Args:
        query: [1, query heads, tokens, size]; ``key`` and ``value``: [1, heads, tokens, size].

    Returns:
        [1, tokens, query heads, size].
    """
    if packed is None:
        plain: tuple[torch.Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return plain
    rule = _Rule(**{name: value for name, value in options.items() if name in _Rule.__dataclass_fields__})
    layer: Any = module.layer_idx
    if packed.keep is not None:
        read = packed.tokens - packed.filling
        packed.keep.append((key[:, :, :read], value[:, :, :read]))
    # Tokens first; query heads that share a key head side by side.
    q = query[0].unflatten(0, (key.shape[1], -1)).permute(2, 0, 1, 3)
    k, v = key[0].transpose(0, 1), value[0].transpose(0, 1)
    laid_out = zip(*(_LaidOut.apply(x, packed) for x in (q, k, v)), strict=True)
    positions = packed.position_ids[0]
    above = (k[:0], v[:0])
    if packed.memory is not None:
        above = (packed.memory[layer][0][0].transpose(0, 1), packed.memory[layer][1][0].transpose(0, 1))
    first_q, first_k, first_v = next(laid_out)
    parts = []
    if packed.prefix:
        causal = torch.ones(1, packed.prefix, packed.prefix, dtype=torch.bool, device=q.device).tril()
        places = positions[None, : packed.prefix]
        parts.append(_attend(first_q, first_k, first_v, above, causal, places, rule))
        above = (torch.cat([above[0], first_k[0]]), torch.cat([above[1], first_v[0]]))
    behind = [
        _attend(tree_q, tree_k, tree_v, above, like.mask, positions[like.places], rule)
        for (tree_q, tree_k, tree_v), like in zip(laid_out, packed.trees, strict=True)
    ]
    parts.append(torch.cat(behind)[packed.slots])
    parts.append(q.new_zeros(packed.filling, *q.shape[1:]))
    return torch.cat(parts).flatten(1, 2)[None], None


class _LaidOut(torch.autograd.Function):
    """Tokens [tokens, ...] as the prefix, [1, prefix, ...], and each group of trees, [trees, longest, ...].

    Every token stands in one slot, and what a tree is filled up with is read by no other token and has no gradient: so
    a token's gradient is read from its slot, where autograd's own would add up all of them.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, packed: Packed) -> tuple[torch.Tensor, ...]:
        ctx.slots, ctx.filling = packed.slots, packed.filling
        return (x[None, : packed.prefix], *(x[like.places] for like in packed.trees))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        prefix, *trees = (gradient.flatten(0, 1) for gradient in gradients)
        filling = prefix.new_zeros(ctx.filling, *prefix.shape[1:])
        return torch.cat([prefix, torch.cat(trees)[ctx.slots], filling]), None


@dataclass(frozen=True)
class _Rule:
    """How a layer turns products of queries and keys into weights."""

    scaling: float
    dropout: float = 0.0
    sliding_window: int | None = None


def _attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    above: tuple[torch.Tensor, torch.Tensor],
    mask: torch.Tensor,
    positions: torch.Tensor,
    rule: _Rule,
) -> torch.Tensor:
    """Attention inside each tree where ``mask`` allows it, and to all tokens above the trees.

    Plain matrix products instead of a fused kernel: what is above is read once for all trees and not once for each.

    Args:
        q: [trees, longest, heads, queries a head, size]; ``k`` and ``v``: [trees, longest, heads, size].
        above: keys and values, [tokens above, heads, size], at positions from 0.
        mask: [trees, longest, longest], true where the first token attends to the second.
        positions: [trees, longest].

    Returns:
        [trees * longest, heads, queries a head, size].
    """
    trees, longest, heads, groups, size = q.shape
    count = len(above[0])
    plain = q.device.type == "cpu" and rule.sliding_window is None and not torch.is_grad_enabled()
    if plain and heads * groups * longest * (count + longest) * q.element_size() >= LARGE:
        return _attend_tree_by_tree(q, k, v, above, mask, rule.scaling)
    rows = q.permute(2, 0, 3, 1, 4).reshape(heads, trees * groups * longest, size)
    v_inside = v.permute(2, 0, 1, 3).reshape(heads * trees, longest, -1)
    scores = _scores(rows, k.permute(2, 0, 3, 1).reshape(heads * trees, size, longest), above[0], rule)
    table = scores.view(heads, trees, groups, longest, count + longest)
    _hide(table[..., count:], mask, positions, positions, rule)
    if count and rule.sliding_window is not None:
        everywhere = torch.ones(1, 1, 1, dtype=torch.bool, device=q.device)
        _hide(table[..., :count], everywhere, positions, torch.arange(count, device=q.device)[None], rule)
    weights = F.dropout(scores.softmax(dim=-1), rule.dropout)
    found = torch.bmm(weights[..., count:].reshape(heads * trees, groups * longest, longest), v_inside)
    found = found.view(heads, trees * groups * longest, -1)
    if count:
        found = torch.baddbmm(found, weights[..., :count], above[1].transpose(0, 1))
    return found.view(heads, trees, groups, longest, -1).permute(1, 3, 0, 2, 4).flatten(0, 1)


def _attend_tree_by_tree(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    above: tuple[torch.Tensor, torch.Tensor],
    mask: torch.Tensor,
    scaling: float,
) -> torch.Tensor:
    """What `_attend` is, without gradients. A token of a tree attends to none behind it."""
    trees, longest, heads, _, size = q.shape
    count = len(above[0])
    every = count + longest
    filling = round_up(every, KEYS) - every
    keys, values = k.new_zeros(heads, size, every + filling), v.new_zeros(heads, every + filling, size)
    keys[..., :count], values[:, :count] = above[0].permute(1, 2, 0), above[1].transpose(0, 1)
    asked = (q * scaling).permute(0, 2, 3, 1, 4)
    hidden = F.pad(~mask, (0, filling), value=True)
    found = torch.empty_like(q)
    for tree in range(trees):
        keys[..., count:every], values[:, count:every] = k[tree].permute(1, 2, 0), v[tree].transpose(0, 1)
        hide = partial(_hide_others, hidden[tree], count)
        found[tree] = attend_in_pieces(asked[tree], keys, values, hide, filling=filling).permute(2, 0, 1, 3)
    return found.flatten(0, 1)


def _hide_others(hidden: torch.Tensor, count: int, table: torch.Tensor, start: int, end: int, seen: slice) -> None:
    """`models.pieces.Hide` of a tree behind ``count`` tokens, with what each of its tokens does not see in the tree."""
    table[..., count:].masked_fill_(hidden[start:end, : seen.stop - count], float("-inf"))


def _scores(q: torch.Tensor, inside: torch.Tensor, above: torch.Tensor, rule: _Rule) -> torch.Tensor:
    """Scaled products of queries and keys: first with the tokens above, then with those of the own tree.

    Args:
        q: [heads, trees * queries, size].
        inside: keys, [heads * trees, size, longest].
        above: keys, [above, heads, size].

    Returns:
        [heads, trees * queries, above + longest].
    """
    heads, queries, size = q.shape
    count, longest = len(above), inside.shape[-1]
    own = torch.baddbmm(q.new_empty(1, 1, 1), q.view(len(inside), -1, size), inside, beta=0, alpha=rule.scaling)
    own = own.view(heads, queries, longest)
    if not count:
        return own
    above = above.permute(1, 2, 0)
    if torch.is_grad_enabled():
        others = torch.baddbmm(q.new_empty(1, 1, 1), q, above, beta=0, alpha=rule.scaling)
        return torch.cat([others, own], dim=-1)
    table = q.new_empty(heads, queries, count + longest)  # written in place: joining copies the larger part
    torch.baddbmm(table[..., :count], q, above, beta=0, alpha=rule.scaling, out=table[..., :count])
    table[..., count:] = own
    return table


def _hide(scores: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, rule: _Rule) -> None:
    """Minus infinity in scores [heads, trees, groups, longest, columns] where a token does not attend to another.

    Its gradient there is zero already: softmax gives it no weight.
    """
    if rule.sliding_window is not None:
        mask = mask & (rows[:, :, None] - columns[:, None, :] < rule.sliding_window)
    with torch.no_grad():
        scores.masked_fill_(~mask[None, :, None], float("-inf"))


def packs(config: Any) -> bool:
    """Whether decoders of this configuration can read packed batches. Rotary factors that follow from the longest text
    of a batch would make a row's score depend on its neighbours."""
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [one.get("rope_type") for one in (rope, *rope.values()) if isinstance(one, dict)]
    return config.model_type in PACKABLE and not {"dynamic", "longrope"}.intersection(kinds)


def uses_packed_attention(model: torch.nn.Module) -> bool:
    """Whether a model takes packed batches."""
    config: Any = model.config
    return bool(config._attn_implementation == IMPLEMENTATION)


AttentionInterface.register(IMPLEMENTATION, packed_attention)
AttentionMaskInterface.register(IMPLEMENTATION, sdpa_mask)
