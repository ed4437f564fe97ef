"""Scripted generators, what they answer to the questions of ecomqa_questions, and the grades of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.ecomqa.config import EcomQAConfig
from models.generation import Chat, Completion, Found, SamplingSettings


class Scripted:
    """Answers each chat with ``reply(system text, user text)``; a character is a token."""

    def __init__(self, name: str, reply: Callable[[str, str], str], context: int | None = None) -> None:
        self.name, self.reply, self.context = name, reply, context
        self.facts: dict[str, Any] = {"scripted": name, "template": "chat"}
        self.asked: list[Chat] = []

    def found(self) -> Found:
        return Found(self.name, self.facts, lambda: self)

    def prompt_tokens(self, chats: Sequence[Chat]) -> list[int]:
        return [sum(len(message.content) for message in chat.messages) for chat in chats]

    def plan(self, chats: Sequence[Chat], settings: SamplingSettings) -> list[list[int]]:
        return [list(range(start, min(start + 2, len(chats)))) for start in range(0, len(chats), 2)]

    def generate(
        self, chats: Sequence[Chat], settings: SamplingSettings, batches: Sequence[Sequence[int]] | None = None
    ) -> Iterator[tuple[int, Completion]]:
        for batch in self.plan(chats, settings) if batches is None else batches:
            for row in batch:
                chat = chats[row]
                self.asked.append(chat)
                system = chat.messages[0].content if len(chat.messages) > 1 else ""
                text = self.reply(system, chat.messages[-1].content)
                cut = len(text) > settings.max_tokens
                text = text[: settings.max_tokens]
                yield row, Completion(text, len(text), self.prompt_tokens([chat])[0], "length" if cut else "stop")


RIGHT = {
    "个性化偏好": "B",
    "用户评论": "正确",
    "帐篷": "怎么买",
    "牛皮腰带": "相关",  # wrong
    "冰柜": "否",
    "户外餐具": "野餐用品,急救用品（器械）",
    "硅胶勺": "儿童",
    "麗江": "抱歉，我不知道",  # not attempted
    "创立年份": "一五年",  # right in other words
    "隔热": "",  # nothing
    "车载手机架": "车用支架",
    "纬度列表": "功能和规格",  # two at once: cannot be read
}


def answer(system: str, user: str) -> str:
    return next(text for sign, text in RIGHT.items() if sign in user)


def judge(says: str) -> Callable[[str, str], str]:
    """A judge that says one thing of the open answer and of the unclear one, and A of all others."""
    return lambda system, user: says if "创立年份" in user or "纬度列表" in user else "A"


def lines(config: EcomQAConfig, name: str = "predictions") -> dict[str, Any]:
    """Graded lines by sub-concept (the second of CC and RLC as pick and late), in the order of the file."""
    found: dict[str, Any] = {}
    for text in (Path(str(config.out)) / f"{name}.jsonl").read_text("utf-8").splitlines():
        line = json.loads(text)
        found[{"CC": "pick", "RLC": "late"}[line["task"]] if line["task"] in found else line["task"]] = line
    return found
