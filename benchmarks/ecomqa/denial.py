"""Whether a text turns down what it names ("not A", "A is wrong", "anything but A", "is it A?"), or names another
letter in the same breath ("A or B").
"""

from __future__ import annotations

import re

_NOT = (
    r"不|没有?|未必?|并非|而非|绝非|非|无|弱|低|难以?|[谈称算]不上|除(?:了|去|开)?|排除|部分|"
    r"\b(?:not|isn't|never|except|neither|nor|than)\b"
)
# What may stand between a "not" and what it turns down, within one clause.
_BETWEEN = (
    r"是|太|能|可以?|算|怎么|那么|这么|完全|全|很|大|够|一定|应该?|属于|会|要|认为|觉得|该|宜|存在|见得|都|尽|说|为|再|"
    r"十分|非常|特别|选项?|选择|择|答案|包括|包含|含|有|称|视|归|于|它|其|这|推荐|建议|考虑|作|的|option|\s|[\"“”'‘’「『(\[【《<]"
)
_BEFORE = re.compile(rf"(?:{_NOT})(?:{_BETWEEN}){{0,6}}$")
_AFTER = re.compile(
    r"[\"”'’」』)\]】》>]*\s*(?:选项|项|这个|这一)?(?:的?(?:说法|判断|结论|观点|答案|选择))?\s*:?\s*"
    r"(?:[是都均也并就则这为被]|明显|显然|肯定|可能)*\s*"
    r"(?:不(?:对|是|正确|合适|合理|适合|适用|符合|选|行|可|能|应|太|会|建议|推荐|成立|准确|够|妥|属于)|错|假|有误|有问题|除外|"
    r"[以之]外|外(?:都|均|的|其|,|$)|排除|并非|非也|吗|与否|(?:is |are )?(?:wrong|incorrect|false|not\b)|isn't|aren't)"
)


def turned_down(plain: str, start: int, end: int) -> bool:
    """Whether what stands at ``start`` to ``end`` of a text (as normal makes it) is denied or asked about there."""
    return denied_before(plain, start) or _AFTER.match(plain, end) is not None


def denied_before(plain: str, start: int) -> bool:
    """Whether the words before ``start`` deny what begins there."""
    return _BEFORE.search(plain[max(0, start - 20) : start]) is not None


_OPEN, _SHUT = r"\s*[*(\[【\"“]*", r"[)\]】\"”*]*\s*"
_ANOTHER = (
    rf"{_SHUT}(?:(?:[、/|+&~-]|或者?|还是|到|至|和|与|及|以及|\bor\b|\band\b){_OPEN}[@](?![A-Za-z0-9])|"
    rf"[,;]{_OPEN}[@](?={_SHUT}(?:[\n,;。.]|$)))"
)


def another_follows(plain: str, end: int, letters: str) -> bool:
    """Whether another of the letters is listed right behind what ends at ``end`` of a text in NFKC."""
    return re.compile(_ANOTHER.replace("@", letters)).match(plain, end) is not None
