"""Learning from the shopper: the profile, and questions that a script answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from benchmarks.ecomagent.tools.base import Arguments, BadCall, Slot, Tool, Visit
from benchmarks.ecomagent.wording import find, words

LONGEST_QUESTION = 100
SHORTEST_WORD = 3
UNSURE = "I am not sure what to say to that. Could you ask about one thing, such as a feature or the price?"
NO_MORE = "I have answered enough questions. Please go by what I told you."
TOO_LONG = f"That is a lot at once. Please ask in at most {LONGEST_QUESTION} characters."


class NoArguments(Arguments):
    pass


class AskArguments(Arguments):
    question: str = Field(
        description=f"a question about one thing, of at most {LONGEST_QUESTION} characters",
        json_schema_extra={"maxLength": LONGEST_QUESTION},
    )


def get_user_profile(visit: Visit, given: NoArguments) -> dict[str, Any]:
    visit.profile_count += 1
    persona = visit.task.user_persona
    return {"profile": persona} if persona else {"profile": {}, "message": "This shopper has no profile."}


def ask_user(visit: Visit, given: AskArguments) -> dict[str, Any]:
    """The script's answer. In both modes a question tells one thing, and what was told by then is never told by chance.

    Strict refuses a question that is too long without spending a turn; compat spends it.
    """
    script, question = visit.task.clarification_script, given.question
    if visit.strict and len(question) > LONGEST_QUESTION:
        raise BadCall(f"question: {len(question)} characters; give at most {LONGEST_QUESTION}")
    visit.ask_count += 1
    left = script.max_clarification_turns - visit.ask_count
    if left < 0:
        return {"user_response": NO_MORE, "turns_remaining": 0}
    if len(question) > LONGEST_QUESTION:
        return {"user_response": TOO_LONG, "turns_remaining": left}
    slots = script.clarification_slots
    slot = (
        strict_slot(slots, question, visit.revealed) if visit.strict else compat_slot(slots, question, visit.revealed)
    )
    if slot is None:
        return {"user_response": script.default_response or UNSURE, "turns_remaining": left}
    if slot.slot_id not in visit.revealed:
        visit.revealed.append(slot.slot_id)
    return {"user_response": slot.user_response, "turns_remaining": left}


def compat_slot(slots: Sequence[Slot], question: str, revealed: Sequence[str]) -> Slot | None:
    """The slot that the published benchmark picks: 2 for each keyword inside the question, else 1 where a word of the
    question contains it or is contained in it ("the" in "weatherproof"). The best wins, the earlier of equals; a slot
    that was revealed is out."""
    asked = question.lower()
    asked_words = [word for word in asked.split() if len(word) >= SHORTEST_WORD]
    best, best_score = None, 0
    for slot in slots:
        if slot.slot_id in revealed:
            continue
        score = 0
        for keyword in (keyword.lower() for keyword in slot.trigger_keywords):
            if keyword in asked:
                score += 2
            elif any(keyword in word or word in keyword for word in asked_words):
                score += 1
        if score > best_score:
            best, best_score = slot, score
    return best


def strict_slot(slots: Sequence[Slot], question: str, revealed: Sequence[str]) -> Slot | None:
    """The slot with the most words of keywords that stand in the question as whole words; of equals one that was not
    told, then the earlier.

    A keyword of several words must stand there whole, and counts as many; plural and spelling variants are one word. A
    slot that was told is told again: a shopper asked twice answers twice.
    """
    best, best_score = None, (0, False)
    for slot in slots:
        keywords = {tuple(words(keyword)): keyword for keyword in slot.trigger_keywords}
        found = [form for form, keyword in keywords.items() if form and any(True for _ in find(question, keyword))]
        score = (sum(map(len, found)), slot.slot_id not in revealed)
        if found and score > best_score:
            best, best_score = slot, score
    return best


GET_USER_PROFILE = Tool(
    "get_user_profile",
    "The shopper's profile: who they are, how they shop, and what they need of a product.",
    NoArguments,
    get_user_profile,
)
ASK_USER = Tool(
    "ask_user",
    f"Ask the shopper about one thing, in at most {LONGEST_QUESTION} characters. The number of questions is limited; "
    "turns_remaining tells how many are left.",
    AskArguments,
    ask_user,
)
