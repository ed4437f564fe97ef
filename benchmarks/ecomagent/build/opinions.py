"""Opinions for review-driven tasks: short statements that buyers made, word for word, so that grading finds them again.

Reviews of four stars and more are read, the longer ones with the most helpful votes first. Of their sentences, those
that tell of the purchase or qualify what came before are passed over, and what buyers of many products say comes last.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from benchmarks.ecomagent.build.features import Feature
from benchmarks.ecomagent.catalogue import Review
from benchmarks.ecomagent.grading.lexical import review_opinion
from benchmarks.ecomagent.wording import NEGATORS, forms

OPINIONS = 2  # of a task
POOL = 6  # reviews that they are drawn from
FEWEST_REVIEWS = 10
GOOD, LONG = 4.0, 30  # stars, characters
WORDS = range(3, 11)
_SENTENCE = re.compile(r"[^.!?;\n]+")
# Sentences with these are about the order and the people around it, not about the product.
_STORY = frozenset(
    forms(
        """bought buy ordered order arrived delivery delivered shipped shipping package packaging sale gift birthday
        holiday recommended review reviews seller service price cheap money sister brother mother father partner wife
        husband friend replaced years ago flat tried"""
    )
)
_TURN = re.compile(r"(?i)^(?:but|however|otherwise|although|though|except|only|still|also|and|so|on the)\b|:")

HowCommon = Callable[[str], int]
"""How many products have a review that says the very words."""


def opinions(reviews: Sequence[Review], how_common: HowCommon, rng: random.Random) -> list[Feature]:
    """Two opinions of different reviews; fewer where the reviews do not have them."""
    if len(reviews) < FEWEST_REVIEWS:
        return []
    good = [review for review in reviews if review.rating is not None and review.rating >= GOOD]
    telling = [review for review in good if len(review.text) >= LONG] or good
    pool = sorted(telling, key=lambda review: -review.helpful_vote)[:POOL]
    rng.shuffle(pool)
    found: dict[frozenset[str], str] = {}
    for review in pool:
        for claim in _claims(review, reviews, how_common, rng):
            content = frozenset(forms(claim))
            if not any(len(content & other) * 2 > len(content) for other in found):
                found[content] = claim
                break
        if len(found) == OPINIONS:
            break
    return [Feature("review", "review_opinion", claim, claim) for claim in found.values()]


def _claims(review: Review, reviews: Sequence[Review], how_common: HowCommon, rng: random.Random) -> list[str]:
    """Statements of a review about the product, as they stand: the rarest first, plain ones before denials."""
    sentences = [" ".join(sentence.split()).strip(" ,-\"'") for sentence in _SENTENCE.findall(review.text)]
    fit = [sentence for sentence in sentences if _is_claim(sentence) and review_opinion(reviews, sentence).satisfied]
    rng.shuffle(fit)
    return sorted(fit, key=lambda sentence: (how_common(sentence), any(word in NEGATORS for word in forms(sentence))))


def _is_claim(sentence: str) -> bool:
    words = forms(sentence)
    return len(sentence.split()) in WORDS and not _TURN.search(sentence) and not _STORY & set(words)
