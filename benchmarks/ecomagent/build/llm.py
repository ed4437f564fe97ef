"""The language stage with a language model: it words what the plan says, and code checks that nothing else is said."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from benchmarks.asking import ask
from benchmarks.ecomagent.build import template
from benchmarks.ecomagent.build.gates import LONGEST_SURFACE, MOST_SURFACE_WORDS
from benchmarks.ecomagent.build.phrases import name_of
from benchmarks.ecomagent.build.plan import Faults, Plan, Words, Written, says_values
from benchmarks.ecomagent.tasks import RubricItem
from benchmarks.ecomagent.wording import forms
from models.generation import Generator, SamplingSettings, chat

PROMPT_VERSION = "1"
MATCHING = 0.5  # of the words that a window of the query must share with a surface to stand in for it
TONES = ("chatty", "matter-of-fact", "in a hurry", "polite", "a little impatient", "telling a short story first")
SETTINGS = SamplingSettings(max_tokens=1024, temperature=0.0)

SYSTEM = f"""\
You write what a shopper says to a shopping assistant, in English, from a plan that is fixed: say everything in it, \
add no wish of your own, and change no value.

- "say": requirements to be said plainly, each with the very words of its value.
- "hint": requirements to be hinted at. Describe what is meant so that a person with common knowledge can work it out, \
and never use the value's words, in no form of them.
- "kind": the kind of product, to be named in these words.
- "voucher": to be told with its terms, and with the words "pay at most" and the budget. Do not state any order total.
- "opinions": what reviews should say, word for word.
- "silent": values that must not appear anywhere: they are for other places to tell.
- "answers": what the shopper answers when asked later, one short sentence each that holds the value's very words.

Write the message in one to four sentences. Answer with JSON alone:
{{"user_query": "...", "surfaces": {{"r1": "..."}}, "answers": {{"r6": "..."}}}}
"surfaces" names, for every requirement of the message, the part of it that says the requirement: copied letter by \
letter, at most {MOST_SURFACE_WORDS} words and {LONGEST_SURFACE} characters."""


@dataclass(frozen=True)
class LanguageModel:
    """Words by a generator at temperature 0, which is told what the gate finds wrong and tries again."""

    generator: Generator

    def write(self, plan: Plan, rng: random.Random, faults: Faults) -> Written:
        """Words for a plan that the gate lets pass, or what it found wrong with the last try."""
        tries = count()

        def read(reply: Any) -> tuple[Words, int]:
            number = next(tries)
            words = words_of(reply if isinstance(reply, Mapping) else {}, plan, rng)
            if found := faults(words):
                raise ValueError("; ".join(found))
            return words, number

        (reply,) = ask(self.generator, [chat(prompt(plan, rng.choice(TONES)), SYSTEM)], SETTINGS, read)
        return Written(None, next(tries), reply.problem) if reply.value is None else Written(*reply.value)


def prompt(plan: Plan, tone: str) -> str:
    """The plan as the model reads it."""
    apart = ("entity_match", "budget_match", "review_opinion")
    said = [item for item in plan.told_by("query") if item.type not in apart]
    hidden = [*plan.told_by("persona"), *plan.told_by("clarification")]
    content = {
        "intent": plan.intent.name.replace("_", " "),
        "tone": tone,
        "kind": {"id": plan.items[-1].id, "words": plan.kind.name},
        "say": [_shown(item) for item in said if item.id not in plan.implicit],
        "hint": [_shown(item) for item in said if item.id in plan.implicit],
        "opinions": [_shown(item) for item in plan.items if item.type == "review_opinion"],
        "voucher": _voucher(plan),
        "silent": [item.expected_value for item in hidden if item.type in ("attribute_match", "negative_attribute")],
        "answers": [_shown(item) for item in plan.told_by("clarification")],
    }
    return json.dumps({name: value for name, value in content.items() if value}, ensure_ascii=False, indent=1)


def _shown(item: RubricItem) -> dict[str, Any]:
    exclude = {"exclude": True} if item.type == "negative_attribute" else {}
    return {"id": item.id, "what": name_of(item), "value": item.expected_value, **exclude}


def _voucher(plan: Plan) -> dict[str, Any] | None:
    """The voucher's terms with the budget, without what would tell the target's price."""
    if plan.voucher is None:
        return None
    terms = plan.voucher.model_dump(exclude_none=True, exclude={"total_original_price", "price_after_voucher"})
    terms.pop("active_tier", None)
    for coupon in terms.get("coupons", ()):
        coupon.pop("actual_discount", None)
    item = next(item for item in plan.items if item.type == "budget_match")
    return {"id": item.id, **terms, "budget": f"${plan.voucher.budget:.2f}"}


def words_of(reply: Mapping[str, Any], plan: Plan, rng: random.Random) -> Words:
    """What a reply says, its surfaces anchored in its query where that is possible; an answer that lacks its value is
    replaced by the template's."""
    query = " ".join(str(reply.get("user_query") or "").split())
    given, answers = reply.get("surfaces"), reply.get("answers")
    surfaces = {
        item.id: anchored(str(given.get(item.id) or ""), query) if isinstance(given, Mapping) else ""
        for item in plan.told_by("query")
    }
    replies = {}
    for item in plan.told_by("clarification"):
        said = str(answers.get(item.id) or "") if isinstance(answers, Mapping) else ""
        replies[item.id] = said if says_values(item, said) else template.reply(item, rng)
    return Words(query, surfaces, replies)


def anchored(surface: str, query: str) -> str:
    """The words of the query that a surface means: itself if it stands there, else the window of as many words that
    shares most with it, if that is at least half of what both have (Jaccard); else nothing."""
    surface = " ".join(surface.split()).strip(" .,;")
    if not surface or surface in query:
        return surface
    words, size, wanted = query.split(), len(surface.split()), set(forms(surface))
    windows = [" ".join(words[start : start + size]) for start in range(max(0, len(words) - size + 1))]
    scored = [(_jaccard(set(forms(window)), wanted), window) for window in windows]
    best, window = max(scored, key=lambda pair: pair[0], default=(0.0, ""))
    return window.strip(" .,;") if best >= MATCHING else ""


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0
