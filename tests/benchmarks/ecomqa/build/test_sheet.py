"""People's sheet: nothing is a formula, faults are told, corrections keep to the rules."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ecomqa.build.items import Item
from benchmarks.ecomqa.build.sheet import read_sheet, write_sheet
from benchmarks.ecomqa.corpus import Passage
from recipes.faults import DataFaults

ITEMS = [
    Item("a", "IDC", "问一？", "答", False, ("甲", "乙", "丙"), "p"),
    Item("=b", "CC", "问二？", "红", True, ("红", "绿"), "p"),
]


def sheet(path: Path) -> list[dict[str, str]]:
    write_sheet(path, ITEMS, {"p": Passage("p", "题", "文")}, {"a": 1, "=b": 0})
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def filled(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_sheet_holds_nothing_that_is_taken_for_a_formula_and_comes_back_whole(tmp_path: Path) -> None:
    rows = sheet(tmp_path / "s.csv")
    assert [row["id"] for row in rows] == ["a", "'=b"]
    assert (tmp_path / "s.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    for row in rows:
        row["verdict"] = "keep"
    kept, dropped = read_sheet(filled(tmp_path / "s.csv", rows), ITEMS)
    assert kept == ITEMS and dropped == []


def test_a_corrected_answer_takes_its_place_among_the_choices(tmp_path: Path) -> None:
    rows = sheet(tmp_path / "s.csv")
    rows[0]["verdict"], rows[0]["note"] = "drop", ""
    rows[1]["verdict"], rows[1]["answer_as_corrected"] = "fix", "大红"
    kept, dropped = read_sheet(filled(tmp_path / "s.csv", rows), ITEMS)
    assert kept[0].answer == "大红" and kept[0].candidates == ("大红", "绿")
    assert (dropped[0].id, dropped[0].stage, dropped[0].reason) == (
        "a",
        "human",
        "dropped in the sheet, without a note",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].update(verdict=""), "s.csv:2: verdict: empty"),
        (lambda rows: rows[0].update(verdict="perhaps"), "'perhaps' is no verdict; write keep, fix or drop"),
        (lambda rows: rows[0].update(verdict="fix"), "fix, but nothing is corrected"),
        (lambda rows: rows[0].update(id="z"), "'z' is no question of this build"),
        (lambda rows: rows.append(dict(rows[0])), "'a' has a row already"),
        (lambda rows: rows.pop(), "s.csv: '=b: has no row"),
        (lambda rows: [row.pop("note") for row in rows], "s.csv:1: no column note"),
    ],
)
def test_faults_of_a_sheet_are_told(tmp_path: Path, change: Callable[[Any], Any], message: str) -> None:
    rows = sheet(tmp_path / "s.csv")
    for row in rows:
        row["verdict"] = "keep"
    change(rows)
    with pytest.raises(DataFaults, match=re.escape(message)):
        read_sheet(filled(tmp_path / "s.csv", rows), ITEMS)


@pytest.mark.parametrize("encoding", ["gbk", "utf-16"])
def test_a_sheet_in_another_encoding_is_told_with_advice(tmp_path: Path, encoding: str) -> None:
    filled(tmp_path / "s.csv", sheet(tmp_path / "s.csv"))
    text = (tmp_path / "s.csv").read_text("utf-8-sig")
    (tmp_path / "s.csv").write_text(text, encoding=encoding)
    with pytest.raises(DataFaults, match=r"s\.csv: not UTF-8 at byte \d+; save it from .* as CSV UTF-8"):
        read_sheet(tmp_path / "s.csv", ITEMS)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("红,蓝", "s.csv:3: answer_as_corrected: the candidate '红,蓝' of the row holds a comma"),
        ("红、蓝", "holds a comma"),
        ("绿", None),
        ("大\n红", None),
    ],
)
def test_a_corrected_choice_keeps_to_the_rules_of_drafting(tmp_path: Path, answer: str, message: str | None) -> None:
    rows = sheet(tmp_path / "s.csv")
    rows[0].update(verdict="fix", question_as_corrected="问\n什么？", answer_as_corrected="两\n行")
    rows[1].update(verdict="fix", answer_as_corrected=answer)
    path = filled(tmp_path / "s.csv", rows)
    if message:
        with pytest.raises(DataFaults, match=re.escape(message)):
            read_sheet(path, ITEMS)
    else:
        kept, _ = read_sheet(path, ITEMS)
        assert (kept[0].question, kept[0].answer) == ("问 什么？", "两 行")  # on one line, nothing is lost
        assert kept[1].answer == " ".join(answer.split()) and kept[1].answer in kept[1].candidates


def test_a_cell_may_be_long(tmp_path: Path) -> None:
    rows = sheet(tmp_path / "s.csv")
    for row in rows:
        row.update(verdict="drop", note="长" * 140_000)
    _, drops = read_sheet(filled(tmp_path / "s.csv", rows), ITEMS)
    assert {len(drop.reason) for drop in drops} == {140_000}
