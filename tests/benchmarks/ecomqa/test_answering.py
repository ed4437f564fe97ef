"""Instructions without their solved examples, in every heading that the shipped questions and others use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.ecomqa.answering import fit, without_shots
from benchmarks.ecomqa.data import read_questions
from models.generation import SamplingSettings

EXAMPLE = "***query***：甲\n***答案***：乙"


@pytest.mark.parametrize(
    ("instruction", "left"),
    [
        (f"任务\n#### 以下是一些示例：\n{EXAMPLE}\n\n{EXAMPLE}\n让我们开始吧！\n", "任务\n让我们开始吧！\n"),
        (f"任务\n#### 示例：\n{EXAMPLE}\n现在请作答！\n", "任务\n现在请作答！\n"),
        (
            f"任务\n#### 示例：\n{EXAMPLE}\n\n要求：\n1.只写类目\n现在请作答！",
            "任务\n要求：\n1.只写类目\n现在请作答！",
        ),
        (f"任务\n## 示例\n{EXAMPLE}\n说明：\n1.只列类目", "任务\n说明：\n1.只列类目"),
        (f"**示例：**\n{EXAMPLE}", ""),
        (f"Task\n### Examples:\n{EXAMPLE}", "Task"),
        ("任务\n请参照示例，用短语作答。\n", "任务\n请参照示例，用短语作答。\n"),
        ("任务\n", "任务\n"),
        ("", ""),
    ],
)
def test_examples_are_taken_out_whatever_their_heading(instruction: str, left: str) -> None:
    assert without_shots(instruction) == left


def test_the_shipped_questions_lose_their_examples() -> None:
    """Every instruction with an answer written out in it (but the one that says what an answer is) gets shorter."""
    instructions = {question.system_prompt for question in read_questions("sample")}
    with_examples = {one for one in instructions if "#### " in one}
    assert len(with_examples) >= 10
    for one in instructions:
        assert (without_shots(one) != one) == (one in with_examples)
        assert "示例：" not in without_shots(one)


@pytest.mark.parametrize("shots", [True, False])
def test_a_question_says_whether_it_was_asked_with_examples(shots: bool) -> None:
    questions = read_questions("sample")[:3]
    unlimited: Any = SimpleNamespace(context=None)
    work = fit(questions, shots, unlimited, SamplingSettings(8), "refuse")
    assert {one: work.notes.get(one, {}).get("shots", True) for one in work.chats} == dict.fromkeys(work.chats, shots)
