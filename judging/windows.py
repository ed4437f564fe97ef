"""Rows in windows: what is read, judged and written together, so that memory stays flat however long the input is."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from judging.answers import Answer
from recipes.faults import DataFaults, Fault
from recipes.raw import Row
from recipes.reading import understand
from recipes.rows import json_rows, read_rows


@dataclass(frozen=True)
class Window:
    """Rows that follow each other, the ``number``-th window of the input from 0; a row that is none is a fault."""

    number: int
    rows: list[Row | Fault]

    @cached_property
    def digest(self) -> str:
        """Tells whether another run saw the same rows here."""
        digest = hashlib.sha256()
        for row in self.rows:
            said = row.value if isinstance(row, Row) else row.message
            line = json.dumps([row.line, said], ensure_ascii=True, sort_keys=True, default=str)
            digest.update(line.encode("ascii") + b"\n")
        return digest.hexdigest()[:16]


def input_rows(reference: str, judgment: str) -> Iterator[Row | Fault]:
    """The rows of a reference (recipes.rows.read_rows), or of JSON lines on standard input for ``-``.

    Raises ValueError where standard input is closed.
    """
    if reference != "-":
        return read_rows(reference, judgment)
    if sys.stdin is None:
        raise ValueError("standard input is closed; give --data FILE")
    return json_rows("standard input", sys.stdin.buffer)


def windows(rows: Iterable[Row | Fault], size: int) -> Iterator[Window]:
    """Rows in windows of ``size``. Raises DataFaults for a fault of the input as a whole."""
    number = 0
    held: list[Row | Fault] = []
    for row in rows:
        if row.line is None:
            assert isinstance(row, Fault)
            raise DataFaults([row])
        if held and held[-1].line == row.line:  # a row after its own fault: the fault counts
            continue
        if len(held) == size:
            yield Window(number, held)
            number, held = number + 1, []
        held.append(row)
    if held:
        yield Window(number, held)


@dataclass(frozen=True)
class Read:
    """A row as it was understood: ``record`` of the model asked for, or the answer that says why it is none."""

    line: int
    id: str
    record: Any | None
    fault: Answer | None


def read(row: Row | Fault, model: Any) -> Read:
    """A row as a record of ``model``.

    A row needs no id: its line stands for one. What is not shown to a judge (label, group, meta) is not looked at.
    """
    if isinstance(row, Fault):
        detail = ": ".join(part for part in (row.field, row.message) if part)
        return Read(int(row.line or 0), str(row.line), None, Answer(reason="unreadable", detail=_writable(detail)))
    name = _writable(_id_of(row.value) or str(row.line))
    record, wrong = understand(model, {**shown(row.value), "id": str(row.line)})
    if record is None or wrong:
        detail = "; ".join(f"{field}: {message}" for field, message in wrong)
        return Read(row.line, name, None, Answer(reason="invalid", detail=_writable(detail)))
    return Read(row.line, name, record, None)


def _writable(text: str) -> str:
    """A text that UTF-8 can hold: half a surrogate pair is written out, as JSON escapes it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shown(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row that are looked at."""
    return {name: entry for name, entry in value.items() if name not in ("id", "label", "group", "meta")}


def _id_of(value: Mapping[str, Any]) -> str | None:
    found = value.get("id")
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) and str(found) else None


def records_of(reads: Sequence[Read]) -> list[Any]:
    """The records among rows, in their order."""
    return [one.record for one in reads if one.record is not None]
