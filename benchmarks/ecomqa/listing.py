"""The entries of a list that an answer gives: on one line, or one a line, with or without bullets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.ecomqa.normalise import SEPARATORS, bare
from benchmarks.ecomqa.readings import lines_of

_BULLET = re.compile(
    r"\s*(?:[-–—•·▪◦+]\s*|\*\s+)?\*{0,2}\s*"
    r"(?:(?:\d{1,2}|[一二三四五六七八九十]{1,2})\s*(?:[.．](?!\d)|[、)）])|[(（](?:\d{1,2}|[一二三四五六七八九十]{1,2})[)）]|[①-⑳])\s*"
    r"|\s*(?:[-–—•·▪◦+]\s*|\*\s+)"
)
_PROSE = re.compile(r"[。！？!?：:]|^\W*(?:理由|原因|解释|解析|分析|说明|因为|由于|以上|综上|注|希望)")
_COLON = re.compile(r"[：:]")


def listed(answer: str, names: Sequence[str]) -> list[str]:
    """The entries that an answer lists, in order; empty where none of them is one of the names.

    A list is the first line with all that follow in its manner: with bullets, or without bullets and no prose (no
    sentence, nothing longer than the longest name unless it holds a name as an entry). A line that announces it
    ("the categories are:") is passed over. Entries that are none of the names count, so that guesses cost.
    """
    known = {bare(name) for name in names}
    longest = max(map(len, known), default=0)
    lines = lines_of(answer)
    if len(lines) > 1 and _COLON.search(lines[0].rstrip("* ")[-1:]):
        lines = lines[1:]
    found: list[str] = []
    bulleted = bool(lines) and _BULLET.match(lines[0]) is not None
    for row, line in enumerate(lines):
        bullet = _BULLET.match(line)
        if bulleted != (bullet is not None):
            break
        entries = _entries((line[bullet.end() :] if bullet else line).replace("*", ""), known)
        names_one = any(bare(entry) in known for entry in entries)
        if row and not bulleted and not names_one and (_PROSE.search(line) or len(bare(line)) > longest):
            break
        found += entries
    return found if any(bare(entry) in known for entry in found) else []


def _entries(line: str, known: set[str]) -> list[str]:
    """The entries of a line; before or behind a colon where just that side has entries that are known."""
    entries = [entry for entry in SEPARATORS.split(line) if bare(entry)]
    head, *tail = _COLON.split(line, maxsplit=1)
    if tail and bare(head) in known:
        return [head]
    behind = [entry for entry in SEPARATORS.split("".join(tail)) if bare(entry)]
    return behind if any(bare(entry) in known for entry in behind) else entries
