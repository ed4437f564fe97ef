"""Stages 2 to 5: a model says of each question whether it is fit, general, expert and right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.asking import Reply, ask
from benchmarks.ecomqa.build.items import Item
from benchmarks.ecomqa.build.steps import run_step
from benchmarks.ecomqa.build.tools import Line, Sifted, Tools, read_claims, said, sifted
from benchmarks.ecomqa.corpus import Passage
from benchmarks.ecomqa.retrieval import fuse
from models.generation import chat

Queries = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Check:
    """A prompt that asks for the truth of ``claims`` in the light of passages from the retrievers named."""

    number: int
    stage: str
    claims: tuple[str, ...]
    evidence: tuple[str, ...] = ()


CRITERIA = Check(2, "criteria", ("clear", "known", "single", "stable"))
GENERALITY = Check(3, "generality", ("general",), ("web",))
EXPERTISE = Check(4, "expertise", ("expert",), ("shop",))
FACTUAL = Check(5, "factual", ("right",), ("web", "shop"))


def run_check(tools: Tools, check: Check, items: Sequence[Item], queries: Queries) -> Sifted:
    """Keep the items of which all claims hold. What the model says that cannot be read drops an item as well.

    Args:
        queries: what is searched for about each item.
    """
    by_id = {item.id: item for item in items}

    def work(ids: list[str]) -> list[Line]:
        found = [evidence(tools, queries[each], check.evidence) if check.evidence else [] for each in ids]
        chats = [
            chat(tools.prompts.render(check.stage, item=by_id[each], passages=passages))
            for each, passages in zip(ids, found, strict=True)
        ]
        replies = ask(tools.checker(), chats, tools.checking, lambda reply: read_claims(reply, check.claims))
        return [
            {"id": each, **verdict(reply, check.claims), "evidence": [one.id for one in passages], **said(reply)}
            for each, reply, passages in zip(ids, replies, found, strict=True)
        ]

    lines = run_step(tools.folder, f"{check.number}-{check.stage}", list(by_id), work)
    return sifted(items, check.stage, lines)


def verdict(reply: Reply[Line], claims: Sequence[str]) -> Line:
    """Whether an item is kept, and why not."""
    if reply.value is None:
        return {"kept": False, "reason": f"unread: {reply.problem}"}
    failed = [claim for claim in claims if not reply.value[claim]]
    return {"kept": not failed, "reason": f"not {', '.join(failed)}: {reply.value['reason']}" if failed else ""}


def searches(tools: Tools, items: Sequence[Item]) -> dict[str, list[str]]:
    """What to search for: an open question itself; of a choice the points of knowledge that a model names, or the
    question where these cannot be read.
    """
    by_id = {item.id: item for item in items}

    def work(ids: list[str]) -> list[Line]:
        chosen = [each for each in ids if by_id[each].choice]
        chats = [chat(tools.prompts.render("points", item=by_id[each])) for each in chosen]
        replies = dict(zip(chosen, ask(tools.checker(), chats, tools.checking, read_points), strict=True))
        return [_search_line(by_id[each], replies.get(each)) for each in ids]

    # Nothing is asked, and no model loaded, where there is no choice among the items.
    if not any(item.choice for item in items):
        return {item.id: [item.question] for item in items}
    return {each: line["queries"] for each, line in run_step(tools.folder, "3-searches", list(by_id), work).items()}


def _search_line(item: Item, reply: Reply[list[str]] | None) -> Line:
    points = reply.value if reply is not None else None
    spoken = said(reply) if reply is not None else {"tokens": 0}
    return {"id": item.id, "queries": points or [item.question], **spoken}


def read_points(reply: Any) -> list[str]:
    """One to three searches. Raises ValueError that tells the model what is wrong."""
    if not isinstance(reply, list) or not reply or not all(isinstance(one, str) and one.strip() for one in reply):
        raise ValueError("it is no JSON list of texts")
    return [one.strip() for one in reply[:3]]


def evidence(tools: Tools, queries: Sequence[str], where: Sequence[str]) -> list[Passage]:
    """The best passages for some queries together, of each retriever."""
    found: dict[str, Passage] = {}
    for name in where:
        if name in tools.retrievers:
            for passage in fuse(tools.retrievers[name].search(queries, tools.shown), tools.shown):
                found.setdefault(passage.id, passage)
    return list(found.values())
