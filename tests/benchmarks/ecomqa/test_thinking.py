"""Behaviours of reasoning traces: what judges are asked, how their votes are read and counted."""

from __future__ import annotations

import pytest

from benchmarks.ecomqa.published import published_thinking
from benchmarks.ecomqa.thinking import (
    BEHAVIOURS,
    LONGEST,
    Trace,
    behaviour_chat,
    decide,
    read_behaviour,
    summarise,
    with_traces,
)


def trace(text: str = "想一想……是绿茶，没错。", answer: str = "绿茶") -> Trace:
    return Trace("BC-1", "龙井属于哪类茶？", ("绿茶", "绿"), text, answer)


def test_a_judge_sees_question_references_trace_and_answer() -> None:
    system, user = behaviour_chat(trace()).messages
    assert system.role == "system"
    for part in ("龙井属于哪类茶？", "绿茶 / 绿", "想一想……是绿茶，没错。", "【最后的回答】\n绿茶"):
        assert part in user.content
    assert "（没有回答）" in behaviour_chat(trace(answer=" ")).messages[1].content


def test_text_with_braces_is_shown_as_it_is() -> None:
    assert '{"a": {0}}' in behaviour_chat(trace('{"a": {0}}')).messages[1].content


def test_a_long_trace_keeps_its_beginning_and_its_end() -> None:
    shown = behaviour_chat(trace("始" + "x" * LONGEST + "终")).messages[1].content
    assert "始xxx" in shown and "xxx终" in shown and "中间略去 2 字" in shown


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("理由：先对后确认。\n行为：A", "A"),
        ("行为：**B**", "B"),
        ("不是行为：A，因为改了。\n行为类别: C", "C"),  # what is said last
        ("行为是D。", "D"),
        ("Ｂ", "B"),
        ("选 C。", "C"),
        ("像 A 也像 B", None),
        ("行为：A或B", None),
        ("理由：都像。\n行为：**A**、**C**", None),
        ("行为：A/D", None),
        ("Behaviour A or B\n行为：A or B", None),
        ("不是A", None),
        ("行为：A，B 不像", "A"),
        ("行为：A\nB 则不是", "A"),
        ("ABCD", None),
        ("Because of a DNA test", None),
        ("A trace that never ends", None),
        ("", None),
    ],
)
def test_votes_are_read_exactly_or_not_at_all(text: str, read: str | None) -> None:
    assert read_behaviour(text) == read


@pytest.mark.parametrize(
    ("votes", "behaviour"),
    [
        (["A", "A", "C"], "A"),
        (["A", "B", "C"], None),
        (["A", None, None], "A"),
        (["A", "B", None], None),
        (["D", "D", None], "D"),
        ([None, None], None),
        ([], None),
    ],
)
def test_more_than_half_of_the_readable_votes_decide(votes: list[str | None], behaviour: str | None) -> None:
    assert decide(votes) == behaviour


def test_proportions_by_hand() -> None:
    lines = [
        {"behaviour": "A", "votes": ["A", "A", None]},
        {"behaviour": "A", "votes": ["A", "A", "B"]},
        {"behaviour": "C", "votes": ["C", None, None]},
        {"behaviour": "D", "votes": ["D", "D", "D"]},
        {"behaviour": None, "votes": ["A", "B", "C"]},
    ]
    found = summarise(lines, answers=7)
    assert (found.answers, found.traces, found.decided, found.unread) == (7, 5, 4, 3)
    assert found.counts == {"A": 2, "B": 0, "C": 1, "D": 1}
    assert found.shares == {"A": 50.0, "B": 0.0, "C": 25.0, "D": 25.0}
    assert summarise([], answers=3).shares == dict.fromkeys(BEHAVIOURS, 0.0)


def test_the_behaviours_are_those_of_the_published_table() -> None:
    assert {tuple(shares) for shares in published_thinking().values()} == {tuple(BEHAVIOURS)}


def test_a_model_without_traces_is_told_so() -> None:
    assert with_traces([trace(), trace(" ")], "m") == [trace()]
    with pytest.raises(ValueError, match=r"smol: none of its 2 answers holds a reasoning trace \(<think>"):
        with_traces([trace(""), trace("\n")], "smol")
