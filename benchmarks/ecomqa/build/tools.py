"""What the stages share: their models, prompts and corpora, and what becomes of an item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.asking import Reply
from benchmarks.ecomqa.build.items import Item
from benchmarks.ecomqa.build.prompting import Prompts
from benchmarks.ecomqa.retrieval import Retriever
from models.generation import Generator, SamplingSettings

Line = dict[str, Any]


@dataclass(frozen=True)
class Tools:
    """What the stages work with. ``generator`` and ``checker`` are loaded when they are first asked for.

    Attributes:
        folder: where the steps' files lie.
        drafting, checking: how drafts are written, and everything else.
        retrievers: "web" and "shop" (see the configuration), as far as there are any.
        shown: passages that a check is shown of each retriever.
    """

    folder: Path
    generator: Callable[[], Generator]
    checker: Callable[[], Generator]
    prompts: Prompts
    drafting: SamplingSettings
    checking: SamplingSettings
    retrievers: Mapping[str, Retriever]
    shown: int


@dataclass(frozen=True)
class Drop:
    """What did not come through, where and why: a question, or what a model wrote where none could be read of it.

    Attributes:
        id: of the question, or of the passage that no draft could be read for.
        text: what was written instead of a question.
    """

    id: str
    stage: str
    reason: str
    question: str = ""
    answer: str = ""
    text: str = ""


Sifted = tuple[list[Item], list[Drop]]


def dropped(item: Item, stage: str, reason: str) -> Drop:
    return Drop(item.id, stage, reason, item.question, item.answer)


def sifted(items: Sequence[Item], stage: str, lines: Mapping[str, Mapping[str, Any]]) -> Sifted:
    """(kept items, drops) by the lines of a stage: each item's has ``kept`` and ``reason``."""
    kept = [item for item in items if lines[item.id]["kept"]]
    drops = [dropped(item, stage, lines[item.id]["reason"]) for item in items if not lines[item.id]["kept"]]
    return kept, drops


def said(reply: Reply[Any]) -> Line:
    """What a model wrote, as it is kept in a line."""
    return {"text": reply.text, "problem": reply.problem, "tokens": reply.tokens}


def read_claims(reply: Any, claims: Sequence[str]) -> Line:
    """Claim -> true or false, and the reason. Raises ValueError that tells the model what is wrong."""
    if not isinstance(reply, Mapping):
        raise ValueError("it is no JSON object")
    for claim in claims:
        if not isinstance(reply.get(claim), bool):
            raise ValueError(f'"{claim}" is neither true nor false')
    return {**{claim: reply[claim] for claim in claims}, "reason": str(reply.get("reason", "")).strip()}
