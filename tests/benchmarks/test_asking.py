"""Asking a model for JSON: what is found in a reply, and what is put back."""

from __future__ import annotations

from typing import Any

import pytest
from scripted import Scripted

from benchmarks.asking import ask, json_in
from models.generation import SamplingSettings, chat


def test_what_cannot_be_read_is_put_back_with_what_is_wrong() -> None:
    replies = iter(["no json", '{"ok": "maybe"}', '{"ok": true}'])
    scripted = Scripted(lambda _: next(replies))

    def read(value: Any) -> bool:
        if value["ok"] is not True:
            raise ValueError('"ok" is no truth')
        return True

    (reply,) = ask(scripted, [chat("say")], SamplingSettings(), read)
    assert reply.value is True and reply.problem == "" and reply.tokens > 0
    assert [len(one.messages) for one in scripted.asked] == [1, 3, 3]
    assert "cannot be used: it holds no JSON." in scripted.asked[1].messages[-1].content
    assert 'cannot be used: "ok" is no truth.' in scripted.asked[2].messages[-1].content


def test_after_three_attempts_a_reply_stays_unread() -> None:
    scripted = Scripted(lambda _: "never")
    (reply,) = ask(scripted, [chat("say")], SamplingSettings(), lambda value: value)
    assert reply.value is None and reply.problem == "it holds no JSON" and len(scripted.asked) == 3


def test_a_prompt_without_room_for_a_reply_is_not_asked() -> None:
    scripted = Scripted(lambda _: "[1]")
    scripted.context = 20
    long, short = ask(scripted, [chat("x" * 15), chat("x" * 10)], SamplingSettings(max_tokens=10), lambda value: value)
    assert long.value is None and "has 15 tokens, too many for scripted with 10 to write" in long.problem
    assert short.value == [1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("```json\n[1, 2]\n```", [1, 2]),
        ('He said [no], so: {"a": [1]} and {"b": 2}', {"a": [1]}),
        ('<think>{"a": 0}</think>\n{"a": 1}', {"a": 1}),
    ],
)
def test_json_is_found_in_a_text(text: str, value: object) -> None:
    assert json_in(text) == value


@pytest.mark.parametrize("text", ["[" * 3000, '{"a": ' * 1500, "[" * 1100 + "]" * 1100])
def test_more_brackets_than_can_be_read_are_put_back_like_any_other_reply(text: str) -> None:
    with pytest.raises(ValueError, match="nests too deeply"):
        json_in(text)
    (reply,) = ask(Scripted(lambda chat: text), [chat("x")], SamplingSettings(), [lambda value: value])
    assert reply.value is None and "nests too deeply" in reply.problem


def test_half_a_character_in_a_reply_becomes_one_that_files_can_hold() -> None:
    assert json_in(r'{"goal": "supper \ud83d", "\ude00": "\ud83d\ude00"}') == {"goal": "supper \ufffd", "\ufffd": "😀"}


def test_a_text_without_json_is_refused() -> None:
    for text in ("", "none", "{a: 1}", "<think>[1]"):
        with pytest.raises(ValueError, match="holds no JSON"):
            json_in(text)
