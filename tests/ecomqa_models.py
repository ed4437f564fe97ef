"""A generator whose answers are written out in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

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
