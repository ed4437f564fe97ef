"""How a report shows episodes: columns to filter by, and what an episode opens to, turn by turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from textwrap import shorten
from typing import Any

from reporting.records import Field, Shown

Line = Mapping[str, Any]
TITLE = 72  # characters of a query that name its episode
PAGE_CHARACTERS = 8_000_000  # of tool results on a page; each is cut to its share
SHORTEST, LONGEST = 200, 2000
FAULTS = {
    "known_not_met": "known but not met",
    "never_asked": "never asked for",
    "no_recommendation": "recommended nothing",
    "error": "broke down",
    "missing": "not played",
}
ENDS = {
    "recommended": "recommended",
    "unknown_product": "unknown product",
    "no_call": "stopped calling",
    "budget": "out of turns",
    "context": "out of context",
    "error": "broke down",
}


def fields_of(lines: Sequence[Line]) -> list[Field]:
    """The columns; what is the same for all episodes is left out."""
    fields = [
        Field("result", "Result", "choice", tones={"right": "good", "wrong": "bad"}),
        Field("intent", "Intent", "choice"),
        Field("fault", "What went wrong", "choice"),
        Field("source", "Source of the cause", "choice"),
        Field("type", "Type of the cause", "choice", column=False),
        Field("ended", "Ended", "choice", column=False),
        Field("trial", "Trial", "choice"),
        Field("satisfied", "Requirements met", "share", 2),
        Field("calls", "Calls", "number", 0),
    ]
    values = [values_of(line, None) for line in lines]
    fixed = ("result", "intent", "fault", "source", "type", "satisfied", "calls")
    return [one for one in fields if one.key in fixed or len({each[one.key] for each in values}) > 1]


def values_of(line: Line, cause: Line | None) -> dict[str, str | float | int | None]:
    """An episode's values by column; ``cause`` is what its failure was laid to."""
    return {
        "result": "right" if line["correct"] else "wrong",
        "intent": str(line.get("intent_category", "")).replace("_", " "),
        "fault": FAULTS[cause["fault"]] if cause else None,
        "source": cause["source"] if cause else None,
        "type": cause["type"] and cause["type"].replace("_", " ") if cause else None,
        "ended": ENDS.get(str(line.get("stop_reason")), str(line.get("stop_reason"))),
        "trial": str(line["trial"]),
        "satisfied": line["satisfaction_rate"],
        "calls": line.get("total_tool_calls"),
    }


def episodes(lines: Sequence[Line], causes: Mapping[tuple[str, int], Line]) -> list[Shown]:
    """All episodes, each with its turns; ``causes`` by task id and trial."""
    results = sum(message["role"] == "tool" for line in lines for message in line.get("trajectory") or ())
    longest = min(LONGEST, max(SHORTEST, PAGE_CHARACTERS // max(results, 1)))
    return [episode(line, causes.get((line["id"], line["trial"])), longest) for line in lines]


def episode(line: Line, cause: Line | None, longest: int = LONGEST) -> Shown:
    """One episode: what was asked, every turn with its call and result (cut to ``longest``), and the rubric."""
    query = str(line.get("user_query") or line["id"])
    title = shorten(query, TITLE, placeholder=" …") if " " in query else query[:TITLE]
    body = [
        ("Query", query),
        *turns(line.get("trajectory") or (), longest),
        ("Recommended", _recommended(line)),
        ("Requirements", "\n".join(map(requirement, line["rubric_results"]))),
        ("Laid to", f"{cause['rubric_id']}: {cause['reason']}" if cause and cause["rubric_id"] else ""),
        ("Error", str(line.get("error") or "")),
        ("Id", line["id"]),
    ]
    return Shown(title, values_of(line, cause), [(name, text) for name, text in body if text])


def turns(trajectory: Sequence[Line], longest: int) -> Iterator[tuple[str, str]]:
    """(name, text) of every turn: what the agent thought and called, then what came back."""
    number, said = 0, ""
    for message in dropwhile(lambda message: message["role"] != "assistant", trajectory):
        if message["role"] == "assistant":
            if said:
                yield f"Turn {number}", said
            number += 1
            said = _spoken(message)
        elif message["role"] == "tool":
            said += f"\n← {_cut(_result(_text(message)), longest)}"
        else:
            said += f"\n({_text(message)})"
    if said:
        yield f"Turn {number}", said.strip()


def _spoken(message: Line) -> str:
    parts = [str(message.get("reasoning_trace") or ""), _text(message)]
    parts += [f"→ {_call(call)}" for call in message.get("tool_calls") or ()]
    parts += [f"(not made: {_call(call)})" for call in message.get("discarded_tool_calls") or ()]
    return "\n".join(part for part in parts if part)


def _call(call: Line) -> str:
    """A call as one writes it: search_products(query="desk lamp")."""
    function = call["function"]
    written = function.get("arguments")
    try:
        arguments = json.loads(written)
        told = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    except (ValueError, AttributeError, TypeError):
        told = str(written)
    return f"{function['name']}({told})"


def _text(message: Line) -> str:
    """What a message says; other tools' predictions may hold parts in place of a text."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _result(text: str) -> str:
    """A tool's result, a value a line; what is no JSON object stays as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return "\n".join(_lines(value)) if isinstance(value, dict) and value else text


def _lines(value: Line, indent: str = "") -> Iterator[str]:
    for name, entry in value.items():
        if isinstance(entry, dict) and entry:
            yield f"{indent}{name}:"
            yield from _lines(entry, f"{indent}  ")
        elif isinstance(entry, list) and entry:
            yield f"{indent}{name}:"
            yield from (f"{indent}  {_plain(one)}" for one in entry)
        else:
            yield f"{indent}{name}: {_plain(entry)}"


def _plain(value: Any) -> str:
    """A value on one line: a product of a list is its id and its title."""
    if isinstance(value, dict):
        return " · ".join(map(_plain, value.values()))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def _recommended(line: Line) -> str:
    if line.get("predicted_product_id") is None:
        return f"nothing (the target was {line['target_product_id']})"
    own = "the target" if line["exact_product_match"] else f"the target was {line['target_product_id']}"
    return f"{line['predicted_product_id']} ({own}). {line.get('reasoning') or ''}".strip()


def requirement(result: Line) -> str:
    """A requirement with its outcome, as one line."""
    mark = "✓" if result["satisfied"] else "✗"
    judged = "" if result["decided_by"] == "code" else f" [{result['decided_by']}]"
    what = f"{result['type'].replace('_', ' ')} {result['field'].removeprefix('details.')}"
    return f"{mark} {result['rubric_id']} ({result['info_source']}, {what}): {result['reasoning']}{judged}"
