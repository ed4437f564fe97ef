"""Reading records: every fault of a file is gathered and told in words; a file without faults becomes records.

BOM, CRLF, blank lines and nulls in optional fields are simply understood, and so are true/false, "yes"/"no" and 0/1 as
labels. See recipes.rows for what a reference may be and recipes.faults for how fields are written (``script[3].step``,
counted from 1).
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from recipes.base import Judgment, Record, short_repr, understood_label
from recipes.faults import DataFaults, Fault, explain, unknown_fields
from recipes.raw import Row
from recipes.rows import read_rows

R = TypeVar("R", bound=Record)
M = TypeVar("M", bound=BaseModel)
DEEPEST = 50
HALF = re.compile("[\ud800-\udfff]")
log = logging.getLogger(__name__)


def read_records(judgment: Judgment[R], reference: str, require_label: bool = True) -> list[R]:
    """The records of a reference, in order. Warnings (unknown fields) are logged.

    Args:
        require_label: for data to learn from or to be examined on: every record has a label and both labels occur.

    Raises DataFaults (a ValueError) that names what is wrong, where, and what to do.
    """
    records, faults, warnings = check(judgment, reference, require_label)
    for warning in warnings:
        log.warning("%s", warning)
    if faults:
        raise DataFaults(faults)
    return records


Checked = tuple[list[R], list[Fault], list[Fault]]


def check(judgment: Judgment[R], reference: str, require_label: bool = True) -> Checked[R]:
    """(the valid records, all faults, warnings) of a reference; raises nothing for what the data hold."""
    records: list[R] = []
    faults: list[Fault] = []
    model = cast(type[R], judgment.record)
    seen = _Seen(reference, model)
    for row in read_rows(reference, judgment.name):
        if isinstance(row, Fault):
            faults.append(row)
            seen.whole = False
            continue
        record, wrong = understand(model, row.value)
        wrong += seen.take(row)
        faults += [Fault(reference, row.line, field, message) for field, message in wrong]
        if record is not None and not wrong:
            records.append(record)
    if not seen.rows and not faults:
        faults.append(Fault(reference, None, "", "no records; give at least one"))
    return records, faults + (seen.label_faults() if require_label else []), seen.warnings()


def fingerprint(records: Iterable[Record]) -> str:
    """sha256 (hex) over the records as canonical JSON, one a line, in the order given; absent fields leave no trace."""
    digest = hashlib.sha256()
    for record in records:
        fields = record.model_dump(exclude_defaults=True)
        line = json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
        digest.update(line.encode("ascii") + b"\n")
    return digest.hexdigest()


class _Seen:
    """What only the rows together tell: repeated ids, labels that are missing or all the same, unknown fields."""

    def __init__(self, where: str, model: type[Record]) -> None:
        self.where, self.model = where, model
        self.rows, self.whole = 0, True
        self.ids: dict[str, int] = {}
        self.labels: Counter[int | None] = Counter()
        self.unlabelled: list[int] = []
        self.unknown: dict[tuple[str, str], list[int]] = {}

    def take(self, row: Row) -> list[tuple[str, str]]:
        """Note a row; returns what is wrong with it in the light of the rows before."""
        self.rows += 1
        for slip in dict.fromkeys(unknown_fields(row.value, self.model)):
            self.unknown.setdefault(slip, []).append(row.line)
        label, name = row.value.get("label"), row.value.get("id")
        if label is None:
            self.unlabelled.append(row.line)
        else:
            self.labels[understood_label(label)] += 1
        if not isinstance(name, str):
            return []
        name = " ".join(name.split())
        first = self.ids.setdefault(name, row.line)
        if first == row.line:
            return []
        return [("id", f"{short_repr(name)} is the id of line {first} too; give each record its own")]

    def label_faults(self) -> list[Fault]:
        found = []
        if self.unlabelled:
            share = f"{len(self.unlabelled)} of {counted(self.rows, 'record')}"
            first = self.unlabelled[0]
            found.append(f"missing in {share}, first at line {first}; give 1 (yes, it holds) or 0 to every record")
        if self.whole and len(self.labels) == 1 and None not in self.labels:
            ((only, count),) = self.labels.items()
            all_of = f"all labels are {only} ({counted(count, 'record')})"
            found.append(f"{all_of}; a judge needs both, add records labelled {0 if only else 1}")
        return [Fault(self.where, None, "label", message) for message in found]

    def warnings(self) -> list[Fault]:
        """One for each unknown field, at its first line."""
        found = []
        for (field, nearest), lines in self.unknown.items():
            ignored = f"unknown field, ignored in {counted(len(lines), 'record')}"
            advice = f"did you mean {nearest!r}? What is only to be kept belongs under 'meta'"
            found.append(Fault(self.where, lines[0], field, f"{ignored}; {advice}"))
        return found


def counted(number: int, what: str) -> str:
    """A number with its noun: "1 record", "2 records"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def understand(model: type[M], raw: Mapping[str, Any]) -> tuple[M | None, list[tuple[str, str]]]:
    """A raw record as (record of ``model`` or None, [(field, what is wrong; what to do)])."""
    wrong: list[tuple[str, str]] = []
    known = {name: _plain(value, name, wrong) for name, value in raw.items() if name in model.model_fields}
    found = {field for field, _ in wrong}
    try:
        return model.model_validate({name: value for name, value in known.items() if value is not None}), wrong
    except ValidationError as error:
        # A list whose entries are all wrong is "too short" for pydantic as well; only an empty one is so for us.
        real = [one for one in error.errors(include_url=False) if one["type"] != "too_short" or not one["input"]]
        told = (explain(one, model) for one in real)
        return None, wrong + [(field, message) for field, message in told if field not in found]


def _plain(value: Any, path: str, wrong: list[tuple[str, str]], depth: int = 0) -> Any:
    """A value as plain JSON: nulls in objects (Parquet's way to say "absent") go, dates and decimals are converted."""
    if depth > DEEPEST:
        wrong.append((path, f"nested deeper than {DEEPEST} levels; make it flatter"))
        return None
    if isinstance(value, Mapping):
        if any(HALF.search(name) for name in value):
            wrong.append((path, "a name in it holds half a character (a lone surrogate); write it as UTF-8"))
            return None
        inner = {name: _plain(entry, f"{path}.{name}", wrong, depth + 1) for name, entry in value.items()}
        kept = {name: entry for name, entry in inner.items() if entry is not None}
        return kept if kept or not value else None
    if isinstance(value, list | tuple):
        return [_plain(entry, f"{path}[{place}]", wrong, depth + 1) for place, entry in enumerate(value, 1)]
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        wrong.append((path, f"{value} is not a number; give one, or leave the field out"))
        return None
    if isinstance(value, str) and HALF.search(value):
        wrong.append((path, "holds half a character (a lone surrogate); write the text as UTF-8"))
        return None
    return value
