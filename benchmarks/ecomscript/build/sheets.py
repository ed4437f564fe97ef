"""Sheets for annotators, written and read back: one row an item, a column for each vote, as CSV and as JSON lines.

``.written.json`` beside them says what was written last. A sheet that is no longer that is somebody's work: it is read
strictly, so that no vote is overlooked, and never written over.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.results import to_json, to_line, write_text
from models.manifest import sha256
from recipes.base import Judgment, Record, short_repr, understood_label
from recipes.csv_files import csv_rows
from recipes.faults import DataFaults, Fault
from recipes.rows import file_rows

Votes = list[int | None]
SHOWN = ("id", "question", "item")
VOTE = re.compile(r"vote_(\d+)")
WRITTEN = ".written.json"  # sheet -> sha256 of it as it was written last


def write_sheets(folder: Path, judgment: Judgment[Any], records: Sequence[Record], votes: int) -> None:
    """Write ``<judgment>.csv`` and ``<judgment>.jsonl``: what is asked, the item as text, and room for the votes.

    Either may be filled in: yes or no (or 1 and 0) a vote, nothing where an annotator did not say. One that is no
    longer as it was written last stays as it is.
    """
    shown = [
        dict(zip(SHOWN, (one.id, judgment.question, judgment.render(one, "plain").text.strip()), strict=True))
        for one in records
    ]
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow([*SHOWN, *(f"vote_{number}" for number in range(1, votes + 1))])
    for one in shown:
        table.writerow([*map(plain_cell, one.values()), *[""] * votes])
    sheets = {
        # With a mark of its encoding, without which spreadsheet programs take accents for something else.
        f"{judgment.name}.csv": "\ufeff" + text.getvalue(),
        f"{judgment.name}.jsonl": "".join(to_line({**one, "votes": [None] * votes}) for one in shown),
    }
    written = _written(folder)
    for path in (folder / name for name in sheets if not _touched(folder / name)):
        write_text(path, sheets[path.name])
        written[path.name] = sha256(path)
    write_text(folder / WRITTEN, to_json(written))


def _written(folder: Path) -> dict[str, str]:
    path = folder / WRITTEN
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _touched(path: Path) -> bool:
    """Whether a sheet is there and not as it was written last."""
    return path.is_file() and sha256(path) != _written(path.parent).get(path.name)


def read_votes(folder: Path, judgment: str, ids: Sequence[str]) -> dict[str, Votes] | None:
    """Id -> votes (None where one is missing) of every item, from the sheet that has any; None if no sheet has.

    Raises DataFaults where a sheet or a vote cannot be read, an item is missing, unknown or there twice, or both
    sheets have votes.
    """
    paths = [path for ending in ("csv", "jsonl") if _touched(path := folder / f"{judgment}.{ending}")]
    read = {path: (_csv_votes if path.suffix == ".csv" else _json_votes)(path) for path in paths}
    found = {path: _understood(str(path), rows, ids) for path, rows in read.items()}
    filled = [path for path in paths if any(vote is not None for votes in found[path].values() for vote in votes)]
    if len(filled) > 1:
        told = f"has votes, and {filled[1].name} as well; empty one of them"
        raise DataFaults([Fault(str(filled[0]), None, "", told)])
    return found[filled[0]] if filled else None


Raw = list[tuple[int, str, list[Any]]]  # (line, id, votes as they are written)


def _csv_votes(path: Path) -> Raw:
    """The rows, numbered as spreadsheet programs do, the header being the first."""
    _check_separator(path)
    rows: Raw = []
    faults: list[Fault] = []
    for row in csv_rows(str(path)):
        if isinstance(row, Fault):
            faults.append(row if row.line is None else replace(row, line=row.line + 1))
            continue
        if not rows:
            _check_columns(path, list(row.value))
        columns = sorted(filter(VOTE.fullmatch, row.value), key=_number)
        id_, *votes = ((row.value[name] or "").strip() for name in ("id", *columns))
        rows.append((row.line + 1, id_, votes))
    if faults:
        raise DataFaults(faults)
    return rows


def _check_separator(path: Path) -> None:
    with path.open("rb") as file:
        header = file.readline()
    for separator, name in ((b";", "semicolons"), (b"\t", "tabs")):
        if separator in header and b"," not in header:
            told = f"its columns are separated by {name}; save it as CSV with commas, or fill in the .jsonl instead"
            raise DataFaults([Fault(str(path), 1, "", told)])


def _check_columns(path: Path, names: Sequence[str]) -> None:
    """Raises DataFaults where a column is missing, or there is another, in which a vote might be overlooked."""
    if "id" not in names or not any(map(VOTE.fullmatch, names)):
        raise DataFaults([Fault(str(path), 1, "", "no column id, or none vote_1; keep the columns as written")])
    unknown = [name for name in names if name not in SHOWN and not VOTE.fullmatch(name)]
    _refuse_unknown(path, 1, unknown, "no column of a sheet; name those of votes vote_1, vote_2, ..., take others out")


def _json_votes(path: Path) -> Raw:
    rows: Raw = []
    faults: list[Fault] = []
    for row in file_rows(str(path)):
        if isinstance(row, Fault):
            faults.append(row)
            continue
        unknown = [name for name in row.value if name not in (*SHOWN, "votes")]
        _refuse_unknown(path, row.line, unknown, "no field of a sheet; write the votes as a list votes, take it out")
        votes = row.value.get("votes")
        if not isinstance(votes, list):
            faults.append(Fault(str(path), row.line, "votes", "no list; write one such as [1, 0, null]"))
        elif rows and len(votes) != len(rows[0][2]):
            told = f"{len(votes)} votes, but {len(rows[0][2])} in line {rows[0][0]}; write null for a missing vote"
            faults.append(Fault(str(path), row.line, "votes", told))
        else:
            rows.append((row.line, str(row.value.get("id", "")), votes))
    if faults:
        raise DataFaults(faults)
    return rows


def _refuse_unknown(path: Path, line: int, names: Sequence[str], told: str) -> None:
    if names:
        raise DataFaults([Fault(str(path), line, name or "(no name)", told) for name in names])


def _understood(where: str, rows: Raw, ids: Sequence[str]) -> dict[str, Votes]:
    known = {plain_cell(each): each for each in ids} | {each: each for each in ids}
    found: dict[str, Votes] = {}
    faults: list[Fault] = []
    for line, given, raw in rows:
        if given not in known:
            faults.append(Fault(where, line, "id", f"{given!r} is no item of this sample; take the row out"))
        elif known[given] in found:
            faults.append(Fault(where, line, "id", f"{given!r} has a row already; keep one"))
        else:
            found[known[given]] = [_vote(where, line, number, vote, faults) for number, vote in enumerate(raw, 1)]
    told = "has no row; keep a row for each item, or take the file away to have it written anew"
    faults += [Fault(where, None, each, told) for each in ids if each not in found]
    if faults:
        raise DataFaults(faults)
    return {each: found[each] for each in ids}


def _vote(where: str, line: int, number: int, vote: Any, faults: list[Fault]) -> int | None:
    if vote is None or vote == "":
        return None
    label = understood_label(vote)
    if label is None:
        faults.append(Fault(where, line, f"vote_{number}", f"{short_repr(vote)} is no vote; write yes or no"))
    return label


def _number(column: str) -> int:
    match = VOTE.fullmatch(column)
    assert match is not None
    return int(match[1])


def plain_cell(value: object) -> str:
    """A cell that no spreadsheet program takes for a formula."""
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
