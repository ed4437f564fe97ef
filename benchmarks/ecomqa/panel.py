"""The judges of a run: which models under which prompts, and their votes on answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar

from benchmarks.completions import Completions, Cost
from benchmarks.ecomqa.data import Question
from benchmarks.ecomqa.forms import form_of
from benchmarks.ecomqa.judges import PROMPTS, JudgePrompt, judge_chat, read_vote
from benchmarks.ecomqa.rules import Grade
from models.generation import Found, SamplingSettings

RULES = "rules"
Asked = Literal["all", "open"]
T = TypeVar("T")


@dataclass(frozen=True)
class Member:
    """A model under a prompt. ``name`` is its own among the members of a panel."""

    name: str
    found: Found
    prompt: JudgePrompt
    settings: SamplingSettings

    @property
    def facts(self) -> dict[str, Any]:
        """What fixes its votes on given answers."""
        settings = asdict(self.settings)
        return {"generator": self.found.facts, "prompt": self.prompt.system, "settings": settings}


@dataclass(frozen=True)
class Vote:
    """What a judge said of an answer, and how it was read; None is unread."""

    judge: str
    grade: Grade | None
    text: str


def make_panel(models: Sequence[Found], prompts: str, max_tokens: int | None, guided: bool = False) -> list[Member]:
    """Each model under each prompt; see GradingConfig.

    Raises ValueError for a prompt that is not there, and for a model or a prompt named twice.
    """
    names = names_of(prompts) or (list(PROMPTS) if len(models) == 1 else ["standard"])
    if unknown := [name for name in names if name not in PROMPTS]:
        raise ValueError(f"grading.prompts: {unknown[0]!r} is not there; choose among {', '.join(PROMPTS)}")
    if repeated := _repeated(names):
        raise ValueError(f"grading.prompts: {repeated} is named twice; name each prompt once")
    if twice := _repeated([(found.name, digest(found.facts)) for found in models]):
        raise ValueError(f"judges: {twice[0]} is named twice, and would vote twice alike; name each judge once")
    members = []
    for found in models:
        twins = [digest(other.facts) for other in models if other.name == found.name]
        own = f"{found.name}#{twins.index(digest(found.facts)) + 1}" if len(twins) > 1 else found.name
        for name in names:
            settings = SamplingSettings(max_tokens=max_tokens or PROMPTS[name].max_tokens)
            if guided:  # a reasoning block would have to be of the grammar as well
                settings = replace(settings, thinking=False, grammar=PROMPTS[name].grammar)
            label = f"{own}/{name}" if len(names) > 1 else own
            members.append(Member(label, found, PROMPTS[name], settings))
    return members


def _repeated(names: Sequence[T]) -> T | None:
    """The first that occurs twice."""
    return next((name for place, name in enumerate(names) if name in names[:place]), None)


def names_of(text: str) -> list[str]:
    """Names that stand in a text with commas between."""
    return [name for name in (part.strip() for part in text.split(",")) if name]


def votes_on(
    member: Member, variant: str, questions: Sequence[Question], answers: Mapping[str, str], store: Completions
) -> tuple[dict[str, Vote], Cost]:
    """A member's vote on each question's answer (by id), from disk where it is there and was cast on that answer.

    Raises ValueError where what the judge is to read does not fit it.
    """
    ids = [question.id for question in questions]
    if not ids:
        return {}, Cost()
    chats = {one.id: judge_chat(one, form_of(one), answers[one.id], member.prompt) for one in questions}
    name = f"votes-{variant}-{digest([member.facts, ids])}"
    lines, cost = store.replies(name, chats, member.found, member.settings)
    return {one: Vote(member.name, read_vote(lines[one]["text"]), lines[one]["text"]) for one in ids}, cost


def digest(value: Any) -> str:
    """A short name for a value that JSON can hold."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
