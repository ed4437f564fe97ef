"""The eight intents: which products they take, how much they hide, and which source may tell what.

Numbers and lists are those of the published construction, section by section; where ours differs, a comment says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.ecomagent.fields import CLARIFICATION, NUMERIC, PERSONA

# In the intents that do not describe, form and scent are asked for rather than kept in a profile.
_MOVED = ("Item Form", "Scent")


@dataclass(frozen=True)
class Intent:
    """A kind of shopping request.

    Attributes:
        details: detail fields that a product must have.
        implicit: requirements that the query must hide behind a clue.
        persona, clarification: fields that a profile, or an answer, may tell. What is in neither is told by the query.
        rated: only products with at least 4 stars and 20 ratings.
        told: only products with features or a description.
        priced: only products with a price.
        reviews: stored reviews that a product must have.
        share: candidates are collected for so many times the tasks that are wanted.
    """

    name: str
    details: int
    implicit: int
    persona: tuple[str, ...]
    clarification: tuple[str, ...]
    rated: bool = False
    told: bool = False
    priced: bool = False
    reviews: int = 0
    share: float = 1.0


def _without(fields: tuple[str, ...], *gone: str) -> tuple[str, ...]:
    return tuple(field for field in fields if field not in gone)


_DESCRIBED = (*CLARIFICATION, *NUMERIC)
_PLAIN_PERSONA = _without(PERSONA, *_MOVED)
_PLAIN_CLARIFICATION = (*CLARIFICATION, *_MOVED)
_NARROW_PERSONA = _without(_PLAIN_PERSONA, "Compatible Phone Models")
_NARROW_CLARIFICATION = _without(_PLAIN_CLARIFICATION, "Hardware Platform")

INTENTS: dict[str, Intent] = {
    intent.name: intent
    for intent in (
        Intent("product_search", details=8, implicit=2, persona=PERSONA, clarification=_DESCRIBED),
        Intent("knowledge_reasoning", details=8, implicit=3, told=True, persona=PERSONA, clarification=_DESCRIBED),
        Intent(
            "rating_quality",
            details=8,
            implicit=2,
            rated=True,
            persona=_PLAIN_PERSONA,
            clarification=(*_PLAIN_CLARIFICATION, "price"),
        ),
        Intent("feature_combination", details=9, implicit=3, persona=PERSONA, clarification=_DESCRIBED),
        Intent(
            "negative_constraint",
            details=8,
            implicit=2,
            persona=_without(_NARROW_PERSONA, "Hard Drive", "Memory Storage Capacity"),
            clarification=(*_NARROW_CLARIFICATION, *NUMERIC),
        ),
        Intent(
            "use_case_scenario",
            details=8,
            implicit=3,
            told=True,
            persona=PERSONA,
            # What it is for is the scenario, and so the query's to tell.
            clarification=_without(_DESCRIBED, "Recommended Uses For Product"),
        ),
        Intent(
            "coupon_budget",
            details=8,
            implicit=2,
            priced=True,
            persona=_NARROW_PERSONA,
            clarification=_NARROW_CLARIFICATION,
        ),
        Intent(
            "review_driven",
            details=8,
            implicit=2,
            reviews=10,
            share=1.3,
            persona=_NARROW_PERSONA,
            clarification=(*_NARROW_CLARIFICATION, *NUMERIC),
        ),
    )
}
