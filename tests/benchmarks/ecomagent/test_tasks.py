"""The line format: what is read comes out as it was, and what is wrong is told in words."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from errands import LAMP_LINE

from benchmarks.ecomagent.tasks import check_tasks, read_tasks, task_line, write_tasks
from recipes.faults import DataFaults

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "ecomagentbench_sample.jsonl"


def write(path: Path, *tasks: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(task, ensure_ascii=False) + "\n" for task in tasks), encoding="utf-8")
    return path


def changed(**fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(LAMP_LINE), **fields}


def faults_of(path: Path) -> list[str]:
    return [str(fault).removeprefix(f"{path}:") for fault in check_tasks(path)[1]]


def test_a_line_is_written_as_it_was_read(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.jsonl", LAMP_LINE)
    (task,) = read_tasks(path)
    assert task_line(task) == path.read_text(encoding="utf-8")
    write_tasks(tmp_path / "again.jsonl", [task])
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


def test_unknown_fields_and_missing_artefacts_do_no_harm(tmp_path: Path) -> None:
    bare = {
        name: LAMP_LINE[name]
        for name in ("id", "intent_category", "user_query", "user_persona", "clarification_script", "target_product")
    }
    bare |= {"rubrics": LAMP_LINE["rubrics"], "mood": "good", "feature_partition": None}
    (task,) = read_tasks(write(tmp_path / "tasks.jsonl", bare))
    assert (task.target_id, task.voucher, task.implicit_rubric_ids) == ("B0LAMP0001", None, ())
    assert [item.id for item in task.items("clarification")] == ["r6", "r7"]


def test_only_lines_whose_status_is_ok_or_absent_are_used(tmp_path: Path) -> None:
    failed = changed(id="v3_sample_9002", sample_status="final_validation_failed")
    path = write(tmp_path / "tasks.jsonl", LAMP_LINE, failed)
    tasks, faults, warnings = check_tasks(path)
    assert ([task.id for task in tasks], faults) == (["v3_sample_9001"], [])
    assert [str(warning) for warning in warnings] == [f"{path}:2: sample_status: final_validation_failed; passed over"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("user_query",), None, "1: user_query: null where text belongs; give what the shopper asks for"),
        (("rubrics", 1, "expected_value"), {"about": 5}, "r2: numeric_range cannot compare {'about': 5}"),
        (("rubrics", 1, "expected_value"), {"value": 5, "op": "near"}, "r2: numeric_range cannot compare"),
        (("rubrics", 0, "expected_value"), ["Kelvora"], "r1: attribute_match cannot compare ['Kelvora']; give a text"),
        (("rubrics", 0, "info_source"), "weather", "1: rubrics[1].info_source: "),
        (("rubrics", 2, "id"), "r2", "1: rubrics: 2 items have the id 'r2'; give each its own"),
        (("implicit_rubric_ids",), ["r4"], "1: implicit_rubric_ids: 'r4' is not an item of the query"),
        (
            ("clarification_script", "clarification_slots", 0, "linked_rubric_ids"),
            ["r1"],
            "1: clarification_script.clarification_slots[1].linked_rubric_ids: 'r1' is not an item of the clarif",
        ),
        (("target_product", "details"), "none", "1: target_product.details: text where an object belongs"),
    ],
)
def test_faults_name_the_place_and_what_to_do(tmp_path: Path, place: tuple[Any, ...], value: Any, said: str) -> None:
    task = changed()
    inner: Any = task
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    found = faults_of(write(tmp_path / "tasks.jsonl", task))
    assert any(said in fault for fault in found), found


def test_half_a_character_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps({**changed(), "user_query": "A lamp \ud83d"}) + "\n")
    assert any("holds half of a character ('\\ud83d')" in fault for fault in faults_of(path))


def test_a_hidden_requirement_that_nobody_tells_is_a_fault(tmp_path: Path) -> None:
    task = changed()
    del task["clarification_script"]["clarification_slots"][1]
    path = write(tmp_path / "tasks.jsonl", task)
    assert faults_of(path) == [
        "1: rubrics: r7 comes from clarification, but no slot tells it; add one or change its source"
    ]
    with pytest.raises(DataFaults, match="no slot tells it"):
        read_tasks(path)


def test_an_id_may_stand_once_only(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.jsonl", LAMP_LINE, LAMP_LINE)
    assert faults_of(path) == ["2: id: 'v3_sample_9001' is the id of line 1 too; give each its own"]


def test_an_exclusion_of_nothing_is_warned_of(tmp_path: Path) -> None:
    task = changed()
    task["rubrics"][4] |= {"type": "negative_attribute", "expected_value": []}
    tasks, faults, warnings = check_tasks(write(tmp_path / "tasks.jsonl", task))
    assert (len(tasks), faults) == (1, [])
    assert "r5 excludes nothing" in str(warnings[0])


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file; give a file of tasks"):
        read_tasks(tmp_path / "none.jsonl")


@pytest.mark.skipif(not REAL.is_file(), reason="real tasks are not shipped")
def test_real_tasks_show_no_fault_and_are_written_as_they_were() -> None:
    tasks, faults, warnings = check_tasks(REAL)
    assert (len(tasks), faults, warnings) == (5, [], [])
    raw = REAL.read_text(encoding="utf-8").splitlines(keepends=True)
    assert [task_line(task) for task in tasks] == raw
