"""Texts kept on disk: what is told of those from a cache, and of a chat that a server finds too long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from scripted import Scripted

from benchmarks.asking import ask
from benchmarks.completions import Completions, Crew, fingerprint
from models.generation import Completion, Found, SamplingSettings, chat

CHATS = {"a": chat("one"), "b": chat("two"), "c": chat("three")}


class Kept(Scripted):
    """Has answered what is of three characters before."""

    recalled = 0

    def generate(self, *given: Any) -> Iterator[tuple[int, Completion]]:
        for row, completion in super().generate(*given):
            self.recalled += completion.tokens == 3
            yield row, completion


def store(folder: Path) -> Completions:
    return Completions(folder, Crew(), Console(stderr=True, soft_wrap=True, highlight=False))


def found(generator: Scripted) -> Found:
    return Found(generator.name, generator.facts, lambda: generator)


def said(asked: Any) -> str:
    return str(asked.messages[-1].content)


def test_it_is_said_how_many_texts_came_from_a_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, cost = store(tmp_path).replies("votes", CHATS, found(Kept(said)), SamplingSettings())
    assert [line["text"] for line in lines.values()] == ["one", "two", "three"]
    assert cost.texts == 3
    assert "votes: 2 of 3 come from the cache of served answers" in capsys.readouterr().err


def test_a_reply_stays_as_long_as_its_chat_does(tmp_path: Path) -> None:
    scripted = Scripted(said)
    store(tmp_path).replies("votes", CHATS, found(scripted), SamplingSettings())
    first = (tmp_path / "votes.jsonl").read_bytes()
    store(tmp_path).replies("votes", CHATS, found(scripted), SamplingSettings())
    assert (len(scripted.asked), (tmp_path / "votes.jsonl").read_bytes()) == (3, first)
    changed = {**CHATS, "b": chat("other")}
    lines, _ = store(tmp_path).replies("votes", changed, found(scripted), SamplingSettings())
    assert [line["text"] for line in lines.values()] == ["one", "other", "three"]
    assert scripted.asked[3:] == [changed["b"]]


def test_a_fingerprint_follows_every_turn_and_who_speaks() -> None:
    told = [chat("a"), chat("b"), chat("a", "b"), chat("b", "a"), chat("ab")]
    assert len({fingerprint(one) for one in told}) == 5
    assert fingerprint(chat("a", sample=1)) == fingerprint(chat("a"))


class Narrow(Scripted):
    """Finds every chat that says "long" too long."""

    def generate(self, *given: Any) -> Iterator[tuple[int, Completion]]:
        for row, completion in super().generate(*given):
            yield row, Completion("", 0, 0, "too_long") if "long" in completion.text else completion


def test_a_vote_on_what_a_server_finds_too_long_ends_the_run_by_name(tmp_path: Path) -> None:
    chats = {**CHATS, "d": chat("a long one")}
    with pytest.raises(ValueError, match=r"votes: d is too long for scripted together with 9 tokens"):
        store(tmp_path).replies("votes", chats, found(Narrow(said)), SamplingSettings(max_tokens=9))


def test_json_that_is_asked_for_in_too_long_a_chat_is_a_problem_of_that_chat_alone() -> None:
    replies = ask(Narrow(said), [chat('{"a": 1}'), chat("too long")], SamplingSettings(max_tokens=9), dict)
    assert [reply.value for reply in replies] == [{"a": 1}, None]
    assert replies[1].problem == "the prompt is too long for scripted with 9 to write"
