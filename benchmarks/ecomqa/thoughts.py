"""The traces of a run, sorted into thinking behaviours (benchmarks.ecomqa.thinking) by the run's judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from benchmarks.completions import Completions, Cost, Line
from benchmarks.ecomqa import thinking
from benchmarks.ecomqa.panel import Member, digest


def sort_traces(
    lines: Sequence[Line], panel: Sequence[Member], model: str, store: Completions
) -> tuple[list[Line], dict[str, Any], list[Cost]]:
    """(a line for each trace: id, behaviour, votes; proportions; costs). A model without traces has a message only.

    Args:
        lines: graded lines; the judges of ``panel`` vote on their traces.
    """
    traces = [
        thinking.Trace(line["id"], line["prompt"], tuple(line["references"]), line["trace"] or "", line["answer"])
        for line in lines
    ]
    try:
        kept = thinking.with_traces(traces, model)
    except ValueError as error:
        return [], {"message": str(error)}, []
    ids = [trace.id for trace in kept]
    chats = {trace.id: thinking.behaviour_chat(trace) for trace in kept}
    votes: list[dict[str, str]] = []
    costs = []
    for member in _once(panel):
        tokens = max(thinking.VOTE_TOKENS, member.settings.max_tokens)
        settings = replace(member.settings, max_tokens=tokens, grammar=None)
        name = f"behaviour-{digest([member.found.facts, asdict(settings), thinking.PROMPT, ids])}"
        written, cost = store.replies(name, chats, member.found, settings)
        votes.append({one: written[one]["text"] for one in ids})
        costs.append(cost)
    sorted_lines = []
    for one in ids:
        read = [thinking.read_behaviour(texts[one]) for texts in votes]
        sorted_lines.append(
            {"id": one, "behaviour": thinking.decide(read), "votes": read, "texts": [texts[one] for texts in votes]}
        )
    return sorted_lines, asdict(thinking.summarise(sorted_lines, len(lines))), costs


def _once(panel: Sequence[Member]) -> list[Member]:
    """One member of each model: here all are asked in the same words."""
    return list({digest(member.found.facts): member for member in reversed(panel)}.values())[::-1]
