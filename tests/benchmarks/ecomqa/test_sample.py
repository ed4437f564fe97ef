"""What the shipped questions and their corpus promise."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.resources import files

import pytest

from benchmarks.ecomqa.data import SUB_CONCEPTS, Question, read_questions

QUESTIONS = read_questions("sample")


def of(task: str) -> list[Question]:
    return [question for question in QUESTIONS if question.task == task]


def listed(question: Question) -> list[str]:
    """The candidates that a question gives, between a marker that speaks of candidates and the end of its line."""
    found = re.search(r"候选(?:类目|细粒度品类)(?:\*\*\*)?：(.+)", question.prompt)
    assert found, question.prompt
    return found[1].split(",")


def test_there_are_enough_for_every_sub_concept_and_none_twice() -> None:
    counts = Counter(question.task for question in QUESTIONS)
    assert counts.keys() == SUB_CONCEPTS.keys()
    assert min(counts.values()) >= 12 and len(QUESTIONS) >= 130
    assert all(len(question.rows) == 1 for question in QUESTIONS)


@pytest.mark.parametrize("task", SUB_CONCEPTS)
def test_no_constant_answer_is_right_more_than_half_the_time(task: str) -> None:
    commonest = Counter(question.gt for question in of(task)).most_common(1)[0][1]
    assert commonest <= len(of(task)) / 2


def test_copying_the_query_corrects_no_more_than_half() -> None:
    copied = [question for question in of("SC") if f"：{question.gt}\n" in question.prompt]
    assert len(copied) <= len(of("SC")) / 2


def test_categories_are_among_the_candidates() -> None:
    chosen = [question for question in of("CC") if "候选" in question.prompt]
    assert len(chosen) >= 5
    for question in [*of("IC"), *chosen]:
        assert set(question.gt.split(",")) <= set(listed(question)), question.gt
        assert len(listed(question)) == len(set(listed(question)))


def test_yes_and_no_are_asked_equally_often() -> None:
    answers = Counter(question.gt for question in of("CC") if "候选" not in question.prompt)
    assert answers["是"] == answers["否"] and answers.keys() == {"是", "否"}


def test_attributes_stand_in_their_query() -> None:
    for question in of("AC"):
        query = re.search(r"\*\*\*query\*\*\*：(.+)", question.prompt)
        assert query and question.gt in query[1]


def test_relevance_comes_in_both_forms() -> None:
    dimensions = [question for question in of("RLC") if not question.system_prompt]
    for question in dimensions:
        named = re.search(r"纬度列表：\n(\[.+\])", question.prompt)
        assert named and question.gt in json.loads(named[1])
    assert len({question.gt for question in dimensions}) == len(dimensions) >= 5
    assert {question.gt for question in of("RLC") if question.system_prompt} == {"相关", "不相关"}


def test_profiles_are_json_with_four_options() -> None:
    for question in of("PC"):
        profile, options = re.split(r"\n\*\*\*候选品类\*\*\*：", question.prompt)
        assert json.loads(profile.removeprefix("***个性化偏好***："))["用户基本特征"]
        assert re.fullmatch(r"A\..+;B\..+;C\..+;D\..+\n\*\*\*答案\*\*\*：", options)
        assert question.gt in "ABCD"


def test_reviews_and_intents_are_answered_in_the_words_of_their_instruction() -> None:
    assert {question.gt for question in of("RVC")} == {"正确", "错误"}
    assert all(question.gt in question.system_prompt for question in of("ITC"))
    assert len({question.gt for question in of("ITC")}) == 5


def test_solved_examples_are_not_asked() -> None:
    for question in QUESTIONS:
        body = question.prompt.rsplit("***答案***", 1)[0].strip()
        assert not question.system_prompt or body not in question.system_prompt


def test_the_corpus_knows_what_no_model_can() -> None:
    """Every product and brand that was invented for the questions is described in it."""
    lines = (files("benchmarks.ecomqa") / "sample" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    passages = [json.loads(line) for line in lines]
    assert len({passage["id"] for passage in passages}) == len(passages) >= 60
    text = "\n".join(f"{passage['title']} {passage['text']}" for passage in passages)
    models = {code for question in of("CC") for code in re.findall(r"[A-Z]{2,3}-[0-9A-Z]+", question.prompt)}
    assert len(models) == 10 and all(model in text for model in models)
    for question in of("BC"):
        assert question.gt.strip("。").split("，")[0].split("、")[0].split("和")[0] in text, question.gt
