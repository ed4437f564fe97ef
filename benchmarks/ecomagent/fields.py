"""The attributes that tasks may ask for: ``attributes.csv``, and the names under which catalogues keep them.

A line of the table is an attribute by its canonical name, with

- ``other_name``: how some catalogues call it;
- ``hidden_source``: which hidden source may tell it (persona or clarification); where there is none, the query must;
- ``profile_key``: how a shopper's profile calls it;
- ``hintable``: whether a query may hide its value behind a clue;
- ``options``: whether its text lists several values, of which a task asks for one;
- ``excludable``: whether a task may exclude values of it.

Names and marks are those of EComAgentBench's construction (facts of its format).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.ecomagent.wording import key_form

with Path(__file__).with_name("attributes.csv").open(encoding="utf-8", newline="") as _file:
    _TABLE = {line["attribute"]: line for line in csv.DictReader(_file)}


def _marked(column: str, value: str = "yes") -> tuple[str, ...]:
    """The attributes that have a value in a column, in the order of the table."""
    return tuple(name for name, line in _TABLE.items() if line[column] == value)


CANONICAL = tuple(_TABLE)
ALIASES = {line["other_name"]: name for name, line in _TABLE.items() if line["other_name"]}
PERSONA, CLARIFICATION = _marked("hidden_source", "persona"), _marked("hidden_source", "clarification")
PERSONA_KEYS = {name: line["profile_key"] for name, line in _TABLE.items() if line["profile_key"]} | {"price": "budget"}
HINTABLE, MULTI_OPTION, EXCLUDABLE = (frozenset(_marked(name)) for name in ("hintable", "options", "excludable"))
NUMERIC = ("average_rating", "rating_number", "price")
AVOID_KEY = "avoid_preferences"

_FORMS = {key_form(name): name for name in CANONICAL} | {key_form(alias): name for alias, name in ALIASES.items()}


def canonical(name: str) -> str:
    """The canonical name of an attribute, however a catalogue spells it; the name itself where none is known."""
    return _FORMS.get(key_form(name), name)


def persona_key(name: str) -> str:
    """Under which key a profile keeps a wish for the attribute."""
    return PERSONA_KEYS.get(name, "_".join(key_form(name)))


def named(details: Mapping[str, str], name: str) -> Iterator[tuple[str, str]]:
    """(key, value) of the details that are this attribute: under its own name first, then under other names of it."""
    wanted = canonical(name)
    exact = [key for key in details if key == wanted]
    for key in [*exact, *(key for key in details if key not in exact and canonical(key) == wanted)]:
        if details[key].strip():
            yield key, details[key]
