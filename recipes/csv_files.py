"""CSV files: their rows as they stand, and as records, whose inner fields are columns with dots (``product.title``)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

from recipes.faults import Fault
from recipes.raw import Row, repeated, two_columns

# A cell under these names is JSON, or one entry a line; under any other it is text, even where it looks like JSON.
LISTS = ("script", "features", "products", "intents")
OBJECTS = ("product", "meta")


def csv_rows(reference: str) -> Iterator[Row | Fault]:
    """The rows of a CSV file in UTF-8 with a header, every cell a text."""
    csv.field_size_limit(2**31 - 1)
    number = 0
    try:
        with open(reference, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if twice := repeated(name for name in reader.fieldnames or () if name):
                yield from two_columns(reference, twice)
                return
            for number, value in enumerate(reader, 1):
                beyond = value.pop(None, None)  # cells beyond the header stand under None
                if beyond and any(cell.strip() for cell in beyond):
                    yield Fault(
                        reference, number, "", "cells beyond the header's columns; quote those that hold commas"
                    )
                else:
                    yield Row(number, value)
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        how = "close its quotes" if isinstance(error, csv.Error) else "save it in UTF-8"
        yield Fault(reference, None, "", f"cannot be read as CSV after row {number} ({error}); {how}")


def csv_records(reference: str) -> Iterator[Row | Fault]:
    """The rows of a CSV file as raw records; empty cells are absent fields."""
    for row in csv_rows(reference):
        yield Row(row.line, nested(row.value)) if isinstance(row, Row) else row


def nested(cells: Any) -> dict[str, Any]:
    """Cells by column as a raw record: ``{"product.title": "Lamp"}`` is ``{"product": {"title": "Lamp"}}``."""
    record: dict[str, Any] = {}
    for column, text in cells.items():
        if not isinstance(text, str) or not text.strip():
            continue
        *parents, name = column.strip().split(".")
        inner = record
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                break
        if isinstance(inner, dict):
            inner[name] = _value(name, text.strip())
    return record


def _value(name: str, text: str) -> Any:
    if name == "price":
        return _price(text)
    if name not in LISTS + OBJECTS:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return [line.strip() for line in text.splitlines() if line.strip()] if name in LISTS else text


def _price(text: str) -> float | str:
    """A number reads the same ("24.90") whether it came from JSON or from a cell."""
    try:
        return float(text)
    except ValueError:
        return text
