"""A generator whose replies a function writes from the whole chat, and that can be killed after some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from models.generation import Chat, Completion, SamplingSettings


class Scripted:
    """Replies with ``reply(chat)``. ``asked`` holds all chats, in order; one more than ``most`` is a kill."""

    context: int | None = None

    def __init__(self, reply: Callable[[Chat], str], name: str = "scripted", most: int | None = None) -> None:
        self.reply, self.name, self.most = reply, name, most
        self.facts: dict[str, Any] = {"served": name}
        self.asked: list[Chat] = []

    def prompt_tokens(self, chats: Sequence[Chat]) -> list[int]:
        return [sum(len(message.content) for message in chat.messages) for chat in chats]

    def plan(self, chats: Sequence[Chat], settings: SamplingSettings) -> list[list[int]]:
        return [[row] for row in range(len(chats))]

    def generate(
        self, chats: Sequence[Chat], settings: SamplingSettings, batches: Sequence[Sequence[int]] | None = None
    ) -> Iterator[tuple[int, Completion]]:
        rows = [row for batch in (self.plan(chats, settings) if batches is None else batches) for row in batch]
        for row in reversed(rows):  # in no order that a caller may count on
            if self.most is not None and len(self.asked) >= self.most:
                raise KeyboardInterrupt
            self.asked.append(chats[row])
            text = self.reply(chats[row])
            yield row, Completion(text, len(text), self.prompt_tokens([chats[row]])[0], "stop")
