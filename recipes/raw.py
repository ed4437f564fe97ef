"""A raw record, and what is wrong with a table's columns before any record is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipes.faults import Fault


@dataclass(frozen=True)
class Row:
    """A raw record and its line (JSONL) or row number (elsewhere), from 1."""

    line: int
    value: Mapping[str, Any]


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once, in alphabetical order."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def two_columns(reference: str, names: Sequence[str]) -> Iterator[Fault]:
    """A fault for each name that two columns bear: the second would silently stand for both."""
    return (Fault(reference, None, name, "two columns of this name; keep one of the two") for name in names)
