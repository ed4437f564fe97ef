"""Reading yes or no out of a written answer; what cannot be read stays unread, and is never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.traces import part

# Not where the question is echoed ("Yes or No").
_ALONE = r"(?!\s*(?:/|or\b|and\b)\s*(?:yes|no)\b)"
_STATED = re.compile(rf"\b(?:answer|verdict)\b(?:\s+is\b)?[\W_]*(yes|no)\b{_ALONE}", re.IGNORECASE)
_BARE = re.compile(r"[\W_]*(yes|no)[\W_]*", re.IGNORECASE)
# "No, ..." says no, where "No step is missing" says nothing yet.
_BEGINS = re.compile(rf"[\W_]*(yes|no)\b{_ALONE}[*_\"')\]]*(?:[.,;:!\n–—-]|$)", re.IGNORECASE)


def read_answer(text: str) -> int | None:
    """1 for yes, 0 for no, None for what says neither or both.

    In this order: the last "Answer: yes" or "no" (the answer that a longer text comes to); a last line that says only
    that; a beginning that does, with a stop behind it. Reasoning between think tags is no answer.
    """
    said = part(text).answer.strip()
    if stated := _STATED.findall(said):
        return _label(stated[-1])
    last = said.rsplit("\n", 1)[-1]
    if found := _BARE.fullmatch(last) or _BEGINS.match(said):
        return _label(found[1])
    return None


def vote(answers: Sequence[int | None]) -> int | None:
    """What more of the answers that could be read say; None for a tie, or where none could be read."""
    yes, no = answers.count(1), answers.count(0)
    return None if yes == no else int(yes > no)


def _label(word: str) -> int:
    return int(word.lower() == "yes")
