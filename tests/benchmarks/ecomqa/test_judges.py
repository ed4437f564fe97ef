"""What judges are asked, and which grade their replies name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ecomqa_questions import questions
from tiny import tiny_checkpoint

from benchmarks.ecomqa.forms import form_of
from benchmarks.ecomqa.judges import LONGEST, PROMPTS, judge_chat, read_vote
from models.generation import SamplingSettings, chat
from models.generators import open_generator


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ("A", "correct"),
        (" B。", "wrong"),
        ("（Ｃ）", "not_attempted"),
        ("评分：A", "correct"),
        ("A：正确", "correct"),
        ("**B 错误**", "wrong"),
        ("A 错误", None),
        ("回答与标准答案一致。\n评分：A", "correct"),
        ("如果只看第一句是A，但内容矛盾。\n评分：B", "wrong"),
        ("我认为是 C，因为没有作答", "not_attempted"),
        ("A 或 B", None),
        ("评分：A或B", None),
        ("理由充分。\n评分：A/B", None),
        ("Grade: A or B", None),
        ("评分：不是A", None),
        ("不能评为A", None),
        ("回答不是正确的", None),
        ("没有错误", None),
        ("评分：B 错误", "wrong"),
        ("评分：A（与标准答案一致）", "correct"),
        ("Grade: A, a correct answer", "correct"),
        ("回答正确", "correct"),
        ("这个回答不正确。", "wrong"),
        ("CORRECT", "correct"),  # no letter C
        ("INCORRECT", "wrong"),
        ("Not attempted", "not_attempted"),
        ("NOT_ATTEMPTED", "not_attempted"),
        ("不是错误，是正确", None),
        ("BC", None),
        ("", None),
        ("好的，我来评分。", None),
        ("<think>可能是B</think>\nA", "correct"),
        ("<think>可能是B", None),
        ("a", "correct"),
    ],
)
def test_replies_are_read_as_a_person_reads_them(text: str, grade: str | None) -> None:
    assert read_vote(text) == grade


@pytest.mark.parametrize("name", PROMPTS)
def test_a_guided_vote_can_be_read(name: str, tmp_path: Path) -> None:
    """Of a model of random weights, which writes anything."""
    generator = open_generator(str(tiny_checkpoint(tmp_path / "model", "llama", chat=True)))
    settings = SamplingSettings(PROMPTS[name].max_tokens, temperature=1.0, grammar=PROMPTS[name].grammar)
    found = [one for _, one in generator.generate([chat(f"{number}") for number in range(8)], settings)]
    assert {one.finish for one in found} == {"stop"}
    assert {read_vote(one.text) for one in found} <= {"correct", "wrong", "not_attempted"}


def test_a_judge_sees_question_references_and_answer_behind_a_shared_instruction(tmp_path: Path) -> None:
    asked = questions(tmp_path)
    one = judge_chat(asked["BC"], form_of(asked["BC"]), "1998年", PROMPTS["standard"])
    system, user = one.messages
    assert (system.role, system.content) == ("system", PROMPTS["standard"].system)
    for part in (asked["BC"].prompt, "【标准答案】\n2015年\n", "【模型回答】\n1998年"):
        assert part in user.content
    empty = judge_chat(asked["BC"], form_of(asked["BC"]), "", PROMPTS["standard"])
    assert empty.messages[1].content.endswith("【模型回答】\n（空）")


def test_a_judge_sees_every_accepted_answer_and_what_an_option_says(tmp_path: Path) -> None:
    asked = questions(tmp_path)
    twice = replace(asked["AC"], references=("兒童", "硅胶"))
    assert (
        "【标准答案】\n- 兒童\n- 硅胶\n"
        in judge_chat(twice, form_of(twice), "x", PROMPTS["examples"]).messages[1].content
    )
    option = judge_chat(asked["PC"], form_of(asked["PC"]), "B", PROMPTS["examples"]).messages[1].content
    assert "【标准答案】\nB（即：户外折叠椅（轻便））\n" in option


def test_hidden_reasoning_of_a_reference_is_not_shown(tmp_path: Path) -> None:
    late = questions(tmp_path)["late"]
    assert "隐藏" not in judge_chat(late, form_of(late), "功能", PROMPTS["reasoned"]).messages[1].content


def test_of_a_very_long_question_the_beginning_and_the_end_are_shown(tmp_path: Path) -> None:
    asked = questions(tmp_path)["PC"]
    long = replace(asked, prompt="开头" + "爱" * 20_000 + asked.prompt)
    shown = judge_chat(long, form_of(asked), "B", PROMPTS["standard"]).messages[1].content
    assert len(shown) < LONGEST + 200
    assert "开头" in shown and "D.口红" in shown
