"""Reading purchase intents from whatever holds them, with scores as filters; what is left out is counted by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.csv_files import csv_rows
from recipes.faults import DataFaults, Fault
from recipes.importing.files import Skipped, make, source_rows
from recipes.intents.judgment import INTENTS, IntentRecord, text_key
from recipes.intents.sources import Source, source_of
from recipes.raw import Row
from recipes.reading import read_records
from recipes.rows import file_rows


@dataclass(frozen=True)
class Filters:
    """Which right intents are kept: those with at least these scores of the source. One that lacks a score which is
    asked for is left out."""

    min_plausibility: float | None = None
    min_typicality: float | None = None


def read_intents(references: Sequence[str], filters: Filters | None = None) -> tuple[list[IntentRecord], Skipped]:
    """(the intents, each with a label, counts of what was left out by reason) of all references, in their order.

    A reference is a file in our ``intents`` format (JSONL, Parquet, CSV, a dataset of the hub), FolkScope's or MIND's
    CSV, IntentionQA's task 1 (JSONL), or ``sample:train``; a file is known by its columns.

    Raises DataFaults that name file, line and field, or ValueError where nothing is left.
    """
    filters = filters or Filters()
    skipped: Skipped = Counter()
    found = (record for reference in references for record in _read(reference, skipped))
    kept = _once([record for record in found if _passes(record, filters, skipped)], skipped)
    if not kept:
        why = "; ".join(f"{count} {reason}" for reason, count in skipped.items()) or "nothing in it"
        raise ValueError(f"{', '.join(references) or 'intents'}: no purchase intent is left ({why})")
    return kept, skipped


def _read(reference: str, skipped: Skipped) -> Iterator[IntentRecord]:
    source = _published(reference)
    if source is None:
        for record in read_records(INTENTS, reference, require_label=False):
            yield record if record.label is not None else record.model_copy(update={"label": 1})
        return
    for row in source_rows(Path(reference), source.need):
        try:
            made = list(source.read(row.value, skipped))
        except ValueError as error:
            raise DataFaults([Fault(reference, row.line, "", str(error))]) from error
        for number, fields in enumerate(made):
            one = make(IntentRecord, skipped, {"id": f"{source.name}-{row.line}-{number}", **fields})
            if one is not None:
                yield one


def _published(reference: str) -> Source | None:
    """The published source that a file's first row shows; None for our own format and what cannot be read."""
    if not Path(reference).is_file():
        return None
    if reference.lower().endswith(".csv"):
        rows: Iterator[Row | Fault] = csv_rows(reference)
    else:
        rows = file_rows(reference)
    first = next(rows, None)
    return source_of(first.value) if isinstance(first, Row) else None


def _passes(record: IntentRecord, filters: Filters, skipped: Skipped) -> bool:
    for name, least in (("plausibility", filters.min_plausibility), ("typicality", filters.min_typicality)):
        score = getattr(record, name)
        if least is not None and record.label == 1 and (score is None or score < least):
            skipped[f"without {name}" if score is None else f"of {name} below {least:g}"] += 1
            return False
    return True


def _once(records: Sequence[IntentRecord], skipped: Skipped) -> list[IntentRecord]:
    """Each pair once; what one row calls wrong and another right is right."""
    right = {_pair(record) for record in records if record.label == 1}
    kept: dict[tuple[str, str], IntentRecord] = {}
    for record in records:
        pair = _pair(record)
        if record.label == 0 and pair in right:
            skipped["called wrong that are right elsewhere"] += 1
        elif kept.setdefault(pair, record) is not record:
            skipped["repeated"] += 1
    return list(kept.values())


def _pair(record: IntentRecord) -> tuple[str, str]:
    return text_key(record.product.title), text_key(record.intent)
