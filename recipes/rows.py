"""Where raw records come from: JSONL, Parquet, CSV, the shipped sample, the hub; a row or a fault at a time."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from recipes.csv_files import csv_records
from recipes.faults import Fault, kind
from recipes.raw import Row, repeated, two_columns

LONGEST_LINE = 16 * 1024 * 1024  # bytes; a record is some kilobytes, a longer line is a file without line ends
LINES = re.compile(r"\.(jsonl?|ndjson)(\.gz)?$", re.IGNORECASE)
FILE = re.compile(r"\.(jsonl?|ndjson|gz|parquet|csv|tsv|txt)$", re.IGNORECASE)
SPLITS = ("train", "validation", "test")
HUB = re.compile(r"(?P<name>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>[^:@]+))?(:(?P<split>[^:]+))?")


def read_rows(reference: str, judgment: str) -> Iterator[Row | Fault]:
    """The rows that a reference names, in order; what cannot be read comes as a fault, and reading goes on if it can.

    A reference is a file (``*.jsonl``, ``*.ndjson`` or ``*.json`` with a record a line, each also ``.gz``;
    ``*.parquet``; or ``*.csv``, see recipes.csv_files), ``sample:train``, ``sample:validation`` or ``sample:test`` (the
    shipped sample of that judgment), or a dataset of the hub, ``org/name[@revision][:split]``, looked up only where no
    such path exists here.
    """
    path = Path(reference)
    if reference.startswith("sample:"):
        yield from _sample_rows(reference, judgment)
    elif not reference or _not_there(path):
        yield Fault(reference or "''", None, "", f"{_not_there(path) or 'no name'}; name a file that can be read")
    elif path.is_dir():
        yield Fault(reference, None, "", "a folder; name a file in it")
    elif path.exists():
        yield from file_rows(reference)
    elif (hub := HUB.fullmatch(reference)) and not FILE.search(reference):
        yield from _hub_rows(reference, hub["name"], hub["revision"], hub["split"])
    else:
        yield Fault(reference, None, "", "no such file; give a file, sample:train or a hub dataset org/name:split")


def _not_there(path: Path) -> str | None:
    """Why the system does not even say whether there is such a file (a forbidden folder, a text for a name)."""
    try:
        path.exists()
    except OSError as error:
        return str(error.strerror)
    return None


def file_rows(reference: str) -> Iterator[Row | Fault]:
    """The rows of a JSONL, Parquet or CSV file, whichever its name says it is."""
    if reference.lower().endswith(".parquet"):
        yield from _parquet_rows(reference)
    elif reference.lower().endswith(".csv"):
        yield from csv_records(reference)
    elif LINES.search(reference):
        yield from _json_rows(reference)
    else:
        yield Fault(reference, None, "", "unknown kind of file; give .jsonl, .jsonl.gz, .parquet or .csv")


def _json_rows(reference: str) -> Iterator[Row | Fault]:
    try:
        with gzip.open(reference) if reference.lower().endswith(".gz") else open(reference, "rb") as file:
            yield from json_rows(reference, file)
    except OSError as error:
        advice = "see that you may read it" if isinstance(error, PermissionError) else "make the file anew"
        yield Fault(reference, None, "", f"cannot be read ({error.strerror or error}); {advice}")


def json_rows(where: str, file: gzip.GzipFile | IO[bytes]) -> Iterator[Row | Fault]:
    """The rows of JSON lines as they come; ``where`` is what faults call their source."""
    line = 0
    try:
        for line, (start, raw) in enumerate(_lines(file), 1):
            if line == 1 and (other := _not_lines(raw)):
                yield Fault(where, None, "", other)
                return
            yield from _json_row(where, line, raw, start)
    except (OSError, EOFError, zlib.error) as error:
        yield Fault(where, None, "", f"cannot be read after line {line} ({error}); make the file anew")


def _lines(file: gzip.GzipFile | IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(first byte in the file, line); of a line over the limit only the beginning, the rest is passed over."""
    start = 0
    while raw := file.readline(LONGEST_LINE + 1):
        yield start, raw
        start += len(raw)
        while len(raw) > LONGEST_LINE and not raw.endswith(b"\n"):
            raw = file.readline(LONGEST_LINE + 1)
            start += len(raw)


