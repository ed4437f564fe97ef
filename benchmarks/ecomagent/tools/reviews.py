"""Reading what buyers wrote about one product."""

from __future__ import annotations

import sqlite3
from typing import Any

from pydantic import Field

from benchmarks.ecomagent.catalogue import Review
from benchmarks.ecomagent.tools.base import Arguments, BadCall, Tool, Visit
from benchmarks.ecomagent.tools.matching import compat_expression, words_of
from benchmarks.ecomagent.wording import find
from recipes.base import short_repr

SHOWN = 5


class ReviewArguments(Arguments):
    query: str = Field(description="words that the review should have")
    product_id: str = Field(description="a product id")


def get_review_content(visit: Visit, given: ReviewArguments) -> dict[str, Any]:
    """Compat: the five best (bm25) of the reviews that have every word. Strict: the five that have the most of the
    words, in either number, in the order of the catalogue where equal; a message where none has all."""
    if not visit.strict:
        found = _compat_reviews(visit, given)
        return _shown(found) if found else {"reviews": [], "message": "No review of this product has all these words."}
    asked = words_of(given.query)
    if not asked:
        raise BadCall("query: holds no word; give words that the review should have")
    if visit.catalogue.product(given.product_id) is None:
        message = f"No product has the id {short_repr(given.product_id)}; ids come from search_products."
        return {"reviews": [], "message": message}
    return _strict_reviews(visit.catalogue.reviews(given.product_id), asked)


def _strict_reviews(reviews: list[Review], asked: list[str]) -> dict[str, Any]:
    scores = [sum(any(find(f"{one.title}\n{one.text}", word)) for word in asked) for one in reviews]
    best = max(scores, default=0)
    if not best:
        none = f"None of the {len(reviews)} reviews has any of these words." if reviews else "There are no reviews."
        return {"reviews": [], "message": none}
    order = sorted((place for place, score in enumerate(scores) if score), key=lambda place: -scores[place])
    shown = _shown([reviews[place] for place in order[:SHOWN]])
    if best < len(asked):
        shown["message"] = f"No review has all of these words; the first shown has {best} of {len(asked)}."
    return shown


def _compat_reviews(visit: Visit, given: ReviewArguments) -> list[Review]:
    wanted = compat_expression(given.query)
    try:
        return visit.catalogue.search_reviews(given.product_id, wanted, SHOWN) if wanted else []
    except sqlite3.OperationalError:
        return []


def _shown(reviews: list[Review]) -> dict[str, Any]:
    return {
        "reviews": [
            {"product_id": one.product_id, "rating": one.rating, "title": one.title, "text": one.text}
            for one in reviews
        ]
    }


GET_REVIEW_CONTENT = Tool(
    "get_review_content",
    f"Search the reviews of one product by their words; the {SHOWN} best are shown. A review should have every word.",
    ReviewArguments,
    get_review_content,
    "Where none does, those with the most of the words are shown, and a message says so.",
)
