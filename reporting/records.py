"""Records of a report: a list to search, filter and sort, and short lists that need no script.

The list's rows lie in the page as JSON and are drawn as they are asked for (records.js), fifty at a time, so that
twenty thousand of them open as fast as twenty. A link ``#NAME?KEY=VALUE&...`` sets its filters (``q`` is the search,
``sort`` a column's key, ``-`` before it for falling).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

from reporting.markup import Content, Markup, count, embedded_json, number, tag

MOST = 20_000


@dataclass(frozen=True)
class Field:
    """What is shown of every record in a column.

    Attributes:
        key: names the value in ``Record.values`` and in links.
        kind: choice (a text out of few, to filter by), number, share (a number from 0 to 1, with a bar), or text.
        digits: decimals of a number.
        tones: value -> good or bad, for choices that say whether the record went well.
        column: whether it is shown; a choice that is not can still be filtered by.
    """

    key: str
    name: str
    kind: Literal["choice", "number", "share", "text"] = "text"
    digits: int = 3
    tones: Mapping[str, Literal["good", "bad"]] = field(default_factory=dict)
    column: bool = True


@dataclass(frozen=True)
class Shown:
    """A record as the list shows it: a title, a value for each field (by key), and what it opens to: (name, text)."""

    title: str
    values: Mapping[str, str | float | int | None]
    body: Sequence[tuple[str, str]]


def record_list(
    name: str, fields: Sequence[Field], records: Sequence[Shown], sort: str = "", noun: str = "records"
) -> Markup:
    """The list of all records. Of more than `MOST`, evenly spaced ones are kept, and the list says so.

    Args:
        name: its anchor; the page's links to filters begin with it.
        sort: the key of the field by which it is sorted at first, "-" before it for falling; "" is the given order.
    """
    kept = thinned(records)
    data = {
        "fields": [asdict(one) for one in fields],
        "rows": [[one.title, [one.values.get(each.key) for each in fields], list(one.body)] for one in kept],
        "sort": sort,
        "noun": noun,
    }
    fewer = None
    if len(kept) < len(records):
        fewer = tag(
            "p", f"{count(len(kept))} of {count(len(records))} {noun} are listed, evenly spaced.", class_="note"
        )
    return tag(
        "div",
        fewer,
        tag("noscript", tag("p", "Searching and filtering need JavaScript.", class_="note")),
        tag("script", embedded_json(data), type="application/json"),
        id=name,
        class_="records",
    )


def thinned(records: Sequence[Shown], most: int = MOST) -> list[Shown]:
    """At most ``most`` of the records, evenly spaced over their order."""
    return list(records) if len(records) <= most else [records[k * len(records) // most] for k in range(most)]


def filter_link(name: str, **wanted: str) -> str:
    """The address, within the page, of a list with its filters set."""
    return f"#{name}?{urlencode(wanted)}"


def short_list(fields: Sequence[Field], records: Sequence[Shown]) -> Markup:
    """A few records in the given order, without a script: each opens to its body."""
    return tag("ol", *(tag("li", _short(fields, one)) for one in records), class_="short")


def _short(fields: Sequence[Field], one: Shown) -> Markup:
    told = (tag("span", each.name, " ", tag("b", _text(each, one.values.get(each.key)))) for each in fields)
    body = (tag("div", tag("dt", name), tag("dd", text)) for name, text in one.body)
    summary = tag("summary", tag("span", one.title, class_="title"), tag("span", *told, class_="told"))
    return tag("details", summary, tag("dl", *body, class_="text"))


def _text(each: Field, value: Any) -> Content:
    if value is None:
        return "–"
    return number(float(value), each.digits) if each.kind in ("number", "share") else str(value)
