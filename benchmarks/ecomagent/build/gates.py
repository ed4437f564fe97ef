"""Stage 6, first gate: what code can check of a task's words. Every fault is a sentence; no fault, and it may pass."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.ecomagent.build.plan import Plan, Words, says_values, values_of
from benchmarks.ecomagent.catalogue import Review
from benchmarks.ecomagent.grading.grade import check
from benchmarks.ecomagent.tasks import Task
from benchmarks.ecomagent.wording import find, forms

MOST_SURFACE_WORDS, LONGEST_SURFACE = 18, 140
MOST_QUERY_WORDS = 150
SHORTEST_SECRET = 3  # letters: shorter values occur by accident


def word_faults(plan: Plan, persona: dict[str, Any], words: Words) -> list[str]:
    """What is wrong with the words of a task."""
    found = [*_surface_faults(plan, words), *_secret_faults(plan, persona, words), *_reply_faults(plan, words)]
    if len(words.query.split()) > MOST_QUERY_WORDS:
        found.append(f"the query has more than {MOST_QUERY_WORDS} words")
    return found


def _surface_faults(plan: Plan, words: Words) -> Iterator[str]:
    """Every query item must be said by words of the query, the kind of product by its own name."""
    for item in plan.told_by("query"):
        surface = words.surfaces.get(item.id, "")
        if not surface or surface not in words.query:
            yield f"{item.id}: the query has no words that say it"
        elif len(surface.split()) > MOST_SURFACE_WORDS or len(surface) > LONGEST_SURFACE:
            yield f"{item.id}: more than {MOST_SURFACE_WORDS} words say it"
        elif item.id not in plan.implicit and not says_values(item, surface):
            yield f"{item.id}: {surface!r} does not say {item.expected_value!r}"
    if plan.kind.span not in plan.product.title:
        yield f"the title does not have {plan.kind.span!r}"
    if len(plan.implicit) < plan.intent.implicit:
        yield f"{len(plan.implicit)} requirements are hinted at, {plan.intent.implicit} are wanted"


def _secret_faults(plan: Plan, persona: dict[str, Any], words: Words) -> Iterator[str]:
    """What a source tells alone must not be told by another."""
    told = {"query": words.query, "persona": json.dumps(persona, ensure_ascii=False)}
    for item in plan.items:
        hidden_from = {"persona": ["query"], "clarification": ["query", "persona"]}.get(item.info_source, [])
        if item.id in plan.implicit:
            hidden_from = ["query"]
        for value in values_of(item) if item.type in ("attribute_match", "negative_attribute") else ():
            for place in hidden_from:
                if len("".join(forms(value))) >= SHORTEST_SECRET and any(find(told[place], value)):
                    yield f"{item.id}: the {place} gives {value!r} away"


def _reply_faults(plan: Plan, words: Words) -> Iterator[str]:
    for item in plan.told_by("clarification"):
        answer = words.replies.get(item.id, "")
        if not says_values(item, answer):
            yield f"{item.id}: the answer {answer!r} does not say {item.expected_value!r}"


def meaning_faults(plan: Plan, reviews: Sequence[Review], task: Task) -> list[str]:
    """Requirements that the target itself does not meet, by the benchmark's own grading."""
    verdicts = {item.id: check(item, plan.product, reviews, task) for item in task.rubrics}
    return [
        f"{name}: the target does not meet it: {verdict.reason}"
        for name, verdict in verdicts.items()
        if not verdict.satisfied
    ]
