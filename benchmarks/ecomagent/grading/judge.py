"""A language model as the judge of what only meaning decides: asked at temperature 0, held to the ids it was given.

A reply that is no JSON, lacks an item, has one twice or one that was not asked, or says neither true nor false is put
back to the judge with what is wrong, up to ``ATTEMPTS`` times. What then has no answer stays without one: it is never
taken for "no".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.ecomagent.catalogue import Product, Review
from benchmarks.ecomagent.grading.lexical import REVIEW_CHARACTERS
from benchmarks.ecomagent.grading.verdict import Verdict
from benchmarks.ecomagent.tasks import RubricItem, Voucher
from models.generation import Chat, Completion, Generator, Message, SamplingSettings

ATTEMPTS = 3
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
    """The judge's verdicts by item id (an item without one is absent) and how often it had to be asked."""

    verdicts: Mapping[str, Verdict]
    attempts: int
    problem: str = ""


def ask(generator: Generator, questions: Sequence[Question]) -> list[Answer]:
    """The judge's answers, one a question, in order. Questions without items are answered without asking."""
    chats = {row: _fitting(generator, question) for row, question in enumerate(questions) if question.items}
    answers = [Answer({}, 0)] * len(questions)
    for attempt in range(1, ATTEMPTS + 1):
        rows = list(chats)
        for place, completion in generator.generate([chats[row] for row in rows], SETTINGS):
            row = rows[place]
            verdicts, problem = read_reply(completion, questions[row].items)
            answers[row] = Answer({**answers[row].verdicts, **verdicts}, attempt, problem)
            if problem:
                chats[row] = _again(chats[row], completion, problem)
            else:
                del chats[row]
        if not chats:
            break
    return answers


def _again(chat: Chat, completion: Completion, problem: str) -> Chat:
    retry = f"That reply cannot be used: {problem}. Answer once more, with the JSON alone."
    turns = (Message("assistant", completion.text), Message("user", retry))
    return Chat((*chat.messages[:2], *turns), chat.sample)


def _fitting(generator: Generator, question: Question) -> Chat:
    """The question as a chat that leaves room for the reply: reviews and features are halved until it does."""
    reviews, features = list(question.reviews), list(question.product.features)
    while True:
        chat = Chat((Message("system", SYSTEM), Message("user", prompt(question, features, reviews))))
        counted = generator.prompt_tokens([chat])
        room = None if generator.context is None else generator.context - SETTINGS.max_tokens
        if counted is None or room is None or counted[0] <= room or not (reviews or features):
            return chat
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


def read_reply(completion: Completion, items: Sequence[RubricItem]) -> tuple[dict[str, Verdict], str]:
    """(usable verdicts by item id, what is wrong with the reply or "")."""
    if completion.finish == "length":
        return {}, f"it is longer than {SETTINGS.max_tokens} tokens"
    reply = _json_in(completion.text)
    results = reply.get("results") if isinstance(reply, Mapping) else reply
    if not isinstance(results, list):
        return {}, 'it has no JSON object with a list "results"'
    asked = {item.id for item in items}
    verdicts: dict[str, Verdict] = {}
    problems: list[str] = []
    mixed_up = False
    for entry in _flat(results):
        name = entry.get("rubric_id") if isinstance(entry, Mapping) else None
        satisfied = _truth(entry.get("satisfied")) if isinstance(entry, Mapping) else None
        if name not in asked or name in verdicts:
            mixed_up = True
            problems.append(f"{name} is answered twice" if name in verdicts else f"{name!r} was not asked")
        elif satisfied is None:
            problems.append(f"{name} is neither true nor false")
        else:
            verdicts[name] = Verdict(satisfied, str(entry.get("reasoning") or ""), None, "judge")
    if missing := [item.id for item in items if item.id not in verdicts]:
        problems.append(f"no answer for {', '.join(missing)}")
    # Where an id was mixed up, no verdict is certain to be about the item that it names.
    return ({} if mixed_up else verdicts), "; ".join(problems)


def _truth(value: object) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _flat(results: list[Any]) -> Iterator[Any]:
    """Results, with lists inside the list (which some models write) opened one level."""
    for entry in results:
        yield from entry if isinstance(entry, list) else [entry]


def _json_in(text: str) -> Any:
    """The JSON in a reply: all of it, a fenced block, or from the first brace to the last; None where there is none."""
    fenced = re.findall(r"```(?:json)?\s*(.*?)```", text, re.DOTALL)
    braces = text[text.find("{") : text.rfind("}") + 1]
    for candidate in (text, *fenced, braces):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    return None


def facts(generator: Generator) -> dict[str, Any]:
    """What fixes this judge's answers, for results: the model, the prompt's version, the settings."""
    return {"name": generator.name, **generator.facts, "prompt": PROMPT_VERSION, "settings": asdict(SETTINGS)}
