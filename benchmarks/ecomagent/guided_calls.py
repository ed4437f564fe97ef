"""Grammars of a turn: a short thought, then one well-formed call of a tool that there is, with arguments it takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.ecomagent.formats import FormatName, Schemas
from benchmarks.ecomagent.tools.base import MOST_IDS

LONGEST_THOUGHT = 240  # characters
THOUGHT_SHARE = 2  # a turn's tokens for one character of thought: some tokens are no longer than a digit
LONGEST_TEXT, LONGEST_ID = 160, 20  # of a text that names no limit itself, and of one in a list
LONGEST = {"code": 600, "product_id": LONGEST_ID}
# As json.dumps and the chat templates write JSON, so that history is read as it was written.
_SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
Marker = Callable[[str], str]
"""A marker as the grammar writes it: quoted, or as the special token that it is."""


def call_grammar(form: FormatName, schemas: Schemas, marker: Marker, tokens: int) -> str:
    """The grammar of a turn in a format, whose thought leaves room for a call in a turn of ``tokens`` tokens.

    Raises ValueError for the format that is no JSON.
    """
    if form == "qwen_xml":
        raise ValueError(
            "calls in tags of their own cannot be guided; give --tool_format hermes, or leave --guided out"
        )
    key = "parameters" if form == "llama3" else "arguments"
    call = f"%json {json.dumps({'anyOf': [_call(schema, key) for schema in schemas], 'x-guidance': _SPACING})}"
    thought = f"/[^{{}}<>\\[\\]]{{0,{min(LONGEST_THOUGHT, tokens // THOUGHT_SHARE)}}}/"
    turns = {
        "plain": "thought call",
        "hermes": f'thought {marker("<tool_call>")} "\\n" call "\\n" {marker("</tool_call>")}',
        "llama3": "call",
        "mistral": f'{marker("[TOOL_CALLS]")} "[" call "]"',
    }
    return f"start: {turns[form]}\nthought: {thought}\ncall: {call}\n"


def _call(schema: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The JSON schema of a call of one tool."""
    function = schema["function"]
    return {
        "type": "object",
        "properties": {"name": {"const": function["name"]}, key: _bounded(function["parameters"])},
        "required": ["name", key],
        "additionalProperties": False,
    }


def _bounded(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's arguments with a length for every text and list, so that a turn comes to its end."""
    given = parameters["properties"].items()
    properties = {name: _limited(entry, LONGEST.get(name, LONGEST_TEXT)) for name, entry in given}
    return {**parameters, "properties": properties, "additionalProperties": False}


def _limited(entry: Mapping[str, Any], longest: int) -> dict[str, Any]:
    if entry.get("type") == "string":
        return {"maxLength": longest, **entry}
    if entry.get("type") == "array":
        return {"maxItems": MOST_IDS, **entry, "items": _limited(entry["items"], LONGEST_ID)}
    return dict(entry)
