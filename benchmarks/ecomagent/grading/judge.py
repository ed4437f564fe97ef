"""A language model as the judge of what only meaning decides: asked at temperature 0, held to the ids it was given.

A reply that is no JSON, lacks an item, has one twice or one that was not asked, or says neither true nor false is put
back to the judge with what is wrong (benchmarks.asking). A question that then has no answer stays without one: it is
never taken for "no".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from benchmarks.asking import ask
from benchmarks.ecomagent.catalogue import Product, Review
from benchmarks.ecomagent.grading.lexical import REVIEW_CHARACTERS
from benchmarks.ecomagent.grading.verdict import Verdict
from benchmarks.ecomagent.tasks import RubricItem, Voucher
from models.generation import Chat, Found, Generator, SamplingSettings, chat

SETTINGS = SamplingSettings(max_tokens=2048, temperature=0.0)
PROMPT_VERSION = "1"

SYSTEM = """\
You check whether a product meets a shopper's requirements. Go by what is written about the product and by nothing \
else: what is missing or ambiguous is not met.

How each type of requirement is checked:
- attribute_match: look at the detail that the field names. If the details have it, it must be or contain the expected \
value. If they do not, a line of the features counts, but only if it says the same or something more specific; usual \
abbreviations are the same, a broader statement is not.
- negative_attribute: the detail that the field names must clearly differ from every excluded value. Partly the same \
is not met, nor is a product without this detail.
- numeric_range: a bare number is meant exactly; min and max are inclusive; an operator is meant as it stands.
- budget_match: the price after the voucher must not exceed the expected value. A voucher applies from its threshold on.
- entity_match: the title must show that the product itself is of the expected kind; what merely goes with it is not.
- review_opinion: a review must make the same concrete statement; without reviews it is not met.
- store_match: the store must be the expected one.

Answer with JSON alone, every requirement once, in the order given:
{"results": [{"rubric_id": "r1", "satisfied": true, "reasoning": "one sentence"}]}"""


@dataclass(frozen=True)
class Question:
    """A product and the requirements to check it against. ``reviews`` are those of the product, if they matter."""

    product: Product
    items: tuple[RubricItem, ...]
    reviews: tuple[Review, ...] = ()
    voucher: Voucher | None = None


@dataclass(frozen=True)
class Answer:
    """The judge's verdicts by item id; none, and what was wrong, where it gave no usable reply."""

    verdicts: Mapping[str, Verdict]
    problem: str = ""


def answers(generator: Generator, questions: Sequence[Question]) -> list[Answer]:
    """The judge's answers, one a question, in order."""
    chats = [_fitting(generator, question) for question in questions]
    readers = [partial(verdicts_in, items=question.items) for question in questions]
    replies = ask(generator, chats, SETTINGS, readers)
    return [Answer(reply.value or {}, reply.problem) for reply in replies]


def _fitting(generator: Generator, question: Question) -> Chat:
    """The question as a chat that leaves room for the reply: reviews and features are halved until it does."""
    reviews, features = list(question.reviews), list(question.product.features)
    while True:
        asked = chat(prompt(question, features, reviews), SYSTEM)
        counted = generator.prompt_tokens([asked])
        room = None if generator.context is None else generator.context - SETTINGS.max_tokens
        if counted is None or room is None or counted[0] <= room or not (reviews or features):
            return asked
        if reviews:
            reviews = reviews[: len(reviews) // 2]
        else:
            features = features[: len(features) // 2]


def prompt(question: Question, features: Sequence[str], reviews: Sequence[Review]) -> str:
    """What the judge reads of one product."""
    product = question.product
    view = {
        "product_id": product.id,
        "title": product.title,
        "store": product.store,
        "average_rating": product.average_rating,
        "rating_number": product.rating_number,
        "price": product.price,
        "details": product.details,
        "features": list(features),
    }
    sections: list[tuple[str, Any]] = [("Product", view)]
    if reviews:
        cut = [
            {"rating": review.rating, "title": review.title, "text": review.text[:REVIEW_CHARACTERS]}
            for review in reviews
        ]
        sections.append(("Reviews of the product", cut))
    if question.voucher is not None:
        sections.append(("Voucher", question.voucher.model_dump(exclude_none=True)))
    sections.append(("Requirements", [_asked(item) for item in question.items]))
    return "\n\n".join(f"{name}:\n{json.dumps(value, ensure_ascii=False, indent=1)}" for name, value in sections)


def _asked(item: RubricItem) -> dict[str, Any]:
    """A requirement with the field it looks at: a query item's description is a clue that need not name it."""
    return {
        "rubric_id": item.id,
        "type": item.type,
        "field": item.field,
        "description": item.description,
        "expected_value": item.expected_value,
    }


def verdicts_in(reply: Any, items: Sequence[RubricItem]) -> dict[str, Verdict]:
    """The verdicts of a reply's JSON by item id. Raises ValueError that tells the judge what is wrong with it."""
    results = reply.get("results") if isinstance(reply, Mapping) else reply
    if not isinstance(results, list):
        raise ValueError('it has no list "results"')
    asked = {item.id for item in items}
    verdicts: dict[str, Verdict] = {}
    problems: list[str] = []
    for entry in _flat(results):
        name = entry.get("rubric_id") if isinstance(entry, Mapping) else None
        satisfied = _truth(entry.get("satisfied")) if isinstance(entry, Mapping) else None
        if name not in asked or name in verdicts:
            problems.append(f"{name} is answered twice" if name in verdicts else f"{name!r} was not asked")
        elif satisfied is None:
            problems.append(f"{name} is neither true nor false")
        else:
            verdicts[name] = Verdict(satisfied, str(entry.get("reasoning") or ""), None, "judge")
    if missing := [item.id for item in items if item.id not in verdicts]:
        problems.append(f"no answer for {', '.join(missing)}")
    if problems:
        raise ValueError("; ".join(problems))
    return verdicts


def _truth(value: object) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _flat(results: list[Any]) -> Iterator[Any]:
    """Results, with lists inside the list (which some models write) opened one level."""
    for entry in results:
        yield from entry if isinstance(entry, list) else [entry]


def facts(judge: Generator | Found) -> dict[str, Any]:
    """What fixes this judge's answers, for results: the model, the prompt's version, the settings."""
    return {"name": judge.name, **judge.facts, "prompt": PROMPT_VERSION, "settings": asdict(SETTINGS)}
