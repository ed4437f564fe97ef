"""Packing: a batch of prompts as one row of tokens, without padding, in which what prompts share stands once.

Prompts of one set begin alike: the same instruction and solved examples, often the same goal, step or product. As token
sequences they form a forest. Its first level, what all rows share, is the ``prefix``; below it every tree holds rows
that go on alike. Each token attends to what its own row holds before it, so the result is that of the row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

# Shared tokens from which on a piece is held once: below, the bookkeeping costs more than the tokens.
MIN_SHARED = 8
# A tree lies beside the longest of its kind if it has at least this share of its tokens: attention's cost grows with
# the square of what trees are filled up to.
LIKE_SIZE = 0.75
# A batch's tokens are made a multiple of these by filling: above 256 tokens, and up to there. For every new number of
# rows oneDNN makes kernels and keeps them, which took gigabytes in runs of some hundred batches (docs/experiments.md).
MULTIPLE, SMALL_MULTIPLE = 32, 8

Memory = tuple[tuple[torch.Tensor, torch.Tensor], ...]


@dataclass(frozen=True)
class Trees:
    """Trees of like size in a packed batch.

    Attributes:
        places: [trees, longest]; where each tree's tokens stand, filled up with the place of its first one.
        mask: [trees, longest, longest]; which token (second index) a token of the tree attends to. Where a tree is
            filled up, a token attends to itself.
    """

    places: torch.Tensor
    mask: torch.Tensor


@dataclass(frozen=True)
class Packed:
    """A packed batch.

    Attributes:
        input_ids: [1, tokens]; the prefix comes first, then tree after tree.
        position_ids: [1, tokens]; the place of each token in its own row.
        ends: [rows]; where each row's last token stands.
        prefix: number of tokens at the beginning that all others attend to.
        trees: what stands behind the prefix, the largest trees first.
        slots: [tokens - prefix - filling]; where each token behind the prefix stands in ``trees``, read one after the
            other, row by row.
        filling: tokens at the end that no row has.
        unshared: tokens of the rows, had nothing been shared.
        longest: tokens of the longest row.
        memory: keys and values, [1, heads, length, size] of each layer, of tokens that all rows begin with and that
            ``input_ids`` leaves out.
        keep: where each layer's keys and values are put, to become the memory of other batches.
    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    ends: torch.Tensor
    prefix: int
    trees: tuple[Trees, ...]
    slots: torch.Tensor
    filling: int
    unshared: int
    longest: int
    memory: Memory | None = None
    keep: list[tuple[torch.Tensor, torch.Tensor]] | None = None

    @property
    def tokens(self) -> int:
        """Tokens to compute, with the filling."""
        return self.input_ids.shape[1]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Packed:
        """The batch with its tensors on a device."""

        def moved(holder: Packed | Trees) -> dict[str, Any]:
            return {
                name: value.to(device, non_blocking=non_blocking)
                for name, value in vars(holder).items()
                if isinstance(value, torch.Tensor)
            }

        trees = tuple(replace(like, **moved(like)) for like in self.trees)
        return replace(self, trees=trees, **moved(self))

    def model_inputs(self) -> dict[str, Any]:
        """What a backbone is called with. The attention mask is a dummy: four dimensions tell transformers to build
        none of its own, `models.attention.packed_attention` uses the layout instead."""
        return {
            "input_ids": self.input_ids,
            "position_ids": self.position_ids,
            "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool, device=self.input_ids.device),
            "use_cache": False,
            "packed": self,
        }


@dataclass(frozen=True)
class _Node:
    """Tokens ``begin`` to ``end`` of ``row``, which every row below has as well; ``parent`` is a number in its tree."""

    row: int
    begin: int
    end: int
    parent: int


class Forest:
    """Rows sorted by their tokens, and how many tokens neighbours share.

    Args:
        rows: token ids. Every row keeps at least its last token to itself.
        skip: tokens that all rows begin with and that are held elsewhere.
    """

    def __init__(self, rows: Sequence[Sequence[int]], skip: int = 0) -> None:
        self.rows = rows
        self.skip = skip
        self.order = sorted(range(len(rows)), key=lambda row: (list(rows[row]), row))
        arrays = [np.asarray(rows[row]) for row in self.order]
        self.shared = [0] + [_common(a, b) for a, b in pairwise(arrays)]

    @property
    def prefix(self) -> int:
        """Tokens that all rows begin with, as far as it pays to hold them once; at least ``skip``."""
        common = min(self.shared[1:], default=0)
        return common if common - self.skip >= MIN_SHARED else self.skip

    def runs(self) -> list[list[int]]:
        """Row numbers of each tree, neighbours sharing most."""
        return [self.order[low:high] for low, high in self._cut(0, len(self.order), self.prefix)]

    def batches(self, token_budget: int) -> list[list[int]]:
        """Row numbers in batches of about ``token_budget`` tokens behind the prefix (a longer row goes alone).

        A row can take up to MIN_SHARED tokens more than is counted, where it shares less with its neighbour than pays.
        Rows of one tree stay together as far as they fit; the largest trees come first, and trees of like size lie
        together. The plan follows from the rows alone.
        """
        pieces: list[tuple[int, list[int]]] = []
        for low, high in self._cut(0, len(self.order), self.prefix):
            size = 0
            piece: list[int] = []
            for place in range(low, high):
                shared = max(self.shared[place] - self.prefix, 0) if piece else 0
                own = len(self.rows[self.order[place]]) - self.prefix - shared
                if piece and size + own > token_budget:
                    pieces.append((size, piece))
                    size, piece, own = 0, [], own + shared
                size += own
                piece.append(self.order[place])
            pieces.append((size, piece))
        batches: list[list[int]] = []
        room = 0
        for size, piece in sorted(pieces, key=lambda item: (-item[0], item[1])):
            if not batches or size > room:
                batches.append([])
                room = token_budget
            batches[-1] += piece
            room -= size
        return batches

    def grow(self) -> list[tuple[list[_Node], dict[int, int]]]:
        """Each tree's nodes, parents before children, and the node in which each row ends."""
        grown = []
        for low, high in self._cut(0, len(self.order), self.prefix):
            nodes: list[_Node] = []
            leaves: dict[int, int] = {}
            self._grow(nodes, leaves, low, high, self.prefix, -1)
            grown.append((nodes, leaves))
        return grown

    def _cut(self, low: int, high: int, begin: int) -> list[tuple[int, int]]:
        """Places low..high in runs whose neighbours share at least MIN_SHARED tokens behind ``begin``."""
        cuts = [place for place in range(low + 1, high) if self.shared[place] - begin < MIN_SHARED]
        return list(zip([low, *cuts], [*cuts, high], strict=True)) if high > low else []

    def _grow(self, nodes: list[_Node], leaves: dict[int, int], low: int, high: int, begin: int, parent: int) -> None:
        row = self.order[low]
        if high - low == 1:
            leaves[row] = len(nodes)
            nodes.append(_Node(row, begin, len(self.rows[row]), parent))
            return
        common = min(self.shared[low + 1 : high])
        if common - begin >= MIN_SHARED:
            nodes.append(_Node(row, begin, common, parent))
            begin, parent = common, len(nodes) - 1
        for left, right in self._cut(low, high, begin):
            self._grow(nodes, leaves, left, right, begin, parent)


