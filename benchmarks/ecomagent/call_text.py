"""Finding the tool calls in what a model wrote, for each way of writing them.

Every finder takes a text and gives `Found`: where the first call begins (None without one), and each call as (name,
arguments as JSON text). A call whose JSON is broken keeps its text in place of the arguments, so that the model can be
told what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Written = tuple[str, str]

_NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)
_MISTRAL_NAME = re.compile(r"\s*([\w.-]+)\s*(?:\[CALL_ID\][^\[{]*)?(?:\[ARGS\])?\s*(?=\{)")
_FENCE = re.compile(r"```(?:json)?\s*\Z")
_DECODER = json.JSONDecoder()


class Found(NamedTuple):
    start: int | None
    calls: list[Written]


NOTHING = Found(None, [])


def hermes(text: str) -> Found:
    """JSON objects between <tool_call> and </tool_call>."""
    start = text.find("<tool_call>")
    if start < 0:
        return NOTHING
    bodies = (body.split("</tool_call>")[0] for body in text[start:].split("<tool_call>")[1:])
    return Found(start, [call for body in bodies for call in _calls(body)[:1]])


def qwen_xml(text: str) -> Found:
    """<function=name><parameter=key>value</parameter></function>, the values without quotes."""
    calls = []
    for name, body in _FUNCTION.findall(text):
        arguments: dict[str, Any] = {key: _typed(value) for key, value in _PARAMETER.findall(body)}
        calls.append((name, _json(arguments)))
    starts = [place for mark in ("<tool_call>", "<function=") if (place := text.find(mark)) >= 0]
    return Found(min(starts), calls) if calls else NOTHING


def llama3(text: str) -> Found:
    """Nothing but JSON objects, behind <|python_tag|> or bare."""
    body = text.replace("<|python_tag|>", "", 1)
    calls = _calls(body) if body.lstrip().startswith("{") else []
    return Found(len(text) - len(text.lstrip()), calls) if calls else NOTHING


def mistral(text: str) -> Found:
    """[TOOL_CALLS] and a list of objects; in newer models, name[ARGS]{...} behind each [TOOL_CALLS]."""
    start = text.find("[TOOL_CALLS]")
    if start < 0:
        return NOTHING
    calls: list[Written] = []
    for body in text[start:].split("[TOOL_CALLS]")[1:]:
        if named := _MISTRAL_NAME.match(body):
            place, value = next(_objects(body), (-1, None))
            calls.append((named[1], _json(value) if place == named.end() else body[named.end() :].strip()))
        else:
            calls += _calls(body)
    return Found(start, calls)


def plain(text: str) -> Found:
    """JSON objects with a name anywhere in a text, fenced or not."""
    calls = _calls(text)
    if not calls:
        return NOTHING
    first = next((place for place, value in _objects(text) if _call(value) is not None), text.find("{"))
    fence = _FENCE.search(text[:first])
    return Found(fence.start() if fence else first, calls)


def closes_tag(text: str) -> bool:
    """Whether a text ends with the end of a call in tags."""
    return text.endswith("</tool_call>")


def closes_object(text: str) -> bool:
    """Whether a text ends with a whole JSON object that is a call."""
    return text.endswith("}") and any(_call(value) is not None for _, value in _objects(text))


def goes_on(text: str) -> bool:
    """For formats of which only the end token says that a turn is over."""
    return False


def _calls(text: str) -> list[Written]:
    """The calls that the JSON objects of a text describe; of broken JSON that has a name, one with the text itself."""
    found = [call for _, value in _objects(text) if (call := _call(value)) is not None]
    if found or (name := _NAME.search(text)) is None:
        return found
    return [(name[1], text[text.find("{") :].strip())]


def _call(value: Any) -> Written | None:
    """A call that a JSON value describes; None for one that describes none."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        return None
    arguments: Any = next((value[key] for key in ("arguments", "parameters") if key in value), {})
    return value["name"], arguments if isinstance(arguments, str) else _json(arguments)


def _objects(text: str) -> Iterator[tuple[int, Any]]:
    """(start, value) of every JSON object in a text, the outermost ones."""
    place = text.find("{")
    while place >= 0:
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield place, value
        place = text.find("{", end)


def _typed(text: str) -> Any:
    """A parameter written without quotes: a list, an object or a number where it reads as one, else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, str) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
