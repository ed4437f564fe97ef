"""Measures by hand, and all rows that the paper prints."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from ecomqa_questions import PICK, ROWS, rows, write

from benchmarks.ecomqa.baselines import COPY, baselines
from benchmarks.ecomqa.data import SUB_CONCEPTS, read_questions
from benchmarks.ecomqa.metrics import compare_runs, counts, headline, measure

PUBLISHED = list(
    csv.DictReader((files("benchmarks.ecomqa") / "published" / "accuracy.csv").read_text("utf-8").splitlines())
)


def line(task: str, grade: str, number: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": f"{task}-{number}", "task": task, "grade": grade, "form": "phrase", **more}


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row["model"])
def test_the_average_of_each_published_row_comes_out(row: dict[str, str]) -> None:
    assert headline({task: float(row[task]) for task in SUB_CONCEPTS}) == pytest.approx(float(row["average"]), abs=0.1)


def test_there_are_27_published_rows() -> None:
    assert len(PUBLISHED) == 27


def test_a_run_with_a_published_row_s_accuracies_has_its_average() -> None:
    # GPT-4o over 1,000 questions of each sub-concept: 68.2 % are 682 right ones, and so on.
    row = next(row for row in PUBLISHED if row["model"] == "GPT-4o")
    lines = []
    for task in SUB_CONCEPTS:
        right = round(10 * float(row[task]))
        lines += [line(task, "correct" if number < right else "wrong", number) for number in range(1000)]
    found = measure(lines)
    assert found["average"]["value"] == pytest.approx(float(row["average"]), abs=0.05)
    assert found["complete"]
    assert found["sub_concepts"]["IC"]["accuracy"]["value"] == pytest.approx(68.2)


def test_the_average_weighs_sub_concepts_alike() -> None:
    lines = [line("BC", "correct", k) for k in range(9)] + [line("CC", "wrong"), line("BC", "wrong", 9)]
    found = measure(lines)
    assert found["average"]["value"] == pytest.approx((90 + 0) / 2)
    assert not found["complete"]


def test_attempted_given_attempted_and_f_by_hand() -> None:
    found = counts([line("BC", grade) for grade in ["correct"] * 3 + ["wrong"] + ["not_attempted"] * 2])
    assert (found["correct"], found["wrong"], found["not_attempted"]) == (3, 1, 2)
    assert found["accuracy"]["value"] == pytest.approx(50)
    assert found["attempted"] == pytest.approx(100 * 4 / 6)
    assert found["given_attempted"] == pytest.approx(75)
    assert found["f"] == pytest.approx(2 * 50 * 75 / (50 + 75))
    silent = counts([line("BC", "not_attempted")])
    assert (silent["given_attempted"], silent["f"]) == (None, 0)


def test_macro_f1_counts_an_unread_answer_against_its_label() -> None:
    said = [("正确", "正确"), ("正确", "正确"), ("正确", None), ("错误", "正确")]
    lines = [line("RVC", "correct", form="label", label=label, said=answer) for label, answer in said]
    # 正确: precision 2/3, recall 2/3, F1 2/3; 错误: nothing said, F1 0
    assert measure(lines)["sub_concepts"]["RVC"]["macro_f1"] == pytest.approx(100 * (2 / 3 + 0) / 2)


def test_lists_have_their_mean_f1() -> None:
    lines = [line("IC", "wrong", form="list", f1=value) for value in (1.0, 0.5, None)]
    assert measure(lines)["sub_concepts"]["IC"]["list_f1"] == pytest.approx(50)


def test_two_runs_are_compared_over_the_questions_that_both_hold() -> None:
    first = [line("BC", "correct", k) for k in range(8)] + [line("BC", "wrong", k) for k in range(8, 11)]
    second = [line("BC", "wrong", k) for k in range(8)] + [line("BC", "correct", k) for k in range(8, 10)]
    found = compare_runs(first, list(reversed(second)), 100, 0)
    assert (found.n, found.first_only, found.second_only) == (10, 8, 2)
    assert found.p == pytest.approx(112 / 1024)
    with pytest.raises(ValueError, match="share no question"):
        compare_runs(first, [line("CC", "wrong")], 100, 0)


def test_the_best_constant_of_each_form_is_what_a_score_is_held_against(tmp_path: Path) -> None:
    def asked(task: str, gt: str, number: int, **change: str) -> dict[str, str]:
        row = {**ROWS[task], "task": task, "gt": gt, **change}
        return {**row, "prompt": row["prompt"].replace("***", f"***{number}", 1) if task != "CC" else row["prompt"]}

    lines = [asked("RVC", gt, k) for k, gt in enumerate(["正确", "正确", "错误"])]
    lines += [asked("IC", gt, k) for k, gt in enumerate(["野餐用品,急救用品", "急救用品，野餐用品", "野餐用品"])]
    lines += [asked("SC", "华丽的麗江茶X1S", 0), asked("SC", "华丽的丽江茶X1S", 1)]
    lines += [{**ROWS["CC"], "task": "CC"}, PICK]
    found = baselines(read_questions(write(tmp_path / "set.jsonl", lines)))
    assert found["RVC"].accuracy == pytest.approx(100 * 2 / 3)
    assert str(found["RVC"]) == "always 正确"
    assert found["IC"].accuracy == pytest.approx(100 * 2 / 3)
    assert [(entry.kind, entry.right, entry.n) for entry in found["CC"].constants] == [("yes_no", 1, 1), ("pick", 1, 1)]
    assert str(found["CC"]) == "always 否 / 车用支架, by kind of question"


def test_copying_the_query_is_a_constant_too(tmp_path: Path) -> None:
    lines = [
        {**ROWS["SC"], "task": "SC", "prompt": f"***query***：茶{k}\n***答案***：", "gt": f"茶{k}" if k else "查"}
        for k in range(3)
    ]
    found = baselines(read_questions(write(tmp_path / "set.jsonl", lines)))["SC"]
    assert (found.accuracy, found.constants[0].answer) == (pytest.approx(100 * 2 / 3), COPY)


def test_every_sub_concept_of_a_set_has_a_baseline(tmp_path: Path) -> None:
    assert set(baselines(read_questions(write(tmp_path / "set.jsonl", rows())))) == set(SUB_CONCEPTS)
