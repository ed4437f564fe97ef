"""Making records fit a model's length: product text goes first, nothing else ever; what cannot fit is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from recipes.base import Judgment, Record

R = TypeVar("R", bound=Record)
CountTokens = Callable[[Sequence[Any]], Sequence[int]]


@dataclass(frozen=True)
class Fitted(Generic[R]):
    """Records that fit, in the order given, and what had to be done.

    ``shortened`` maps a record's id to (tokens before, tokens after); ``refused`` maps an id to the tokens it still
    needs with all product text gone. Refused records are not among ``records``.
    """

    records: list[R]
    lengths: list[int]
    shortened: dict[str, tuple[int, int]]
    refused: dict[str, int]


def fit(judgment: Judgment[R], records: Sequence[R], count: CountTokens, max_length: int) -> Fitted[R]:
    """Shorten each record just as far as ``max_length`` tokens ask.

    Args:
        count: the tokens of each of several records, as rendered and encoded for the model at hand.
        max_length: tokens allowed, special tokens and chat template included.
    """
    fitted: Fitted[R] = Fitted([], [], {}, {})
    for record, tokens in zip(records, count(records), strict=True):
        if tokens > max_length:
            shorter, left = _shorten(judgment, record, count, max_length)
            if shorter is None:
                fitted.refused[record.id] = left
                continue
            fitted.shortened[record.id] = (tokens, left)
            record, tokens = shorter, left
        fitted.records.append(record)
        fitted.lengths.append(tokens)
    return fitted


def _shorten(judgment: Judgment[R], record: R, count: CountTokens, max_length: int) -> tuple[R | None, int]:
    """The longest of the record's shorter forms that fits, found by bisection: each form is shorter than the last."""
    # Forms are made anew for each look at one: all of them at once can be many times the record.
    forms, last = 0, record
    for forms, last in enumerate(judgment.shorter(record), 1):  # noqa: B007
        pass
    least = count([last])[0]
    if not forms or least > max_length:
        return None, least
    low, high = 0, forms - 1
    while low < high:
        middle = (low + high) // 2
        if count([_form(judgment, record, middle)])[0] <= max_length:
            high = middle
        else:
            low = middle + 1
    fitting = _form(judgment, record, high)
    return fitting, count([fitting])[0]


def _form(judgment: Judgment[R], record: R, place: int) -> R:
    return next(islice(judgment.shorter(record), place, None))
