"""CSV files as records: columns with dots are inner fields, and a record reads the same as from JSON."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from recipes.csv_files import csv_rows, nested
from recipes.faults import DataFaults, Fault
from recipes.raw import Row
from recipes.reading import read_records
from recipes.rows import json_rows
from recipes.script_verify import SCRIPT_VERIFY
from recipes.step_product import STEP_PRODUCT


def test_a_record_reads_the_same_from_csv_as_from_json(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(
        "\ufeffid,goal,step,product.title,product.features,product.price,label,seen\n"
        '1,bake,heat,"[2 pack] Lamp, ""warm""","[""10 m"", ""dimmable""]",24.9,yes,\n'
        '2,bake,"heat\nit",Oven,"steel\n 40 l ",about $20,0,x\n',
        encoding="utf-8",
    )
    products: list[dict[str, Any]] = [
        {"title": '[2 pack] Lamp, "warm"', "features": ["10 m", "dimmable"], "price": 24.9},
        {"title": "Oven", "features": ["steel", "40 l"], "price": "about $20"},
    ]
    lines = [
        {"id": "1", "goal": "bake", "step": "heat", "product": products[0], "label": 1},
        {"id": "2", "goal": "bake", "step": "heat it", "product": products[1], "label": 0},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read_records(STEP_PRODUCT, str(tmp_path / "rows.csv"))
    assert found == read_records(STEP_PRODUCT, str(tmp_path / "rows.jsonl"))
    assert found[0].product.text() == '[2 pack] Lamp, "warm" (24.90) - 10 m; dimmable'


@pytest.mark.parametrize("cell", ['["heat", "bake"]', "heat\nbake", " heat \n\n bake"])
def test_a_list_is_json_or_a_line_an_entry(cell: str) -> None:
    assert nested({"script": cell, "goal": " loaf ", "meta": '{"a": 1}', "x": "", "y": None}) == {
        "script": ["heat", "bake"],
        "goal": "loaf",
        "meta": {"a": 1},
    }


def test_a_column_that_is_both_a_text_and_an_object_stays_the_first() -> None:
    assert nested({"product": "Lamp", "product.title": "Other"}) == {"product": "Lamp"}


def test_a_cell_that_is_nested_too_deeply_is_text() -> None:
    assert nested({"script": "[" * 100_000, "product": "{" * 2}) == {"script": ["[" * 100_000], "product": "{{"}


def test_faults_name_the_row_and_what_is_no_csv_is_said(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,goal,script,label\na,bake,heat,1\nb,,heat,0\n")
    with pytest.raises(DataFaults, match=r"rows.csv:2: goal: missing; give what the person wants to achieve"):
        read_records(SCRIPT_VERIFY, str(path))
    path.write_bytes("id,goal\na,café\n".encode("latin-1"))
    with pytest.raises(DataFaults, match=r"cannot be read as CSV after row 0 .*save it in UTF-8"):
        read_records(SCRIPT_VERIFY, str(path))


def test_lines_come_from_a_pipe_as_from_a_file() -> None:
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(b'{"id": "1"}\n\nnot json\n{"id": "2"}')
    with open(reading, "rb") as pipe:
        found = list(json_rows("-", pipe))
    assert [found[0], found[2]] == [Row(1, {"id": "1"}), Row(4, {"id": "2"})]
    assert str(found[1]).startswith("-:3: not JSON at column 1")


def test_a_byte_that_is_no_text_is_placed_from_the_beginning_of_the_stream() -> None:
    stream = io.BytesIO(b'{"id": "1"}\n{"id": "\xff"}\n')
    assert "byte 0xff at offset 20 of the file" in str(list(json_rows("-", stream))[1])


def faults_of(path: Path, text: str) -> list[str]:
    path.write_text(text)
    return [str(row).split(".csv", 1)[1] for row in csv_rows(str(path)) if isinstance(row, Fault)]


def test_a_cell_never_moves_into_another_column_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    assert faults_of(path, "id,goal,label\na,bake,1\nb,bake, then eat,0\nc,bake,0,,\n") == [
        ":2: cells beyond the header's columns; quote those that hold commas"
    ]
    assert faults_of(path, "id,goal,goal,label,,\na,bake,fry,1,,\n") == [
        ": goal: two columns of this name; keep one of the two"
    ]
    assert faults_of(path, 'id,goal,label\na,bake,1\nb,"bake,0\nc,bake,0\n') == [
        ": cannot be read as CSV after row 1 (unexpected end of data); close its quotes"
    ]
