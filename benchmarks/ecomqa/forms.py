"""What form a question's answer takes, read from the question itself: a letter, a label, candidates, or free text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from benchmarks.ecomqa.data import NO, YES, Question
from benchmarks.ecomqa.normalise import SEPARATORS, same

Kind = Literal["option", "yes_no", "label", "pick", "list", "span", "query", "phrase"]
CLOSED: tuple[Kind, ...] = ("option", "yes_no", "label", "pick", "list", "span", "query")

REVIEW = ("正确", "错误")
RELEVANCE = ("相关", "不相关")
INTENTS = ("买什么", "怎么办", "怎么样", "电商通用百科知识", "怎么挑/怎么买")
_MARKED = {  # the line of a question that holds each part; bold markers and colons come and go
    "options": r"候选品类\**\s*[:：]\s*",
    "candidates": r"候选(?:细粒度品类|类目)\**\s*[:：]\s*",
    "query": r"query\**\s*[:：]\s*",
}
_CUE = r"(?=\n?\s*\**答案\**\s*[:：]|\Z)"
_OPTION = re.compile(r"([A-Z])\s*[.．、:：]\s*(.*?)\s*(?=[;；\n]\s*[A-Z]\s*[.．、:：]|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Form:
    """``names`` are the labels, candidates or option letters to choose from; ``texts`` what each option letter says."""

    kind: Kind
    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def closed(self) -> bool:
        """Whether rules can tell right from wrong, so that no model is needed to grade."""
        return self.kind in CLOSED

    def name_of(self, text: str) -> str | None:
        """The name that a text is, but for its writing; None if it is none of them."""
        return next((name for name in self.names if same(name, text)), None)


def form_of(question: Question) -> Form:
    """The form of a question's answer; free text where its parts cannot be read, or do not hold the reference."""
    found = _by_task(question)
    chosen = found.kind in ("option", "yes_no", "label", "pick")
    return Form("phrase") if chosen and not any(map(found.name_of, question.references)) else found


def query_of(question: Question) -> str | None:
    """The shopper's query that a question is about."""
    found = re.search(_MARKED["query"] + r"(.*?)\s*(?:\n|\Z)", question.prompt)
    return found[1].strip() if found else None


def _by_task(question: Question) -> Form:
    task, prompt = question.task, question.prompt
    if task == "PC":
        options = options_of(prompt)
        return Form("option", tuple(options), tuple(options.values()))
    if task == "RVC":
        return Form("label", REVIEW)
    if task == "ITC":
        return Form("label", INTENTS)
    if task == "RLC":
        return Form("label", RELEVANCE) if question.gt in RELEVANCE else Form("pick", _dimensions(prompt))
    if task == "IC":
        return Form("list", candidates_of(prompt))
    if task == "CC":
        candidates = candidates_of(prompt)
        return Form("pick", candidates) if candidates else Form("yes_no", (YES, NO))
    return Form({"AC": "span", "SC": "query"}.get(task, "phrase"))  # type: ignore[arg-type]


def options_of(prompt: str) -> dict[str, str]:
    """Option letters and their texts, as ``A....;B....`` after the options' marker; empty where there are none."""
    found = re.search(_MARKED["options"] + "(.*?)" + _CUE, prompt, re.DOTALL)
    return {letter: text.rstrip(";； ") for letter, text in _OPTION.findall(found[1])} if found else {}


def candidates_of(prompt: str) -> tuple[str, ...]:
    """The candidates to choose from, each once, without empty ones."""
    found = re.search(_MARKED["candidates"] + "(.*?)" + _CUE, prompt, re.DOTALL)
    return tuple(dict.fromkeys(filter(None, SEPARATORS.split(found[1].strip())))) if found else ()


def _dimensions(prompt: str) -> tuple[str, ...]:
    """The dimensions of a late relevance question: the entries of the last list of quoted names."""
    lists = re.findall(r"\[\s*([\"“][^\[\]]*)\]", prompt)
    return tuple(re.findall(r"[\"“]([^\"”]+)[\"”]", lists[-1])) if lists else ()
