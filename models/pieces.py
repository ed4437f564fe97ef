"""Attention on a CPU in plain matrix products, of so few queries at once that their table of weights stays in cache.

Faster than products of all queries, and than torch's kernel in bfloat16 or where a mask is needed
(docs/experiments.md).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

# Bytes of a table of weights: about what one core keeps at hand.
TABLE = 3 << 19
FEWEST = 32  # queries of a piece at least

Hide = Callable[[torch.Tensor, int, int, slice], None]


def attend_in_pieces(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, hide: Hide, window: int | None = None
) -> torch.Tensor:
    """What each of the last tokens of a text takes from those before it. No gradient flows.

    Args:
        queries: scaled, [heads, queries a head, new, size]: query heads that share a key head side by side.
        keys: [heads, size, before + new].
        values: [heads, before + new, size].
        hide: called with a table [heads, queries a head, end - start, tokens seen], ``start``, ``end`` and which tokens
            those are; writes minus infinity where one of the queries from ``start`` to ``end`` does not see a token.
        window: tokens that a query sees at most; None is all before it.

    Returns:
        [heads, queries a head, new, size].
    """
    heads, groups, new, _ = queries.shape
    before = values.shape[1] - new
    a_row = heads * groups * values.shape[1] * values.element_size()
    piece = max(FEWEST, TABLE // a_row)
    found = torch.empty_like(queries)
    for start in range(0, new, piece):
        end = min(start + piece, new)
        seen = slice(0 if window is None else max(0, before + start + 1 - window), before + end)
        table = queries[:, :, start:end].flatten(1, 2) @ keys[..., seen]
        hide(table.unflatten(1, (groups, -1)), start, end, seen)
        found[:, :, start:end] = (table.softmax(dim=-1) @ values[:, seen]).unflatten(1, (groups, -1))
    return found
