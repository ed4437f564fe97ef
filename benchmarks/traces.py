"""A reasoning model's trace, parted from its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)


@dataclass(frozen=True)
class Parted:
    """``trace`` is None for a text without reasoning; ``unfinished`` where the reasoning never ended."""

    answer: str
    trace: str | None
    unfinished: bool = False


def part(text: str) -> Parted:
    """The trace and the answer of a text.

    Several blocks make one trace, and a block within a block belongs to it. A block whose beginning is missing (the
    template wrote it) reaches from the text's beginning to the closing tag. What follows an opening tag that is never
    closed is trace, and not an answer.
    """
    outside: list[str] = []
    inside: list[str] = []
    depth = place = 0
    tagged = False
    for tag in TAG.finditer(text):
        (inside if depth else outside).append(text[place : tag.start()])
        place, tagged = tag.end(), True
        if not tag[1]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            inside, outside = inside + outside, []
    (inside if depth else outside).append(text[place:])
    trace = "\n\n".join(filter(None, map(str.strip, inside))) if tagged else None
    return Parted("".join(outside).strip(), trace, depth > 0)
