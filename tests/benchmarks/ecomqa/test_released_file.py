"""The released questions, as they are: what the loader must know of them, and that each of its oddities is dealt with.

The file is not part of this repository (no licence is stated for it). Give the folder that holds ChineseEcomQA.jsonl
as ECOMJUDGE_DATA to run these tests.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.ecomqa.answering import without_shots
from benchmarks.ecomqa.baselines import COPY, baselines
from benchmarks.ecomqa.data import SUB_CONCEPTS, Question, read_questions
from benchmarks.ecomqa.forms import form_of, query_of
from benchmarks.ecomqa.normalise import SEPARATORS
from benchmarks.ecomqa.rules import rule

FILE = Path(os.environ.get("ECOMJUDGE_DATA", "")) / "ChineseEcomQA.jsonl"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="ECOMJUDGE_DATA names no folder with ChineseEcomQA.jsonl")

COUNTS = {
    "BC": 170,
    "IC": 286,
    "ITC": 90,
    "CC": 194,
    "IDC": 111,
    "SC": 200,
    "AC": 200,
    "RLC": 305,
    "PC": 173,
    "RVC": 71,
}


@pytest.fixture(scope="module")
def released() -> list[Question]:
    return read_questions(str(FILE), "keep")


@pytest.fixture(scope="module")
def merged() -> list[Question]:
    return read_questions(str(FILE))


def of(questions: list[Question], task: str) -> list[Question]:
    return [question for question in questions if question.task == task]


def test_1800_questions_of_ten_sub_concepts_in_any_order(released: list[Question]) -> None:
    assert Counter(question.task for question in released) == COUNTS
    assert set(COUNTS) == set(SUB_CONCEPTS)
    assert len({question.id for question in released}) == 1800
    assert [question.rows for question in released] == [(row,) for row in range(1800)]
    brands = [question.rows[0] for question in of(released, "BC")]
    assert brands == [*range(47), *range(1677, 1800)]  # a set may stand in two places


def test_references_are_as_long_as_the_paper_says(released: list[Question]) -> None:
    assert sum(len(question.gt_raw) for question in released) / 1800 == pytest.approx(18.15, abs=0.005)


def test_hidden_reasoning_is_cut_off_and_kept_raw(released: list[Question]) -> None:
    late = [question for question in of(released, "RLC") if not question.system_prompt]
    assert len(late) == 100
    assert sum("\n" in question.gt_raw.strip() for question in late) == 96
    assert sum("\n" in question.gt_raw.strip() for question in released) == 96
    assert not any("\n" in question.gt or "逻辑" in question.gt for question in released)
    assert Counter(question.gt for question in late).most_common(2) == [("功能", 46), ("克重", 10)]
    for question in late:
        form = form_of(question)
        assert form.kind == "pick"
        assert rule(question, question.gt, form).grade == "correct"


def test_late_questions_have_no_cue_and_no_instruction(released: list[Question]) -> None:
    late = [question for question in of(released, "RLC") if not question.system_prompt]
    assert not any(question.prompt.rstrip().endswith("答案***：") for question in late)
    assert all(question.system_prompt for question in released if question not in late)


def test_fourteen_questions_are_asked_twice_and_become_one(merged: list[Question], released: list[Question]) -> None:
    twice = [question for question in merged if len(question.rows) > 1]
    assert len(merged) == 1800 - 14
    assert {question.task for question in twice} == {"AC"} and len(twice) == 14
    assert twice[0].rows == (936, 937) and twice[2].rows == (960, 962)
    for question in twice:
        assert len(question.references) == 2
        assert {rule(question, reference).grade for reference in question.references} == {"correct"}
    # As released, one of each pair must be wrong.
    assert (len(of(released, "AC")) - 14) / len(of(released, "AC")) == 0.93


def test_three_yes_no_questions_name_the_category_they_ask_about(released: list[Question]) -> None:
    questions = [question for question in of(released, "CC") if form_of(question).kind == "yes_no"]
    assert len(questions) == 166
    odd = [question for question in questions if question.gt not in ("是", "否")]
    assert [question.gt for question in odd] == ["麦克风", "净水器", "高压锅"]
    for question in odd:
        assert question.references == (question.gt, "是")
        assert [rule(question, answer).grade for answer in ("是", question.gt, "否")] == ["correct", "correct", "wrong"]
    assert Counter(question.gt for question in questions).most_common(1) == [("是", 100)]
    assert pytest.approx(0.602, abs=0.0005) == 100 / 166


def test_personal_profiles_are_shown_as_they_are_or_without_their_broken_example(released: list[Question]) -> None:
    personal = of(released, "PC")
    (instruction,) = {question.system_prompt for question in personal}
    assert len(instruction) == 5280
    assert without_shots(instruction).startswith("任务：个性化偏好问答") and len(without_shots(instruction)) < 100
    assert max(len(question.prompt) for question in personal) == 13_227
    assert sum(map(_profile_is_json, personal)) == 158
    assert Counter(question.gt for question in personal) == {"A": 30, "B": 43, "C": 56, "D": 44}
    assert {tuple(form_of(question).names) for question in personal} == {("A", "B", "C", "D")}


def _profile_is_json(question: Question) -> bool:
    text = question.prompt.split("个性化偏好***：")[1].split("***候选品类")[0]
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_candidates_are_read_from_every_question(released: list[Question]) -> None:
    industry = of(released, "IC")
    sizes = [len(form_of(question).names) for question in industry]
    assert (min(sizes), max(sizes)) == (2, 17)
    entries = [SEPARATORS.split(question.gt) for question in industry]
    assert (min(map(len, entries)), max(map(len, entries))) == (1, 11)
    assert sum(len(own) == 1 for own in entries) == 136
    beyond = [own for own, one in zip(entries, industry, strict=True) if not all(map(form_of(one).name_of, own))]
    assert len(beyond) == 1
    assert (
        sum("query" in question.system_prompt[:200] and "***query***" in question.prompt for question in industry)
        == 139
    )
    assert sum(form_of(question).kind == "pick" for question in of(released, "CC")) == 28


def test_spans_and_queries_are_where_the_spec_says(released: list[Question]) -> None:
    assert sum(question.gt in str(query_of(question)) for question in of(released, "AC")) == 195
    spoken = of(released, "SC")
    assert len({question.system_prompt for question in spoken}) == 1
    assert not spoken[0].system_prompt.startswith('"')


def test_constant_answers_are_worth_what_the_spec_says(released: list[Question]) -> None:
    found = baselines(released)
    by_kind = {(task, one.kind): one for task, baseline in found.items() for one in baseline.constants}
    assert round(found["RVC"].accuracy, 1) == 84.5
    assert (by_kind["RVC", "label"].answer, by_kind["ITC", "label"].answer) == ("正确", "怎么挑/怎么买")
    assert round(found["ITC"].accuracy, 1) == 54.4
    assert round(found["PC"].accuracy, 1) == 32.4 and by_kind["PC", "option"].answer == "C"
    # 99 of 200 letter by letter, one more but for its writing.
    assert sum(query_of(question) == question.gt for question in of(released, "SC")) == 99
    assert (by_kind["SC", "query"].answer, by_kind["SC", "query"].right) == (COPY, 100)
    relevance = by_kind["RLC", "label"]
    assert (relevance.n, round(100 * relevance.right / relevance.n, 1)) == (205, 50.2)
    # Three more than the 100 whose reference is the word itself.
    assert (by_kind["CC", "yes_no"].answer, by_kind["CC", "yes_no"].right, by_kind["CC", "yes_no"].n) == (
        "是",
        103,
        166,
    )


def test_every_reference_is_right_by_the_rules(merged: list[Question]) -> None:
    wrong = [
        (one.id, reference) for one in merged for reference in one.references if rule(one, reference).grade != "correct"
    ]
    assert wrong == []


def test_every_form_is_closed_but_two_sub_concepts(merged: list[Question]) -> None:
    assert {question.task for question in merged if not form_of(question).closed} == {"BC", "IDC"}


def test_latin_references_match_in_any_width_and_case(released: list[Question]) -> None:
    raw = [question for question in released if any("a" <= letter <= "z" for letter in question.gt_raw.lower())]
    assert len(raw) == 405
    latin = [question for question in raw if any("a" <= letter <= "z" for letter in question.gt.lower())]
    for question in latin:
        wide = "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in question.gt.upper())
        if question.task != "IC":  # full-width commas and slashes inside a list are as good
            assert rule(question, wide).grade == "correct", question.gt
