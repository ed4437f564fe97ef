"""Sheets for annotators, written and read back: one row an item, a column for each vote, as CSV and as JSON lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import to_line, write_text
from recipes.base import Judgment, Record, short_repr, understood_label
from recipes.faults import DataFaults, Fault
from recipes.rows import file_rows

Votes = list[int | None]
VOTE = re.compile(r"vote_(\d+)")


def write_sheets(folder: Path, judgment: Judgment[Any], records: Sequence[Record], votes: int) -> None:
    """Write ``<judgment>.csv`` and ``<judgment>.jsonl``: what is asked, the item as text, and room for the votes.

    Either may be filled in: yes or no (or 1 and 0) a vote, nothing where an annotator did not say.
    """
    shown = [
        {"id": one.id, "question": judgment.question, "item": judgment.render(one, "plain").text.strip()}
        for one in records
    ]
    text = io.StringIO()
    table = csv.writer(text)
    names = [f"vote_{number}" for number in range(1, votes + 1)]
    table.writerow(["id", "question", "item", *names])
    for one in shown:
        table.writerow([*map(plain_cell, one.values()), *[""] * votes])
    # With a mark of its encoding, without which spreadsheet programs take accents for something else.
    write_text(folder / f"{judgment.name}.csv", "\ufeff" + text.getvalue())
    write_text(folder / f"{judgment.name}.jsonl", "".join(to_line({**one, "votes": [None] * votes}) for one in shown))


def read_votes(folder: Path, judgment: str, ids: Sequence[str]) -> dict[str, Votes] | None:
    """Id -> votes (None where one is missing) of every item, from the sheet that has any; None if no sheet has.

    Raises DataFaults where a vote cannot be read, an item is missing, unknown or there twice, or both have votes.
    """
    paths = [path for ending in ("csv", "jsonl") if (path := folder / f"{judgment}.{ending}").is_file()]
    read = {path: (_csv_votes if path.suffix == ".csv" else _json_votes)(path) for path in paths}
    filled = [path for path, rows in read.items() if any(_given(vote) for _, _, votes in rows for vote in votes)]
    if len(filled) > 1:
        told = f"has votes, and {filled[1].name} as well; empty one of them"
        raise DataFaults([Fault(str(filled[0]), None, "", told)])
    if not filled:
        return None
    return _understood(str(filled[0]), read[filled[0]], ids)


Raw = list[tuple[int, str, list[Any]]]  # (line, id, votes as they are written)


def _csv_votes(path: Path) -> Raw:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        columns = sorted((name for name in reader.fieldnames or () if VOTE.fullmatch(name)), key=_number)
        if not columns or "id" not in (reader.fieldnames or ()):
            raise DataFaults([Fault(str(path), 1, "", "no column id, or none vote_1; keep the columns as written")])
        return [
            (reader.line_num, (row["id"] or "").strip(), [(row[name] or "").strip() for name in columns])
            for row in reader
        ]


def _json_votes(path: Path) -> Raw:
    rows: Raw = []
    for row in file_rows(str(path)):
        if isinstance(row, Fault):
            raise DataFaults([row])
        votes = row.value.get("votes")
        if not isinstance(votes, list):
            raise DataFaults([Fault(str(path), row.line, "votes", "no list; write one such as [1, 0, null]")])
        rows.append((row.line, str(row.value.get("id", "")), votes))
    return rows


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
    faults += [Fault(where, None, each, "has no row; keep a row for each item") for each in ids if each not in found]
    if faults:
        raise DataFaults(faults)
    return {each: found[each] for each in ids}


def _vote(where: str, line: int, number: int, vote: Any, faults: list[Fault]) -> int | None:
    if not _given(vote):
        return None
    label = understood_label(vote)
    if label is None:
        faults.append(Fault(where, line, f"vote_{number}", f"{short_repr(vote)} is no vote; write yes or no"))
    return label


def _given(vote: Any) -> bool:
    return vote is not None and vote != ""


def _number(column: str) -> int:
    match = VOTE.fullmatch(column)
    assert match is not None
    return int(match[1])


def plain_cell(value: object) -> str:
    """A cell that no spreadsheet program takes for a formula."""
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