def _not_lines(first: bytes) -> str | None:
    """What is wrong with the file as a whole, as far as its first line tells."""
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "encoded as UTF-16; save the file as UTF-8"
    if b"\0" in first:
        return "holds zero bytes (UTF-16 without its mark, or a file that was never written whole); save it as UTF-8"
    if re.match(rb"(\xef\xbb\xbf)?\s*\[\s*(\{|$)", first):
        return "one JSON list; write each record as an object on its own line (JSONL)"
    return None


def _json_row(where: str, line: int, raw: bytes, start: int) -> Iterator[Row | Fault]:
    """One line as a row, with faults where there are some. ``start`` is the line's first byte in the file."""
    if len(raw) > LONGEST_LINE:
        yield Fault(where, line, "", f"longer than {LONGEST_LINE} bytes; give one record a line")
        return
    try:
        text = raw.decode("utf-8").lstrip("\ufeff").strip()
    except UnicodeDecodeError as error:
        bad, at = raw[error.start], start + error.start
        yield Fault(where, line, "", f"byte 0x{bad:02x} at offset {at} of the file is not UTF-8; save it as UTF-8")
        return
    if text:
        yield from _parsed(where, line, text)


def _parsed(where: str, line: int, text: str) -> Iterator[Row | Fault]:
    twice: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.extend(repeated(name for name, _ in pairs))
        return found

    try:
        value = json.loads(text, object_pairs_hook=collect)
    except json.JSONDecodeError as error:
        yield Fault(where, line, "", f"not JSON at column {error.colno} ({error.msg}); write one object on one line")
    except RecursionError:
        yield Fault(where, line, "", "nested too deeply to be read; make it flatter")
    except ValueError:  # the only one left: an integer of more digits than Python converts
        yield Fault(where, line, "", "holds a number of thousands of digits; give a real one")
    else:
        yield from (Fault(where, line, name, "named twice in one object; keep one of the two") for name in twice)
        if isinstance(value, dict):
            yield Row(line, value)
        else:
            yield Fault(where, line, "", f"{kind(value)} where an object belongs; write one record a line as {{...}}")


def _parquet_rows(reference: str) -> Iterator[Row | Fault]:
    import pyarrow.parquet as parquet
    from pyarrow import ArrowException

    row = 0
    try:
        with parquet.ParquetFile(reference) as file:
            if twice := repeated(file.schema_arrow.names):
                yield from two_columns(reference, twice)
                return
            for batch in file.iter_batches(batch_size=1024):
                for value in batch.to_pylist(maps_as_pydicts="lossy"):
                    row += 1
                    yield Row(row, value)
    except (ArrowException, OSError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        yield Fault(reference, None, "", f"cannot be read as Parquet after row {row} ({first}); make the file anew")


def _sample_rows(reference: str, judgment: str) -> Iterator[Row | Fault]:
    split = reference.removeprefix("sample:")
    if split not in SPLITS:
        yield Fault(reference, None, "", f"the sample has no such split; give one of {', '.join(SPLITS)}")
        return
    if judgment == "intents" and split != "train":
        yield Fault(reference, None, "", "intents of held-out products would give answers away; give sample:train")
        return
    from recipes.sample.build import build_split
    from recipes.sample.intents import training_intents

    records = training_intents() if judgment == "intents" else build_split(judgment, split)
    for number, record in enumerate(records, 1):
        yield Row(number, record.model_dump())


def _hub_rows(reference: str, name: str, revision: str | None, split: str | None) -> Iterator[Row | Fault]:
    try:
        from datasets import load_dataset

        found = load_dataset(name, revision=revision, split=split)
        if split is None:
            if len(found) != 1:
                splits = ", ".join(found)
                yield Fault(reference, None, "", f"has the splits {splits}; name one, as in {name}:{next(iter(found))}")
                return
            found = next(iter(found.values()))
        for number, value in enumerate(found, 1):
            yield Row(number, value)
    except Exception as error:  # network, rights, names, formats: whatever a remote answers is told in words
        first = str(error).splitlines()[0] if str(error) else ""
        told = f"{type(error).__name__}: {first}" if first else type(error).__name__
        message = (
            f"no such file, and as a hub dataset it cannot be read ({told}); check the name, the split, the rights"
        )
        yield Fault(reference, None, "", message)
