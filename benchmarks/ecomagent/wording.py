"""Words of product texts, so that "8GB" and "8 GB", "Wi-Fi" and "WiFi", "Tablets" and "tablet" are the same.

Grading compares values word by word, never letter by letter: "8 GB" is not found in "128 GB", nor "All" in "Wallet".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_EACH_ALONE = r"\u3040-\u30ff\u3400-\u9fff"  # kana and Han: scripts that put no space between words
_SEPARATORS = frozenset(",;/|•\n")
_TOKEN = re.compile(
    rf"\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?|[{_EACH_ALONE}]|[^\W\d_{_EACH_ALONE}]+|[{''.join(sorted(_SEPARATORS))}]"
)
_INCH_MARK = re.compile("(?<=\\d)\\s*(?:[\"”″]|'')")
_UNITS = {
    "inch": ("inches", "in"),
    "foot": ("feet", "ft"),
    "yard": ("yd", "yards"),
    "meter": ("m", "meters", "metre", "metres"),
    "cm": ("centimeter", "centimeters", "centimetre", "centimetres"),
    "mm": ("millimeter", "millimeters", "millimetre", "millimetres"),
    "ounce": ("oz", "ounces"),
    "pound": ("lb", "lbs", "pounds"),
    "g": ("gram", "grams"),
    "kg": ("kilogram", "kilograms"),
    "l": ("liter", "liters", "litre", "litres"),
    "ml": ("milliliter", "milliliters", "millilitre", "millilitres"),
    "gb": ("gigabyte", "gigabytes"),
    "mb": ("megabyte", "megabytes"),
    "tb": ("terabyte", "terabytes"),
    "watt": ("w", "watts"),
    "volt": ("v", "volts"),
    "hour": ("h", "hr", "hrs", "hours"),
    "piece": ("pc", "pcs", "pieces"),
    "count": ("ct",),
}
_UNIT_OF = {spelling: unit for unit, spellings in _UNITS.items() for spelling in (unit, *spellings)}
UNITS = frozenset(_UNITS)
_SPELLINGS = {
    "grey": "gray",
    "colour": "color",
    "aluminium": "aluminum",
    "fibre": "fiber",
    "jewellery": "jewelry",
    "mould": "mold",
    "centre": "center",
}
NEGATORS = frozenset({"no", "not", "non", "without", "never", "nor"})
FREE = "free"


class Word(NamedTuple):
    """A word in the form in which it is compared, and the number of the option or clause that it stands in."""

    form: str
    part: int


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[Word, ...]:
    """The words of a text: case, plural, spelling and units evened out, separators counted and left out."""
    plain = _INCH_MARK.sub(" inch ", text.casefold().replace("’", "'"))
    plain = re.sub(r"(?<=[^\W\d_])'(?=s\b)", "", plain).replace("n't", " not")
    found: list[Word] = []
    part = 0
    for token in _TOKEN.findall(plain):
        if token in _SEPARATORS:
            part += 1
            continue
        after_number = bool(found) and found[-1].form[0].isdigit()
        found.append(Word(_form(token, after_number), part))
    return tuple(found)


def _form(token: str, after_number: bool) -> str:
    if token[0].isdigit():
        number = token.replace(",", "")
        return number.rstrip("0").rstrip(".") if "." in number else number
    if after_number and token in _UNIT_OF:
        return _UNIT_OF[token]
    return stem(_SPELLINGS.get(token, token))


def stem(word: str) -> str:
    """A word without the ending of its plural; the same for both numbers, not always a word itself."""
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("ches", "shes", "sses", "xes", "zes")) else word[:-1]


def forms(text: str) -> list[str]:
    """The words of a text as they are compared."""
    return [word.form for word in words(text)]


def key_form(name: str) -> tuple[str, ...]:
    """An attribute's name as names are compared: "Connectivity technologies" and "Connectivity Technology" are one."""
    return tuple(forms(name))


def _joined(parts: Sequence[str]) -> str:
    """Words run together, but for neighbouring numbers: "wi fi" is "wifi", "1 2" is not "12"."""
    text = ""
    for part in parts:
        text += ("_" if text and text[-1].isdigit() and part[0].isdigit() else "") + part
    return text


def find(text: str, phrase: str) -> Iterator[tuple[int, int]]:
    """(first word, word after the last) of every place in ``text`` where the words of ``phrase`` stand."""
    there = words(text)
    wanted = _joined(forms(phrase))
    for start in range(len(there)):
        for end in range(start + 1, len(there) + 1):
            here = _joined([word.form for word in there[start:end]])
            if here == wanted:
                yield start, end
            if len(here) >= len(wanted):
                break


def is_denied(there: Sequence[Word], start: int, end: int) -> bool:
    """Whether the words from ``start`` to ``end`` are denied where they stand: "no X", "without X", "X free"."""
    before = there[start - 1] if start else None
    after = there[end] if end < len(there) else None
    if before is not None and before.part == there[start].part and before.form in NEGATORS:
        return True
    return after is not None and after.part == there[end - 1].part and after.form == FREE


def says(text: str, phrase: str) -> bool:
    """Whether the text has the phrase, word by word, in a place where it is not denied."""
    if not words(phrase):
        return bool(phrase.strip()) and phrase.strip().casefold() in text.casefold()
    return any(not is_denied(words(text), *place) for place in find(text, phrase))