def _common(a: np.ndarray, b: np.ndarray) -> int:
    """Tokens that two rows begin with alike, all but the last of the shorter one at most."""
    length = max(0, min(len(a), len(b)) - 1)
    differing = np.flatnonzero(a[:length] != b[:length])
    return int(differing[0]) if len(differing) else length


def pack(rows: Sequence[Sequence[int]], skip: int = 0, memory: Memory | None = None) -> Packed:
    """Rows as a packed batch.

    Args:
        rows: token ids.
        skip: tokens that all rows begin with and whose keys and values are in ``memory``.
    """
    forest = Forest(rows, skip)
    prefix = forest.prefix
    tokens: list[int] = list(rows[0][skip:prefix])
    positions = list(range(skip, prefix))
    ends = [0] * len(rows)
    grown = forest.grow()
    spans: list[tuple[int, int]] = []
    masks: list[np.ndarray] = []
    for nodes, leaves in grown:
        start = len(tokens)
        ending = []
        for node in nodes:
            tokens += rows[node.row][node.begin : node.end]
            positions += range(node.begin, node.end)
            ending.append(len(tokens) - 1)
        for row, leaf in leaves.items():
            ends[row] = ending[leaf]
        spans.append((start, len(tokens)))
        masks.append(_tree_mask(nodes))
    trees, slots = _by_size(spans, masks)
    multiple = MULTIPLE if len(tokens) > 256 else SMALL_MULTIPLE
    filling = -len(tokens) % multiple
    return Packed(
        input_ids=torch.tensor([tokens + tokens[:1] * filling]),
        position_ids=torch.tensor([positions + positions[:1] * filling]),
        ends=torch.tensor(ends),
        prefix=prefix - skip,
        trees=trees,
        slots=slots,
        filling=filling,
        unshared=sum(map(len, rows)),
        longest=max(map(len, rows)),
        memory=memory,
    )


def _by_size(spans: Sequence[tuple[int, int]], masks: Sequence[np.ndarray]) -> tuple[tuple[Trees, ...], torch.Tensor]:
    """The trees in groups of like size, and where each of their tokens stands in them.

    Args:
        spans: first place and the one behind the last of each tree; they follow each other.
        masks: which token of a tree attends to which, [size, size].
    """
    sizes = [end - start for start, end in spans]
    groups: list[list[int]] = []
    for tree in sorted(range(len(spans)), key=lambda tree: -sizes[tree]):
        if not groups or sizes[tree] < LIKE_SIZE * sizes[groups[-1][0]]:
            groups.append([])
        groups[-1].append(tree)
    made, slots = [], np.empty(sum(sizes), dtype=np.int64)
    behind, offset = spans[0][0] if spans else 0, 0
    for group in groups:
        longest = sizes[group[0]]
        places = np.empty((len(group), longest), dtype=np.int64)
        mask = np.broadcast_to(np.eye(longest, dtype=bool), (len(group), longest, longest)).copy()
        for row, tree in enumerate(group):
            (start, end), size = spans[tree], sizes[tree]
            places[row] = start
            places[row, :size] = np.arange(start, end)
            mask[row, :size, :size] = masks[tree]
            slots[start - behind : end - behind] = offset + row * longest + np.arange(size)
        offset += places.size
        made.append(Trees(torch.from_numpy(places), torch.from_numpy(mask)))
    return tuple(made), torch.from_numpy(slots)


def _tree_mask(nodes: Sequence[_Node]) -> np.ndarray:
    """Which token of a tree attends to which: to those of its own node and of the nodes above, up to itself."""
    above = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for number, node in enumerate(nodes):
        if node.parent >= 0:
            above[number] = above[node.parent]
        above[number, number] = True
    of_token = np.repeat(np.arange(len(nodes)), [node.end - node.begin for node in nodes])
    mask: np.ndarray = above[of_token][:, of_token] & np.tri(len(of_token), dtype=bool)
    return mask
