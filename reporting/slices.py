"""Predictions in groups of their own kind, and how well a judge does on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recipes.intervals import Interval, bootstrap

MOST_VALUES, FEWEST_RECORDS = 30, 4
NO_VALUE = "(none)"
Prediction = Mapping[str, Any]


@dataclass(frozen=True)
class Slicing:
    """One way to group predictions: a value for each of them, in their order.

    ``order`` is that of the values where they have one, such as lengths.
    """

    key: str
    name: str
    values: list[str]
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slice:
    """The predictions of one value: how many, how many are yes, how often they are right, their mean p_yes (if any)."""

    value: str
    count: int
    yes: int
    wrong: int
    accuracy: Interval
    mean: float | None


def slicings(lines: Sequence[Prediction], metas: Sequence[Mapping[str, Any]]) -> list[Slicing]:
    """Every grouping that the predictions and what is known of their records (``meta``) allow.

    A field of meta is one if it holds short values, 2 to 30 different ones, each on at least four records on average.
    Then come the length in quarters, and whether a record was shortened, where they differ.
    """
    found = [Slicing(f"meta.{key}", key.replace("_", " ").capitalize(), values) for key, values in _fields(metas)]
    found.append(_quarters([line["tokens"] for line in lines]))
    found.append(Slicing("text", "Text", ["shortened" if line["shortened"] else "whole" for line in lines]))
    return [one for one in found if len(set(one.values)) > 1]


def _fields(metas: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    fields = []
    for key in dict.fromkeys(key for meta in metas for key in meta):
        values = [meta.get(key) for meta in metas]
        if all(value is None or isinstance(value, str | int) for value in values):
            told = [NO_VALUE if value is None else str(value) for value in values]
            if len(set(told)) <= min(MOST_VALUES, len(told) // FEWEST_RECORDS):
                fields.append((key, told))
    return fields


def _quarters(tokens: Sequence[int]) -> Slicing:
    """Lengths cut at their quartiles, each quarter named by its shortest and longest; fewer where many are equal."""
    lengths = np.asarray(tokens)
    place = np.searchsorted(np.unique(np.quantile(lengths, [0.25, 0.5, 0.75])), lengths, side="left")
    names = {}
    for quarter in sorted(set(place.tolist())):
        inside = lengths[place == quarter]
        names[quarter] = f"{inside.min():,}–{inside.max():,}"
    return Slicing("length", "Length in tokens", [names[quarter] for quarter in place.tolist()], tuple(names.values()))


def measure_slices(lines: Sequence[Prediction], slicing: Slicing, resamples: int, seed: int) -> list[Slice]:
    """The slices in their own order, or the one with the lowest accuracy first; intervals as in the results."""
    slices = []
    for value in dict.fromkeys(slicing.values):
        inside = [line for line, own in zip(lines, slicing.values, strict=True) if own == value]
        labels, said = [line["label"] for line in inside], [line["verdict"] for line in inside]
        accuracy = bootstrap(labels, said, said, [line["group"] for line in inside], resamples, seed)["accuracy"]
        wrong = sum(label != verdict for label, verdict in zip(labels, said, strict=True))
        probable = all(line["p_yes"] is not None for line in inside)
        mean = float(np.mean([line["p_yes"] for line in inside])) if probable else None
        slices.append(Slice(value, len(inside), sum(labels), wrong, accuracy, mean))
    if slicing.order:
        return sorted(slices, key=lambda one: slicing.order.index(one.value))
    return sorted(slices, key=lambda one: (one.accuracy.value or 0.0, one.value))
