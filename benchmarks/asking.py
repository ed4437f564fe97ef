"""Asking a model for JSON: what cannot be read is put back to it with what is wrong, a few times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from benchmarks.traces import part
from models.generation import Chat, Completion, Generator, Message, SamplingSettings
from models.json_text import TooDeep, value_at
from recipes.faults import explain

ATTEMPTS = 3
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
Read = Callable[[Any], T]


@dataclass(frozen=True)
class Reply(Generic[T]):
    """What was read (None if nothing could be), the last text, what was wrong with it, and tokens read and written."""

    value: T | None
    text: str
    problem: str
    tokens: int


def ask(
    generator: Generator, chats: Sequence[Chat], settings: SamplingSettings, read: Read[T] | Sequence[Read[T]]
) -> list[Reply[T]]:
    """A reply to each chat, in order.

    Args:
        read: makes something of a reply's JSON, or raises ValueError that tells the writer what is wrong; one for all
            chats, or one for each.
    """
    readers = [read] * len(chats) if callable(read) else read
    replies: list[Reply[T]] = [Reply(None, "", "", 0)] * len(chats)
    waiting = dict(enumerate(chats))
    for _ in range(ATTEMPTS):
        rows = list(waiting)
        for place, problem in too_long(generator, list(waiting.values()), settings).items():
            del waiting[rows[place]]
            if not replies[rows[place]].problem:
                replies[rows[place]] = Reply(None, "", problem, 0)
        rows = list(waiting)
        for place, completion in generator.generate(list(waiting.values()), settings):
            row = rows[place]
            if completion.finish == "too_long":
                del waiting[row]
                if not replies[row].problem:
                    long = f"the prompt is too long for {generator.name} with {settings.max_tokens} to write"
                    replies[row] = Reply(None, "", long, 0)
                continue
            replies[row] = _reply(completion, readers[row], replies[row].tokens)
            if replies[row].problem:
                waiting[row] = _again(chats[row], completion, replies[row].problem)
            else:
                del waiting[row]
        if not waiting:
            break
    return replies


def read_as(model: type[M]) -> Read[M]:
    """Reads a reply's JSON as a pydantic model; what is wrong is told as recipes.faults tells it."""

    def read(reply: Any) -> M:
        try:
            return model.model_validate(reply)
        except ValidationError as error:
            field, message = explain(error.errors(include_url=False)[0], model)
            raise ValueError(f"{field}: {message}" if field else message) from None

    return read


def json_in(text: str) -> Any:
    """The first JSON object or list in a text, behind whatever reasoning or fence comes before it.

    Raises ValueError where there is none, or none that can be read.
    """
    said = part(text).answer
    for place, character in enumerate(said):
        if character in "[{":
            try:
                return value_at(said, place)
            except TooDeep:
                raise
            except ValueError:
                continue
    raise ValueError("it holds no JSON")


def _reply(completion: Completion, read: Read[T], tokens: int) -> Reply[T]:
    tokens += completion.prompt_tokens + completion.tokens
    try:
        return Reply(read(json_in(completion.text)), completion.text, "", tokens)
    except ValueError as error:
        cut = " (it was cut at the limit of tokens)" if completion.finish == "length" else ""
        return Reply(None, completion.text, f"{error}{cut}", tokens)


def _again(chat: Chat, completion: Completion, problem: str) -> Chat:
    wrong = f"That reply cannot be used: {problem}. Reply once more, with the JSON alone."
    return Chat((*chat.messages, Message("assistant", completion.text), Message("user", wrong)), chat.sample)


def too_long(generator: Generator, chats: Sequence[Chat], settings: SamplingSettings) -> dict[int, str]:
    """Row -> problem of the chats that leave the model no room for a reply."""
    counted = generator.prompt_tokens(chats) if generator.context is not None else None
    return {
        row: f"the prompt has {tokens} tokens, too many for {generator.name} with {settings.max_tokens} to write"
        for row, tokens in enumerate(counted or ())
        if generator.context is not None and tokens + settings.max_tokens > generator.context
    }
