"""Sheets as people and their programs leave them: what is read, what is refused in words, what is written anew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ecomscript.build.sheets import read_votes, write_sheets
from recipes.faults import DataFaults
from recipes.script_verify import SCRIPT_VERIFY, ScriptRecord


def test_a_sheet_saved_anew_without_votes_stays_and_one_as_written_is_written_anew(tmp_path: Path) -> None:
    one, other = (ScriptRecord(id=name, goal="Rest", script=("Sit",)) for name in ("a", "z"))
    write_sheets(tmp_path, SCRIPT_VERIFY, [one], 2)
    write_sheets(tmp_path, SCRIPT_VERIFY, [other], 2)
    path = tmp_path / "script_verify.csv"
    assert "\r\nz," in path.read_bytes().decode()
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    before = path.read_bytes()
    assert read_votes(tmp_path, "script_verify", ["z"]) is None
    write_sheets(tmp_path, SCRIPT_VERIFY, [one], 2)
    assert path.read_bytes() == before


def test_a_cell_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "script_verify.csv").write_text(f"id,item,vote_1\na,{'x' * 200_000},1\n")
    assert read_votes(tmp_path, "script_verify", ["a"]) == {"a": [1]}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"votes": [1, 1, 0]}, "jsonl:2: votes: 3 votes, but 2 in line 1; write null for a missing vote"),
        ({"votes": [None, None], "vote_1": 1}, "jsonl:2: vote_1: no field of a sheet"),
    ],
)
def test_faults_of_votes_as_json_lines_are_told(tmp_path: Path, second: dict[str, Any], message: str) -> None:
    lines = [{"id": "a", "votes": [1, 0]}, {"id": "c", **second}]
    (tmp_path / "script_verify.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(DataFaults, match=re.escape(message)):
        read_votes(tmp_path, "script_verify", ["a", "c"])
