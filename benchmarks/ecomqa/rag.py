"""Questions asked with retrieved passages in the prompt, and what these bring over the plain questions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.ecomqa.corpus import Passage
from benchmarks.ecomqa.data import Question
from benchmarks.ecomqa.retrieval import Retriever
from models.generation import Generator, chat

# The sub-concepts that the paper examines with retrieval.
TASKS = ("CC", "BC")
PASSAGES = 5
# Tokens that the passages may take together.
TOKENS = 1500
INTRODUCTION = "下面是为这个问题检索到的资料，有的可能有用，有的可能无关。请参考资料，并按要求作答。"
_MARKER = re.compile(r"\*\*\*[^*\n]{1,12}\*\*\*[：:]?|^答案[：:]\s*$", re.MULTILINE)

TokenCounter = Callable[[Sequence[str]], list[int]]


@dataclass(frozen=True)
class Augmented:
    """Questions with passages in their prompts (ids as before, so that they pair with the plain ones), and the ids of
    the passages that each prompt shows, best first."""

    questions: list[Question]
    retrieved: dict[str, list[str]]


def augment(
    questions: Sequence[Question],
    retriever: Retriever,
    count: TokenCounter,
    k: int = PASSAGES,
    budget: int = TOKENS,
) -> Augmented:
    """Put the best passages before each question.

    Args:
        k: passages a question, at most.
        budget: tokens of all passages of a question; one that no longer fits is passed over for the next.
    """
    shown: list[Question] = []
    retrieved: dict[str, list[str]] = {}
    found = retriever.search([search_text(question) for question in questions], k)
    for question, passages in zip(questions, found, strict=True):
        kept = within(passages, count([passage.content for passage in passages]), budget)
        retrieved[question.id] = [passage.id for passage in kept]
        shown.append(replace(question, prompt=with_passages(question.prompt, kept)))
    return Augmented(shown, retrieved)


def search_text(question: Question) -> str:
    """What is searched for: the question without its markers and answer cue."""
    return without_markers(question.prompt)


def without_markers(prompt: str) -> str:
    """A question's text on one line, without its markers and answer cue."""
    return " ".join(_MARKER.sub(" ", prompt).split())


def within(passages: Sequence[Passage], tokens: Sequence[int], budget: int) -> list[Passage]:
    """The passages, in order, that fit into the budget together."""
    kept: list[Passage] = []
    for passage, cost in zip(passages, tokens, strict=True):
        if cost <= budget:
            kept.append(passage)
            budget -= cost
    return kept


def with_passages(prompt: str, passages: Sequence[Passage]) -> str:
    """A prompt behind numbered passages; the prompt alone where there are none."""
    if not passages:
        return prompt
    lines = "".join(f"[{number}] {passage.content}\n" for number, passage in enumerate(passages, 1))
    return f"{INTRODUCTION}\n{lines}\n{prompt}"


def token_counter(generator: Generator) -> TokenCounter:
    """Counts the tokens of texts as a generator reads them; where it cannot say, a character counts as a token."""

    def count(texts: Sequence[str]) -> list[int]:
        empty, *counted = generator.prompt_tokens([chat(text) for text in ("", *texts)]) or [0, *map(len, texts)]
        return [max(0, number - empty) for number in counted]

    return count


@dataclass(frozen=True)
class Gain:
    """Accuracies in percent. ``absolute`` is in points, ``relative`` in percent of the plain accuracy (None from 0)."""

    plain: float
    rag: float
    absolute: float
    relative: float | None


def gain(plain: float, rag: float) -> Gain:
    """What retrieval adds; both accuracies in percent."""
    return Gain(plain, rag, rag - plain, 100 * (rag - plain) / plain if plain else None)


def compare(plain: Sequence[Mapping[str, Any]], rag: Sequence[Mapping[str, Any]]) -> dict[str, Gain]:
    """The gain of each sub-concept, and as ``average`` that of their unweighted means.

    Args:
        plain, rag: result lines with ``id``, ``task`` and ``correct`` (true or false) of the same questions; lines of
            ``plain`` without a partner are left out.

    Raises ValueError where a question was not asked plainly, or none was asked with retrieval.
    """
    if not rag:
        raise ValueError("no question was asked with retrieval; choose sub-concepts that the questions have")
    without = {line["id"]: bool(line["correct"]) for line in plain}
    if lost := [line["id"] for line in rag if line["id"] not in without]:
        raise ValueError(f"{len(lost)} questions were not asked without retrieval, first {lost[0]}; ask both ways")
    tasks = dict.fromkeys(line["task"] for line in rag)
    pairs = {task: [(without[one["id"]], bool(one["correct"])) for one in rag if one["task"] == task] for task in tasks}
    scores = {
        task: tuple(100 * sum(side) / len(rows) for side in zip(*rows, strict=True)) for task, rows in pairs.items()
    }
    means = [sum(side) / len(scores) for side in zip(*scores.values(), strict=True)]
    return {**{task: gain(*score) for task, score in scores.items()}, "average": gain(*means)}
