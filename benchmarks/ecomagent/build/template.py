"""The language stage without a language model: queries and answers from templates, the same for the same seed.

A query names the kind of product, says its plain requirements, hints at the implicit ones with a clue that never holds
the value, and tells opinions and vouchers in sentences of their own.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.ecomagent.build import phrases
from benchmarks.ecomagent.build.plan import Faults, Plan, Words, Written
from benchmarks.ecomagent.tasks import Discount, RubricItem, Voucher

OPENINGS = {
    "product_search": ["I'm looking for {kind}.", "Can you help me find {kind}?", "I need {kind}.", "I'd like {kind}."],
    "knowledge_reasoning": [
        "I need {kind}, but I lack the words for what I have in mind.",
        "Help me find {kind}. I know what I mean, though not what it is called.",
        "I'm after {kind} and can only describe it.",
    ],
    "rating_quality": [
        "I'm looking for {kind} that other people have found good.",
        "I only buy what has proved itself, and now I need {kind}.",
        "I need {kind} with a good record.",
    ],
    "feature_combination": [
        "I'm looking for {kind} that has everything at once.",
        "I need {kind}, and all of this has to come together.",
        "I have a list of wishes for {kind}.",
    ],
    "negative_constraint": [
        "I'm looking for {kind}, and I know what I don't want.",
        "I need {kind}, with some things ruled out.",
        "Help me find {kind} and keep away from what I dislike.",
    ],
    "use_case_scenario": [
        "My old one has given up, so I need {kind}.",
        "I'm getting ready for something and need {kind} for it.",
        "Let me tell you what I want {kind} for.",
    ],
    "coupon_budget": [
        "I have a voucher to spend on {kind}.",
        "I'd like to buy {kind} with a voucher.",
        "I need {kind} and want to make use of a voucher.",
    ],
    "review_driven": [
        "I trust reviews more than adverts, and I need {kind}.",
        "I'm looking for {kind} that buyers praise.",
        "I read reviews first, and I'm after {kind}.",
    ],
}
FIRST = ["should", "has to", "needs to", "must"]
LATER = ["should also", "also has to", "also needs to", "must also"]
REPLIES = [
    "It should {wish}.",
    "I'd like it to {wish}, please.",
    "Oh, it has to {wish}.",
    "That matters to me: it should {wish}.",
    "Let me think. It needs to {wish}.",
]
DEFAULT_RESPONSE = "I have nothing in mind about that. Ask me about something else, one thing at a time."
A_SENTENCE = 2  # requirements said in one


@dataclass(frozen=True)
class Templates:
    """Words from templates, drawn anew until the gate lets them pass."""

    tries: int = 12

    def write(self, plan: Plan, rng: random.Random, faults: Faults) -> Written:
        """Words for a plan that the gate lets pass, or what it found wrong with the last try."""
        found: list[str] = []
        for refused in range(self.tries):
            words = words_of(plan, rng)
            if not (found := faults(words)):
                return Written(words, refused)
        return Written(None, self.tries, "; ".join(found))


def words_of(plan: Plan, rng: random.Random) -> Words:
    """One draw of words for a plan."""
    plural = phrases.is_plural(plan.kind.name)
    kind = plan.kind.name if plural else phrases.with_article(plan.kind.name)
    opening = rng.choice(OPENINGS[plan.intent.name]).format(kind=kind)
    surfaces = {item.id: plan.kind.name for item in plan.items if item.type == "entity_match"}
    wishes: list[str] = []
    for item in _told(plan, rng):
        wish, surface = _wish(item, item.id in plan.implicit, rng)
        wishes.append(wish)
        surfaces[item.id] = surface
    sentences = [opening, *_sentences(wishes, "The product" if plural else "It", rng)]
    opinions = [item for item in plan.items if item.type == "review_opinion"]
    if opinions:
        sentences.append(_opinions(opinions, rng))
        surfaces |= {item.id: item.expected_value for item in opinions}
    if plan.voucher is not None:
        sentence, surface = _voucher(plan.voucher)
        sentences.append(sentence)
        surfaces |= {item.id: surface for item in plan.items if item.type == "budget_match"}
    replies = {item.id: reply(item, rng) for item in plan.told_by("clarification")}
    return Words(" ".join(sentences), surfaces, replies)


def _told(plan: Plan, rng: random.Random) -> list[RubricItem]:
    """The requirements that are said as wishes, in an order by chance, exclusions last."""
    apart = ("entity_match", "review_opinion", "budget_match")
    told = [item for item in plan.told_by("query") if item.type not in apart]
    rng.shuffle(told)
    return sorted(told, key=lambda item: item.type == "negative_attribute")


def _wish(item: RubricItem, implicit: bool, rng: random.Random) -> tuple[str, str]:
    """(what completes "It should ...", the words of it that say the requirement)."""
    if implicit:
        clue = rng.choice(phrases.clues(phrases.name_of(item), item.expected_value))
        return clue, clue
    return phrases.said(item, rng)


def _sentences(wishes: Sequence[str], subject: str, rng: random.Random) -> list[str]:
    """Wishes by twos; one that holds a comma, and the exclusions, have a sentence of their own."""
    groups: list[list[str]] = []
    for wish in wishes:
        alone = "," in wish or wish.startswith("not ")
        last = groups[-1] if groups else []
        if last and not alone and len(last) < A_SENTENCE and not any("," in w or w.startswith("not ") for w in last):
            last.append(wish)
        else:
            groups.append([wish])
    later = rng.sample(LATER, len(LATER))
    sentences = []
    for number, group in enumerate(groups):
        modal = "must" if group[0].startswith("not ") else later[number % len(later)] if number else rng.choice(FIRST)
        sentences.append(f"{subject} {modal} {phrases.listed(group)}.")
    return sentences


def _opinions(items: Sequence[RubricItem], rng: random.Random) -> str:
    quoted = phrases.listed([f'"{item.expected_value}"' for item in items])
    frame = rng.choice(
        [
            "In the reviews I want to read things like {quoted}.",
            "Buyers should say {quoted}, or words to that effect.",
            "Its reviews should say {quoted}.",
        ]
    )
    return frame.format(quoted=quoted)


def _voucher(voucher: Voucher) -> tuple[str, str]:
    """(the sentences that tell the voucher and the budget, the words that say the budget)."""
    surface = f"pay at most ${voucher.budget:.2f}"
    if voucher.coupons:
        first, second = (_off(coupon) for coupon in voucher.coupons)
        order = f"{first} by the {voucher.coupons[0].voucher_type}, then {second} by the shop"
        told = f"I have two vouchers for orders of ${voucher.threshold:g} and more, used one after the other: {order}."
    elif voucher.tiers:
        tiers = " or ".join(f"{_off(tier)} from ${tier.threshold:g} on" for tier in voucher.tiers)
        told = f"My {voucher.voucher_type} voucher has two tiers: {tiers}."
    else:
        told = f"My {voucher.voucher_type} voucher takes {_off(voucher)} on orders of ${voucher.threshold:g} and more."
    return f"{told} With that I want to {surface}.", surface


def _off(discount: Discount) -> str:
    if discount.discount_type == "percentage":
        cap = f" (${discount.cap:.2f} at most)" if discount.cap is not None else ""
        return f"{round((discount.discount or 0) * 100)}% off{cap}"
    return f"${discount.face_value or 0:.2f} off"


def reply(item: RubricItem, rng: random.Random) -> str:
    """What the shopper answers when asked about a requirement; it always holds the value."""
    wish, _ = phrases.said(item, rng)
    return rng.choice(REPLIES).format(wish=wish)
