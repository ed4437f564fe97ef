"""A stage: parts that are made once, whoever makes them, and a manifest that says what came of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from benchmarks.ecomscript.build import tables
from benchmarks.ecomscript.build.stages import Made, Reject, Stage, run_table
from benchmarks.ecomscript.build.tables import Rows, TableWriter, write_table

SCHEMA = pa.schema({"id": pa.string(), "value": pa.int64()})
QUIET = Console(quiet=True)


def numbers(path: Path, count: int) -> Rows:
    write_table(path, [{"id": f"r{k}", "value": k} for k in range(count)], SCHEMA)
    return Rows(path)


def halves(rows: list[dict[str, Any]]) -> Made:
    """Halves of even numbers; sevens are left out; other odd numbers are rejects."""
    made = Made(tokens=len(rows))
    for row in rows:
        if row["value"] % 7 == 0:
            made.left_out["a seven"] += 1
        elif row["value"] % 2:
            made.rejects.append(Reject(row["id"], f"{row['value']} is odd", "one half"))
        else:
            made.rows.append({"id": row["id"], "value": row["value"] // 2})
            made.counts["even"] += 1
    return made


def stage(folder: Path, **identity: Any) -> Stage:
    return Stage(folder / "halves", identity, QUIET)


def test_a_stage_says_what_became_of_every_row(tmp_path: Path) -> None:
    made = stage(tmp_path, of="numbers")
    run_table(made, numbers(tmp_path / "n.parquet", 20), SCHEMA, halves, chunk=3)
    # 0, 7, 14 are sevens; 1 3 5 9 11 13 15 17 19 are odd; 2 4 6 8 10 12 16 18 are even.
    assert [row["value"] for row in pq.read_table(made.path / "halves.parquet").to_pylist()] == [1, 2, 3, 4, 5, 6, 8, 9]
    rejects = pq.read_table(made.path / "rejects.parquet").to_pylist()
    assert rejects[0] == {"id": "r1", "reason": "1 is odd", "reply": "one half"} and len(rejects) == 9
    manifest = made.manifest
    assert (manifest["read"], manifest["kept"], manifest["tokens"]) == (20, 8, 20)
    assert manifest["rejected"] == {"N is odd": 9} and manifest["left_out"] == {"a seven": 3}
    assert manifest["counts"] == {"even": 8} and manifest["identity"] == {"of": "numbers"}
    assert not made.parts.exists()


@pytest.mark.parametrize("killed_at", [1, 3, 7])
def test_a_killed_stage_loses_and_repeats_nothing(tmp_path: Path, killed_at: int) -> None:
    source, asked = numbers(tmp_path / "n.parquet", 20), Counter[str]()

    def mortal(rows: list[dict[str, Any]]) -> Made:
        if len(asked) // 3 == killed_at - 1 and not asked[rows[0]["id"]]:
            asked.update(row["id"] for row in rows)
            raise KeyboardInterrupt
        asked.update(row["id"] for row in rows)
        return halves(rows)

    whole = stage(tmp_path / "whole")
    run_table(whole, source, SCHEMA, halves, chunk=3)
    killed = stage(tmp_path / "killed")
    with pytest.raises(KeyboardInterrupt):
        run_table(killed, source, SCHEMA, mortal, chunk=3)
    assert not killed.finished
    run_table(killed, source, SCHEMA, mortal, chunk=3)
    assert set(asked.values()) == {1, 2} and sum(asked.values()) <= 20 + 3  # the part at which it was killed
    for name in ("halves.parquet", "rejects.parquet"):
        assert (killed.path / name).read_bytes() == (whole.path / name).read_bytes()
    without_cost = [{**one.manifest, "cost": None} for one in (killed, whole)]
    assert without_cost[0] == without_cost[1]


def test_a_finished_stage_does_nothing_again(tmp_path: Path) -> None:
    source = numbers(tmp_path / "n.parquet", 5)
    run_table(stage(tmp_path), source, SCHEMA, halves, chunk=2)
    run_table(stage(tmp_path), source, SCHEMA, lambda rows: pytest.fail("asked again"), chunk=2)


def test_a_stage_made_from_something_else_is_refused(tmp_path: Path) -> None:
    source = numbers(tmp_path / "n.parquet", 5)
    run_table(stage(tmp_path, settings={"most": 3}), source, SCHEMA, halves, chunk=2)
    with pytest.raises(ValueError, match=r"settings\.most is 3 there and 4 here; give --redo halves"):
        run_table(stage(tmp_path, settings={"most": 4}), source, SCHEMA, halves, chunk=2)


def test_rows_that_repeat_an_earlier_one_are_counted_across_parts(tmp_path: Path) -> None:
    source, made = numbers(tmp_path / "n.parquet", 9), stage(tmp_path)
    run_table(made, source, SCHEMA, lambda rows: Made(rows=rows), 2, distinct=lambda row: str(row["value"] % 4))
    assert [row["value"] for row in Rows(made.path / "halves.parquet").read(0, 9)] == [0, 1, 2, 3]
    assert made.manifest["left_out"] == {"repeats an earlier one": 5}


def test_a_stage_of_which_nothing_came_ends_the_construction_in_words(tmp_path: Path) -> None:
    def none(rows: list[dict[str, Any]]) -> Made:
        return Made(rejects=[Reject(row["id"], "it holds no JSON") for row in rows])

    for _ in range(2):  # also when it is asked for again
        with pytest.raises(ValueError, match=r"halves: none of 4 rows could be used \(4 times: it holds no JSON\)"):
            run_table(stage(tmp_path), numbers(tmp_path / "n.parquet", 4), SCHEMA, none, chunk=2)


def test_rows_are_read_from_any_place_through_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROW_GROUP", 4)
    table = pa.table({"id": [f"r{k}" for k in range(10)], "value": range(10)}, SCHEMA)
    with TableWriter(tmp_path / "a.parquet", SCHEMA) as writer:
        for start in range(0, 10, 3):
            writer.add(table.slice(start, 3))
    with TableWriter(tmp_path / "b.parquet", SCHEMA) as writer:
        writer.add(table)
    rows = Rows(tmp_path / "a.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").metadata.num_row_groups == 3
    assert [[row["value"] for row in rows.read(*ends)] for ends in ((0, 2), (3, 9), (8, 99), (10, 12))] == [
        [0, 1],
        [3, 4, 5, 6, 7, 8],
        [8, 9],
        [],
    ]
    # However a table is cut, the file is the same.
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_table_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), TableWriter(tmp_path / "a.parquet", SCHEMA):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_another_process_has_claimed_is_left_to_it(tmp_path: Path) -> None:
    made = stage(tmp_path)
    assert made.begin()
    made.part(1, "claim").touch()
    done = []

    def work(number: int, path: Path) -> None:
        done.append(number)
        path.touch()
        if number == 2:  # the other one is ready
            made.part(1).touch()

    made.make(3, work)
    assert done == [0, 2]
    assert made.begin() and not list(made.parts.glob("*.claim"))  # a claim does not outlive its run
    assert json.loads((made.path / "manifest.json").read_text()) == {"stage": "halves", "identity": {}}


def test_parts_that_a_kill_has_left_behind_a_finished_stage_go_with_the_next_run(tmp_path: Path) -> None:
    source, made = numbers(tmp_path / "n.parquet", 5), stage(tmp_path)
    run_table(made, source, SCHEMA, halves, chunk=2)
    made.parts.mkdir()
    made.part(0).touch()
    run_table(made, source, SCHEMA, halves, chunk=2)
    assert not made.parts.exists()
