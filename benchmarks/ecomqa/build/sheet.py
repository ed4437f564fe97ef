"""Stage 7: a table for people, written and read back."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.ecomqa.build.items import Item, check_candidates
from benchmarks.ecomqa.build.tools import Drop, Sifted, dropped
from benchmarks.ecomqa.corpus import Passage
from benchmarks.results import write_text
from recipes.faults import DataFaults, Fault

STAGE = "human"
SHOWN = ("id", "task", "question", "answer", "candidates", "right_answers", "source")
FILLED = ("verdict", "question_as_corrected", "answer_as_corrected", "note")
VERDICTS = {"keep": "keep", "drop": "drop", "fix": "fix", "保留": "keep", "删除": "drop", "修改": "fix"}


def write_sheet(path: Path, items: Sequence[Item], passages: Mapping[str, Passage], right: Mapping[str, int]) -> None:
    """One row a question, for any spreadsheet program; the last four columns are to be filled in.

    Args:
        right: how many answerers got each item right.
    """
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow([*SHOWN, *FILLED])
    for item in items:
        about = [item.id, item.task, item.question, item.answer, " | ".join(item.candidates), right[item.id]]
        table.writerow([*map(_plain, [*about, passages[item.passage].content]), *[""] * len(FILLED)])
    # With a mark of its encoding, without which spreadsheet programs take Chinese for something else.
    write_text(path, "\ufeff" + text.getvalue())


def read_sheet(path: Path, items: Sequence[Item]) -> Sifted:
    """The items that people keep, with their corrections, and the drops with their notes.

    Raises:
        FileNotFoundError: there is no such file.
        DataFaults: a row has no verdict, or is missing, unknown or there twice.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such sheet; give the filled table as --sheet")
    rows = _rows(path)
    faults = _faults(str(path), rows, {item.id: item for item in items})
    if faults:
        raise DataFaults(faults)
    kept: list[Item] = []
    drops: list[Drop] = []
    found = {row["id"]: row for _, row in rows}
    for item in items:
        row = found[_plain(item.id)]
        if VERDICTS[row["verdict"].lower()] == "drop":
            drops.append(dropped(item, STAGE, row["note"] or "dropped in the sheet, without a note"))
        else:
            kept.append(_corrected(item, row["question_as_corrected"], row["answer_as_corrected"]))
    return kept, drops


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """(row as spreadsheets count, cells) of each row. A cell of several lines becomes one line, as drafts are."""
    csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if lacking := [name for name in ("id", *FILLED) if name not in (reader.fieldnames or ())]:
                message = f"no column {', '.join(lacking)}; keep the columns as written"
                raise DataFaults([Fault(str(path), 1, "", message)])
            return [
                (number, {name: " ".join((row.get(name) or "").split()) for name in ("id", *FILLED)})
                for number, row in enumerate(reader, 2)
            ]
    except UnicodeDecodeError as error:
        message = f"not UTF-8 at byte {error.start}; save it from the spreadsheet program as CSV UTF-8"
        raise DataFaults([Fault(str(path), None, "", message)]) from error
    except csv.Error as error:
        raise DataFaults([Fault(str(path), None, "", f"cannot be read as CSV ({error}); save it anew")]) from error


def _faults(where: str, rows: Sequence[tuple[int, Mapping[str, str]]], items: Mapping[str, Item]) -> list[Fault]:
    wanted = {_plain(each): item for each, item in items.items()}
    faults: list[Fault] = []
    seen: set[str] = set()
    for line, row in rows:
        if row["id"] not in wanted:
            faults.append(Fault(where, line, "id", f"{row['id']!r} is no question of this build; take the row out"))
        elif row["id"] in seen:
            faults.append(Fault(where, line, "id", f"{row['id']!r} has a row already; keep one"))
        elif row["verdict"].lower() not in VERDICTS:
            given = f"{row['verdict']!r} is no verdict" if row["verdict"] else "empty"
            faults.append(Fault(where, line, "verdict", f"{given}; write keep, fix or drop"))
        elif VERDICTS[row["verdict"].lower()] == "fix" and not (
            row["question_as_corrected"] or row["answer_as_corrected"]
        ):
            faults.append(Fault(where, line, "verdict", "fix, but nothing is corrected; write the question or answer"))
        elif wrong := _wrong_correction(wanted[row["id"]], row):
            faults.append(Fault(where, line, "answer_as_corrected", wrong))
        seen.add(row["id"])
    missing = sorted(set(wanted) - seen)
    return faults + [Fault(where, None, name, "has no row; keep a row for each question") for name in missing]


def _wrong_correction(item: Item, row: Mapping[str, str]) -> str | None:
    """What is wrong with the choice that a correction makes, by the rules of drafting."""
    if not item.choice or VERDICTS[row["verdict"].lower()] == "drop":
        return None
    fixed = _corrected(item, row["question_as_corrected"], row["answer_as_corrected"])
    try:
        check_candidates(fixed.answer, fixed.candidates, True, "the row")
    except ValueError as error:
        return f"{error}; write another answer, or drop the question"
    return None


def _corrected(item: Item, question: str, answer: str) -> Item:
    """The item in its corrected words; a choice's corrected answer takes the old one's place among the candidates."""
    candidates = item.candidates
    if answer and item.choice and answer not in candidates:
        candidates = tuple(answer if one == item.answer else one for one in candidates)
    return replace(item, question=question or item.question, answer=answer or item.answer, candidates=candidates)


def _plain(value: object) -> str:
    """A cell that no spreadsheet program takes for a formula."""
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
