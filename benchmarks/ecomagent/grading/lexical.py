"""The judge-free reading of what only meaning decides: is the product of that kind, does a review say so?

Both compare words. They are estimates, which a judge may correct; `benchmarks.ecomagent.grading.agreement` says how
often it does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.ecomagent.catalogue import Product, Review
from benchmarks.ecomagent.grading.verdict import Verdict
from benchmarks.ecomagent.wording import FREE, NEGATORS, Word, find, forms, words

# What follows one of these in a title is what the product goes with, not what it is: "sleeve for a laptop".
_COMPLEMENTS = frozenset(forms("for with without compatible fits replacement by in from including"))
# A kind followed by one of these is another kind: a "phone case" is no phone.
_OTHER_KINDS = frozenset(
    forms(
        "accessory adapter bag basket battery bracket box cable cap case charger cleaner clip cover cushion dock drawer"
        " filter frame grip handle holder hook insert kit lid liner mat mount organizer pad part pouch protector rack"
        " refill ring screen shelf skin sleeve stand station sticker strap tray wrap"
    )
)
_FARTHEST = 2  # words that may stand between those of a kind: "desk [clip] lamp"
_SHARE = 0.75  # of a claim's telling words that one sentence must have
_FILLERS = frozenset(
    forms(
        "a an and are as at be been but by do does did for from had has have i in is it its just me my of on or our so"
        " that the their them they this to up very was we were will with you your really quite also there"
    )
)
_SENTENCE = re.compile(r"[.!?\n;]+|\bbut\b", re.IGNORECASE)
REVIEW_CHARACTERS = 500  # of each review that grading reads, as in the published benchmark


def entity_match(product: Product, kinds: Sequence[str]) -> Verdict:
    """Whether the title names the product as one of ``kinds`` (the same kind in different words).

    The words of the kind must stand in the part of the title that says what the product is: not behind "for" or
    "with", and not before a word that makes it an accessory.
    """
    for kind in kinds:
        if any(_is_head(words(product.title), start, end) for start, end in find(product.title, kind)):
            return Verdict(True, f"the title names a {kind}", "title", "lexical")
    for kind in kinds:
        if _in_order(words(product.title), forms(kind)):
            return Verdict(True, f"the title has the words of {kind!r} near each other", "title", "lexical")
    return Verdict(False, f"the title does not name the product as {' or '.join(map(repr, kinds))}", "title", "lexical")


def _is_head(title: Sequence[Word], start: int, end: int) -> bool:
    part = title[start].part
    before = [word.form for word in title[:start] if word.part == part]
    if any(word in _COMPLEMENTS for word in before):
        return False
    after = title[end].form if end < len(title) and title[end].part == part else ""
    return after not in _OTHER_KINDS


def _in_order(title: Sequence[Word], kind: Sequence[str]) -> bool:
    """Whether the words of a kind stand in the title in their order, few words apart, as what the product is."""
    for start, first in enumerate(title):
        at, place = start, 0
        if not kind or first.form != kind[0]:
            continue
        for number, word in enumerate(title[start:], start):
            if number - at > _FARTHEST + 1 or word.part != first.part:
                break
            if word.form == kind[place]:
                at, place = number, place + 1
            elif word.form in _COMPLEMENTS:
                break
            if place == len(kind):
                return _is_head(title, start, at + 1)
    return False


def review_opinion(reviews: Sequence[Review], claim: str) -> Verdict:
    """Whether one sentence of a review has most telling words of the claim, and denies as much as the claim does."""
    wanted = [form for form in forms(claim) if form not in _FILLERS and form not in NEGATORS]
    if not reviews:
        return Verdict(False, "the product has no reviews", None, "lexical")
    for number, review in enumerate(reviews, 1):
        for sentence in _SENTENCE.split(f"{review.title}. {review.text[:REVIEW_CHARACTERS]}"):
            said = forms(sentence)
            share = sum(form in said for form in wanted) / max(len(wanted), 1)
            if wanted and share >= _SHARE and _denies(said) == _denies(forms(claim)):
                return Verdict(True, f"a review says {' '.join(sentence.split())!r}", f"reviews[{number}]", "lexical")
    return Verdict(False, f"none of {len(reviews)} reviews says {claim!r} in such words", None, "lexical")


def _denies(said: Sequence[str]) -> bool:
    return any(word in NEGATORS or word == FREE for word in said)
