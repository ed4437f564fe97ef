"""From votes to labels: the majority, what has none, and how far the annotators agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

Votes = Sequence[int | None]


@dataclass(frozen=True)
class Labels:
    """What became of the votes.

    Attributes:
        labels: id -> 1 or 0, of the items that have a majority.
        ties: ids of items with as many yes as no: they say nothing, and are left out.
        too_few: ids of items with fewer votes than are wanted.
        missing: votes that were not given.
    """

    labels: dict[str, int]
    ties: list[str]
    too_few: list[str]
    missing: int


def majority(votes: Mapping[str, Votes], fewest: int) -> Labels:
    """The label that more than half of an item's given votes name; missing votes count for neither side.

    Args:
        fewest: an item with fewer given votes is left out.
    """
    labels: dict[str, int] = {}
    ties, too_few, missing = [], [], 0
    for each, own in votes.items():
        given = [vote for vote in own if vote is not None]
        missing += len(own) - len(given)
        yes = sum(given)
        if len(given) < max(1, fewest):
            too_few.append(each)
        elif 2 * yes == len(given):
            ties.append(each)
        else:
            labels[each] = int(2 * yes > len(given))
    return Labels(labels, ties, too_few, missing)


@dataclass(frozen=True)
class Agreement:
    """Fleiss' kappa over the items that have all votes; None where there is no telling (no such item, or all votes
    alike). ``items`` are those counted, ``incomplete`` those left aside."""

    kappa: float | None
    items: int
    incomplete: int


def agreement(votes: Mapping[str, Votes]) -> Agreement:
    """How far annotators agree beyond chance (Fleiss 1971), who need not be the same ones for every item.

    Kappa is defined for items with equally many votes: those with a missing one are left aside.
    """
    complete = [[int(vote) for vote in own if vote is not None] for own in votes.values() if None not in own]
    incomplete = len(votes) - len(complete)
    if not complete or len(complete[0]) < 2:
        return Agreement(None, len(complete), incomplete)
    table, _ = aggregate_raters(np.asarray(complete))
    if table.shape[1] < 2:
        return Agreement(None, len(complete), incomplete)
    kappa = float(fleiss_kappa(table, method="fleiss"))
    return Agreement(kappa if math.isfinite(kappa) else None, len(complete), incomplete)
