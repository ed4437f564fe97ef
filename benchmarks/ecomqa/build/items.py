"""A question on its way through the stages, and how drafts become questions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.ecomqa.normalise import SEPARATORS, same

# What a question of each sub-concept is about, in the words of the prompt that asks for drafts.
TASKS = {
    "IC": "which categories of a shop a page or a search belongs to",
    "IDC": "an industry's knowledge: materials, processes, terms, standards, origins",
    "CC": "what category a product belongs to, and what tells two categories apart",
    "BC": "brands: founder, year, place, main business, product lines",
    "AC": "attributes of products: which word names a material, a style, a size, a use",
    "SC": "how shoppers put things, and what the right word is",
    "ITC": "what a shopper wants who searches with certain words",
    "RVC": "what a review says about a product",
    "RLC": "whether a product is what was searched for, and what makes the difference",
    "PC": "what suits a shopper of certain habits",
}
OPEN_CANDIDATES, CHOICES = 3, (2, 12)


@dataclass(frozen=True)
class Item:
    """A question with its answer.

    Attributes:
        candidates: of a choice what there is to choose from, the answer among it; of an open question wrong answers
            that are easily taken for right.
        passage: the id of the text that it was drawn from.
    """

    id: str
    task: str
    question: str
    answer: str
    choice: bool
    candidates: tuple[str, ...]
    passage: str


def item_from(fields: Mapping[str, Any]) -> Item:
    """An item from the JSON that was written of it."""
    return Item(**{**fields, "candidates": tuple(fields["candidates"])})


@dataclass
class Drafts:
    """What a reply holds, by place in it, from 1.

    Attributes:
        kept: drafts, each with task, question, answer, choice and candidates.
        refused: the others, each with its reason and its text.
    """

    kept: dict[int, dict[str, Any]] = field(default_factory=dict)
    refused: dict[int, dict[str, str]] = field(default_factory=dict)


def read_drafts(reply: Any, tasks: Sequence[str], most: int) -> Drafts:
    """The drafts of a reply that can be read, at most ``most``.

    Raises ValueError, that tells the writer what is wrong with which draft, where none can be read.
    """
    if not isinstance(reply, list) or not reply:
        raise ValueError("it is no JSON list of questions")
    found = Drafts()
    for place, draft in enumerate(reply, 1):
        try:
            fields = _draft(draft, f"question {place}", tasks)
        except ValueError as error:
            reason = str(error)
        else:
            if len(found.kept) < most:
                found.kept[place] = fields
                continue
            reason = f"question {place} is more than was asked for: {most} from a passage (per_passage)"
        found.refused[place] = {"reason": reason, "text": json.dumps(draft, ensure_ascii=False)}
    if not found.kept:
        raise ValueError("; ".join(one["reason"] for one in found.refused.values()))
    return found


def _draft(draft: Any, where: str, tasks: Sequence[str]) -> dict[str, Any]:
    if not isinstance(draft, Mapping):
        raise ValueError(f"{where} is no JSON object")
    texts = {name: draft.get(name) for name in ("task", "question", "answer")}
    candidates, choice = draft.get("candidates"), draft.get("choice", False)
    for name, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{where} has no {name}")
    if texts["task"] not in tasks:
        raise ValueError(f"the task of {where} is {texts['task']!r}; it must be one of {', '.join(tasks)}")
    if not isinstance(candidates, list) or not all(isinstance(one, str) and one.strip() for one in candidates):
        raise ValueError(f"the candidates of {where} are no list of texts")
    if not isinstance(choice, bool):
        raise ValueError(f'"choice" of {where} is neither true nor false')
    clean = {name: " ".join(str(value).split()) for name, value in texts.items()}
    named = list(dict.fromkeys(" ".join(one.split()) for one in candidates))
    check_candidates(clean["answer"], named, choice, where)
    return {**clean, "choice": choice, "candidates": named}


def check_candidates(answer: str, candidates: Sequence[str], choice: bool, where: str) -> None:
    """Raises ValueError for an answer and candidates that make no question; ``where`` is what the sentence calls it."""
    low, high = CHOICES
    if choice and (divided := [one for one in candidates if SEPARATORS.search(one)]):
        raise ValueError(f"the candidate {divided[0]!r} of {where} holds a comma or the like, which divides candidates")
    if choice and answer not in candidates:
        raise ValueError(f"the answer of {where}, {answer!r}, is not among its candidates")
    if choice and not low <= len(candidates) <= high:
        raise ValueError(f"{where} has {len(candidates)} different candidates; a choice needs {low} to {high}")
    if not choice and any(same(answer, one) for one in candidates):
        raise ValueError(f"the answer of {where} is among the wrong answers")
    if not choice and len(candidates) < OPEN_CANDIDATES:
        raise ValueError(f"{where} has {len(candidates)} different wrong answers; give {OPEN_CANDIDATES}")
