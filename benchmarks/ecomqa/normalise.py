"""Texts made comparable: differences of writing that are none of meaning are taken away."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

# Before an answer: the cue of the question (in bold or not), or words that announce it.
CUE = re.compile(
    r"^\s*(?:(?:\*{1,3}\s*)?(?:最终|正确|我的)?(?:答案|回答|选项)\s*(?:\*{1,3}\s*)?"
    r"(?:[:：]+\s*(?:应[为是])?|(?:应[为是]|[是为])\s*[:：]*)\s*\*{0,3}|answer\s*[:：])\s*",
    re.I,
)
EDGES = " \t\n\r\"'“”‘’「」『』《》〈〉`*_#。．.,，;；:：!！?？、…~-"
SEPARATORS = re.compile(r"\s*[,，;；、\n]\s*")
_CJK = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f"
_BESIDE_CJK = re.compile(rf"(?<=[{_CJK}])\s+|\s+(?=[{_CJK}])")
_BRACKETS = {"(": ")", "[": "]", "【": "】", "<": ">"}


@cache
def _to_simplified() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")


def normal(text: str, simplify: bool = True) -> str:
    """A text without differences of width, case, white space beside Chinese, emphasis and punctuation at its ends
    (a text of nothing else keeps it).

    Args:
        simplify: traditional characters become simplified ones; not where just that is asked (SC).
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    if simplify:
        text = _to_simplified().convert(text)
    whole = " ".join(text.replace("*", "").split())
    text = _BESIDE_CJK.sub("", whole).strip(EDGES)
    while len(text) > 1 and _BRACKETS.get(text[0]) == text[-1] and text.count(text[0]) == 1:
        text = text[1:-1].strip(EDGES)
    return text or whole


def same(a: str, b: str, simplify: bool = True) -> bool:
    """Whether two texts are the same but for their writing, white space anywhere included."""
    return bare(a, simplify) == bare(b, simplify)


def bare(text: str, simplify: bool = True) -> str:
    """A text's normal form without any white space: the same for all that `same` holds equal."""
    return normal(text, simplify).replace(" ", "")


def contains(text: str, part: str, simplify: bool = True) -> bool:
    """Whether ``part`` stands in ``text``, but for writing; Latin words and numbers only whole (5 is not in 2015)."""
    sought = bare(part, simplify)
    if not sought:
        return False
    loose = " ?".join(map(re.escape, sought))
    before = "(?<![a-z0-9])" if re.match("[a-z0-9]", sought) else ""
    after = "(?![a-z0-9])" if re.search("[a-z0-9]$", sought) else ""
    return re.search(before + loose + after, normal(text, simplify)) is not None


def mentioned(text: str, names: tuple[str, ...]) -> list[str]:
    """The names that stand in a text, each once, in order. Of two that overlap the longer counts (不相关, not 相关)."""
    return list(dict.fromkeys(name for name, _, _ in places(normal(text), names)))


def places(plain: str, names: tuple[str, ...]) -> list[tuple[str, int, int]]:
    """(name, start, end) of each place of a normal text where a name stands; of two that overlap the longer counts."""
    known = {normal(name): name for name in sorted(names, key=len)}
    forms = sorted(filter(None, known), key=len, reverse=True)
    if not forms:
        return []
    pattern = re.compile("|".join(_whole(form) for form in forms))
    return [(known[found[0]], found.start(), found.end()) for found in pattern.finditer(plain)]


def _whole(form: str) -> str:
    before = "(?<![a-z0-9])" if re.match("[a-z0-9]", form) else ""
    after = "(?![a-z0-9])" if re.search("[a-z0-9]$", form) else ""
    return f"{before}{re.escape(form)}{after}"


def without_cue(answer: str) -> str:
    """An answer without the cue that a model may repeat before it."""
    return CUE.sub("", answer, count=1).strip()
