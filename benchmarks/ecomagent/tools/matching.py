"""From what a model typed to FTS5 expressions, and which words of it the catalogue has together."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

SPECIAL = str.maketrans(dict.fromkeys('"*()-+^~:', " "))
MOST_WORDS = 8
"""How many words the search for words that go together considers: the rarest, as its cost grows with their square."""


def compat_expression(query: str) -> str:
    """The published benchmark's expression: each word a phrase, special characters blank, all required.

    "usb-c" becomes the phrase "usb c". Empty where nothing is left.
    """
    tokens = (token.translate(SPECIAL).strip() for token in query.split())
    return " ".join(f'"{token}"' for token in tokens if token)


def words_of(query: str) -> list[str]:
    """The distinct words of a query, in their order; "USB-C" is one, as it stands for the phrase "usb c".

    What holds neither a letter nor a digit is no word.
    """
    marked = (re.sub(r"[^\w.,'’&/-]|_", " ", word).strip(" .,'’&/-") for word in query.lower().split())
    split = (word for text in marked for word in text.split())
    return list(dict.fromkeys(word for word in split if any(character.isalnum() for character in word)))


def expression(words: Sequence[str]) -> str:
    """All of these words (the full-text index takes "usb-c" for a phrase)."""
    return " ".join(f'"{word}"' for word in words)


def together(words: Sequence[str], count: Callable[[str], int], occurs: Callable[[str], bool]) -> list[str]:
    """As many of the words as were found together, in their order; empty where no text has any of them.

    From each word in turn, the rarest first, the others are added, rarest first, as long as some text has them all;
    the largest set wins, the first of equals. None of the words left out could be added to it. ``count`` says how many
    texts match an expression, ``occurs`` whether any does.
    """
    frequency = {word: count(expression([word])) for word in words}
    ranked = sorted((word for word in words if frequency[word]), key=lambda word: frequency[word])[:MOST_WORDS]
    best: list[str] = []
    for first in ranked:
        kept = [first]
        for word in ranked:
            if word != first and occurs(expression([*kept, word])):
                kept.append(word)
        best = max(best, kept, key=len)
        if len(best) >= len(ranked) - 1:
            break
    return [word for word in words if word in best]
