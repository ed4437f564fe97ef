"""How requirements are put into words without a language model: plainly, or by a clue that hides the value."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from benchmarks.ecomagent.tasks import RubricItem
from benchmarks.ecomagent.wording import key_form

HERE = Path(__file__).parent
_SPOKEN_VOWEL = "AEFHILMNORSX"  # letters whose names begin with a vowel


@cache
def phrases() -> dict[str, dict[str, Any]]:
    """Name of an attribute or number -> how it is said and asked about."""
    loaded: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "phrases.yaml").read_text(encoding="utf-8"))
    return loaded


@cache
def hints() -> dict[str, dict[tuple[str, ...], list[str]]]:
    """Name of an attribute -> value (as values are compared) -> clues."""
    raw = yaml.safe_load((HERE / "hints.yaml").read_text(encoding="utf-8"))
    return {
        name: {key_form(str(value)): [clue] if isinstance(clue, str) else clue for value, clue in clues.items()}
        for name, clues in raw.items()
    }


def clues(name: str, value: Any) -> list[str]:
    """The clues for a value of an attribute, each completing "It should ..."; none where nobody has thought of one."""
    return hints().get(name, {}).get(key_form(value), []) if isinstance(value, str) else []


def name_of(item: RubricItem) -> str:
    return item.attribute or item.field


def said(item: RubricItem, rng: random.Random) -> tuple[str, str]:
    """(what completes "It should ...", the words in it that say the requirement) of an item said plainly."""
    entry = phrases()[name_of(item)]
    values = item.expected_value if item.type == "negative_attribute" else [_bare(item.expected_value)]
    spoken = [small(value) if entry.get("lower") else value for value in values]
    value = " or ".join(spoken)
    pattern = rng.choice(entry["say"])
    # "have a heart shape" and "have a heart shape shape" come from values that do or do not name what they are.
    phrase = re.sub(r"(?i)\b(\w+) \1\b", r"\1", pattern.format(v=value, a=with_article(value)))
    if item.type == "negative_attribute":
        return f"not {phrase}", f"not {phrase}"
    return phrase, value if item.type == "attribute_match" else phrase


def _bare(expected: Any) -> str:
    """A value as one says it: the text, or the bound of a number."""
    if isinstance(expected, dict):
        return f"{expected.get('value', expected.get('min')):g}"
    return str(expected)


def keywords(item: RubricItem) -> list[str]:
    """What a question must mention to be answered with this item; its own name's words where nothing is listed."""
    name = name_of(item)
    entry = phrases().get(name)
    return list(entry["ask"]) if entry else [" ".join(key_form(name))]


def small(value: str) -> str:
    """A value as it stands inside a sentence: ordinary words in lower case, names and abbreviations as they are."""
    return " ".join(word.lower() if re.fullmatch(r"[A-Z][a-z]+", word) else word for word in value.split(" "))


def with_article(text: str) -> str:
    """A noun with "a" or "an" before it, by how it sounds."""
    first = re.split(r"[\s-]", text)[0]
    if first.isupper() and first != "A":
        vowel = first[0] in _SPOKEN_VOWEL
    elif first[:1].isdigit():
        vowel = first.startswith(("8", "11", "18"))
    else:
        vowel = first[:1].lower() in "aeiou" and not re.match(r"(?i)(us[aeiu]|uni|eu|one\b)", first)
        vowel = vowel or first.lower().startswith(("hour", "honest", "heir"))
    return f"{'an' if vowel else 'a'} {text}"


def is_plural(noun: str) -> bool:
    return bool(re.search(r"(?<![suia])s$", noun))


def listed(parts: Sequence[str]) -> str:
    """Parts as a sentence lists them: "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
