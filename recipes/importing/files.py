"""What the sources share: rows of JSONL, Parquet or CSV, texts made clean, records made or skipped with a reason."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from recipes.base import NOT_TEXT, Record
from recipes.csv_files import csv_rows
from recipes.faults import DataFaults, Fault
from recipes.raw import Row
from recipes.reading import understand
from recipes.rows import file_rows

R = TypeVar("R", bound=Record)
Skipped = Counter[str]


@dataclass(frozen=True)
class Options:
    """Choices of the importer; each source uses those that its docstring names.

    ``negatives``: wrong products for each right one. ``yes``: grades that count as label 1. ``locale``: rows kept, None
    for all. ``products``: a second file with the products, where the source has one.
    """

    negatives: int = 1
    yes: tuple[str, ...] = ("E",)
    locale: str | None = "us"
    products: Path | None = None


def source_rows(path: Path, need: Sequence[str]) -> Iterator[Row]:
    """The rows of ``*.jsonl[.gz]``, ``*.parquet`` or ``*.csv``.

    Raises DataFaults at the first row that cannot be read or lacks one of the fields in ``need``.
    """
    if not path.is_file():
        raise DataFaults([Fault(str(path), None, "", "no such file; give the path of the published file")])
    for row in csv_rows(str(path)) if path.suffix.lower() == ".csv" else file_rows(str(path)):
        if isinstance(row, Fault):
            raise DataFaults([row])
        missing = [name for name in need if name not in row.value]
        if missing:
            there = ", ".join(str(name) for name in row.value)
            message = f"missing; this source has the fields {', '.join(need)}, the file has {there}"
            raise DataFaults([Fault(str(path), row.line, missing[0], message)])
        yield row


def clean(value: Any) -> str | None:
    """A shop's text as plain text: HTML tags and entities resolved, spaces collapsed; None where there is none."""
    if not isinstance(value, str):
        return None
    text = html.unescape(re.sub(r"</?[a-zA-Z][^<>]*>", " ", value))
    text = " ".join(re.sub(r"</?[a-zA-Z][^<>]*>", " ", text).split())
    return None if not text or text.lower() in NOT_TEXT else text


def entries(value: Any) -> list[Any]:
    """The entries of a list or an object; none of anything else, so that the record lacks them and is left out."""
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def group_name(text: str) -> str:
    """A text without case and punctuation, so that two spellings of one goal are one group."""
    return " ".join(re.findall(r"\w+", text.lower())) or text


def make(model: type[R], skipped: Skipped, fields: Mapping[str, Any]) -> R | None:
    """The record, or None with the reason counted in ``skipped``."""
    record, wrong = understand(model, fields)
    if wrong:
        field, message = wrong[0]
        skipped[f"{re.sub(r'[0-9]+', '', field)}: {message.split(';')[0]}"] += 1
    return None if wrong else record
