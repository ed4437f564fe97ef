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
# Queries and keys of a piece are made multiples of these, by some twice or some that are hidden: for every new pair of
# sizes oneDNN makes kernels for bfloat16 and keeps them, a millisecond and a megabyte each (docs/experiments.md).
QUERIES, KEYS = 16, 64

Hide = Callable[[torch.Tensor, int, int, slice], None]


def attend_in_pieces(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    hide: Hide,
    window: int | None = None,
    filling: int = 0,
) -> torch.Tensor:
    """What each of the last tokens of a text takes from those before it. No gradient flows.

    Args:
        queries: scaled, [heads, queries a head, new, size]: query heads that share a key head side by side.
        keys: [heads, size, before + new + filling].
        values: [heads, before + new + filling, size].
        hide: called with a table [heads, queries a head, end - start, tokens], ``start``, ``end`` and which tokens
            those are; writes minus infinity where one of the queries from ``start`` to ``end`` does not see a token.
        window: tokens that a query sees at most; None is all before it.
        filling: tokens at the end, of finite values, that no query sees.

    Returns:
        [heads, queries a head, new, size].
    """
    heads, groups, new, _ = queries.shape
    every = values.shape[1]
    before = every - filling - new
    a_row = heads * groups * every * values.element_size()
    piece = max(FEWEST, TABLE // a_row // QUERIES * QUERIES)
    found = torch.empty_like(queries)
    for first in range(0, new, piece):
        end = min(first + piece, new)
        start = max(0, end - round_up(end - first, QUERIES))
        since = 0 if window is None else max(0, before + start + 1 - window)
        seen = slice(since, min(since + round_up(before + end - since, KEYS), every))
        table = queries[:, :, start:end].flatten(1, 2) @ keys[..., seen]
        hide(table.unflatten(1, (groups, -1)), start, end, seen)
        found[:, :, start:end] = (table.softmax(dim=-1) @ values[:, seen]).unflatten(1, (groups, -1))
    return found


def round_up(number: int, multiple: int) -> int:
    """The smallest multiple that is no less than a number."""
    return -(-number // multiple) * multiple
