"""Text from chats: what a generator is asked and what it gives back, whoever it is (see models.generators)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, get_args

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "too_long"]


@dataclass(frozen=True)
class Message:
    """One turn."""

    role: Role
    content: str


@dataclass(frozen=True)
class Chat:
    """The turns so far; the generator writes the next one. ``sample`` numbers independent draws for the same turns."""

    messages: tuple[Message, ...]
    sample: int = 0


def chat(prompt: str, system: str = "", sample: int = 0) -> Chat:
    """A chat of one question, behind a system prompt unless that is empty."""
    turns = (Message("system", system),) if system else ()
    return Chat((*turns, Message("user", prompt)), sample)


@dataclass(frozen=True)
class SamplingSettings:
    """How the next turn is written.

    Attributes:
        max_tokens: tokens at most; a text that reaches them is cut, and says so.
        temperature: 0 takes the likeliest token each time.
        top_p: draws from the likeliest tokens that together have this probability.
        stop: texts that end the answer; what is returned ends before the first of them.
        seed: with temperature, fixes every draw by (seed, turns, sample) alone, whatever else is in the batch.
        thinking: switches a chat template's reasoning on or off; None leaves it to the template.
        grammar: what is written is a text of it (see models.guiding), for local checkpoints; None takes any text.
    """

    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int = 0
    thinking: bool | None = None
    grammar: str | None = None


@dataclass(frozen=True)
class Completion:
    """What was written.

    Attributes:
        text: the answer without its end token; where the template has opened a reasoning block for the model
            (``<think>``), the text begins with that tag.
        tokens, prompt_tokens: tokens written and read.
        finish: ``length`` where the limit cut the text; ``too_long`` where a server found the chat too long for its
            model, and nothing was written.
    """

    text: str
    tokens: int
    prompt_tokens: int
    finish: Finish


def as_completion(entry: Any) -> Completion | None:
    """The completion that a JSON object tells of, whatever else is in it; None where it is not of that form."""
    if not isinstance(entry, dict):
        return None
    text, finish, *counts = (entry.get(name) for name in ("text", "finish", "tokens", "prompt_tokens"))
    whole = isinstance(text, str) and finish in get_args(Finish) and all(type(count) is int for count in counts)
    return Completion(**{field.name: entry[field.name] for field in fields(Completion)}) if whole else None


class Generator(Protocol):
    """Whoever writes. ``name`` is for people; ``facts`` fix what is written and hold no path, address or key.

    ``context`` is the number of tokens that prompt and answer may have together; None where it is not known.
    """

    name: str
    facts: dict[str, Any]
    context: int | None

    def prompt_tokens(self, chats: Sequence[Chat]) -> list[int] | None:
        """Tokens of each prompt, template included; None where they cannot be counted beforehand."""

    def plan(self, chats: Sequence[Chat], settings: SamplingSettings) -> list[list[int]]:
        """All rows of ``chats`` in batches. A batch is written the same whichever others are written with it."""

    def generate(
        self, chats: Sequence[Chat], settings: SamplingSettings, batches: Sequence[Sequence[int]] | None = None
    ) -> Iterator[tuple[int, Completion]]:
        """(row, completion) of every row, each as soon as it is there; ``batches`` are those of ``plan`` to do."""


@dataclass(frozen=True)
class Found:
    """A generator that has been found and not yet loaded; ``name`` and ``facts`` are those that it will have."""

    name: str
    facts: dict[str, Any]
    open: Callable[[], Generator]
