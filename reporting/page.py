"""The frame of a report: one HTML file that needs nothing else, and the plain parts that stand in it.

The page loads nothing and sends nothing: its content policy allows its own style and the one script that is written
into it, by digest. It follows the reader's colour scheme, and is laid out anew for narrow screens and for paper.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from reporting.markup import Content, Markup, joined, number, tag
from reporting.svg import Scale, line


@dataclass(frozen=True)
class Section:
    """A part of the page. ``name`` is its anchor; ``lead`` says how to read it; a wide one takes the whole width."""

    name: str
    title: str
    body: Content
    lead: Content = ""
    wide: bool = False


@dataclass(frozen=True)
class Tile:
    """One figure that is to be seen first, its name, and what stands below it."""

    name: str
    value: str
    detail: Content = ""


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand right-aligned, one below the other."""

    name: Content
    kind: Literal["text", "number", "graphic"] = "text"


def page(kicker: str, title: str, lead: Content, sections: Sequence[Section], footer: Content = "") -> str:
    """The whole HTML of a report.

    Args:
        kicker: what kind of report it is, in a small line above the title.
        lead: what it found, in a sentence or two; several paragraphs may be given as Markup.
        footer: from which files and by which version it was written.
    """
    style, script = asset("report.css"), asset("records.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · {kicker}"),
        tag("style", Markup(style)),
    )
    links = (tag("li", tag("a", section.title, href=f"#{section.name}")) for section in sections)
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("header", tag("p", kicker, class_="kicker"), tag("h1", title), tag("div", lead, class_="lead")),
        tag("nav", tag("ul", *links), aria_label="Contents"),
        tag("main", *map(_section, sections), id="content"),
        tag("footer", footer) if footer else None,
        tag("script", Markup(script)),
    )
    text = f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
    return text.encode("utf-8", "replace").decode()  # half a surrogate pair has no place in a file


@cache
def asset(name: str) -> str:
    """A file beside this module, as it is written into each page."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _section(section: Section) -> Markup:
    heading = tag("h2", section.title, id=f"{section.name}-title")
    aside = tag("div", heading, tag("div", section.lead, class_="how") if section.lead else None, class_="aside")
    return tag(
        "section",
        aside,
        tag("div", section.body, class_="body"),
        id=section.name,
        class_="wide" if section.wide else None,
        aria_labelledby=f"{section.name}-title",
    )


def tiles(shown: Sequence[Tile]) -> Markup:
    """Figures in a row, as many as fit."""
    made = (
        tag("div", tag("dt", tile.name), tag("dd", tile.value), tag("dd", tile.detail, class_="detail"))
        for tile in shown
    )
    return tag("dl", *made, class_="tiles")


def table(
    caption: Content, columns: Sequence[Column], rows: Sequence[Sequence[Content]], quiet: bool = False
) -> Markup:
    """A table whose first column names the rows. It scrolls by itself where the screen is too narrow for it.

    A quiet caption is only read aloud: where the first column's name says as much.
    """
    head = (tag("th", column.name, scope="col", class_=_kind(column)) for column in columns)
    body = (tag("tr", *_cells(columns, row)) for row in rows)
    named = tag("caption", caption, class_="quiet" if quiet else None)
    made = tag("table", named, tag("thead", tag("tr", *head)), tag("tbody", *body))
    return tag("div", made, class_="scroll", tabindex=0, role="group", aria_label=Markup(caption).striptags())


def _cells(columns: Sequence[Column], row: Sequence[Content]) -> list[Markup]:
    return [
        tag("td" if k else "th", _shown(column, cell), class_=_kind(column), scope=None if k else "row")
        for k, (column, cell) in enumerate(zip(columns, row, strict=True))
    ]


def _shown(column: Column, cell: Content) -> Content:
    return "–" if cell is None and column.kind != "graphic" else cell


def _kind(column: Column) -> str | None:
    return None if column.kind == "text" else column.kind


def interval(measure: Mapping[str, Any] | None, digits: int = 3) -> Markup:
    """A measure with the ends of its interval ({"value", "low", "high"}), as far as they are known."""
    found = measure or {"value": None}
    value, low, high = (found.get(key) for key in ("value", "low", "high"))
    ends = None if low is None else tag("span", f"[{number(low, digits)}, {number(high, digits)}]", class_="ends")
    return tag("span", number(value, digits), " " if ends else None, ends, class_="interval")


def whisker(measure: Mapping[str, Any], low: float, high: float, reference: float | None = None) -> Markup:
    """A measure and its interval drawn on the way from ``low`` to ``high``; the cell of a graphic column.

    It says nothing to a screen reader: the figures stand in a cell beside it.
    """
    across = Scale(low, high, 4, 156)
    value, left, right = measure.get("value"), measure.get("low"), measure.get("high")
    drawn = [
        line(4, 10, 156, 10, "grid"),
        line(across(reference), 2, across(reference), 18, "mark") if reference is not None else None,
        line(across(left), 10, across(right), 10, "whisker") if left is not None and right is not None else None,
        tag("circle", cx=across(value), cy=10, r=4, class_="dot") if value is not None else None,
    ]
    return tag("svg", *drawn, viewBox="0 0 160 20", aria_hidden="true", class_="chart inline s1")


def facts(pairs: Sequence[tuple[str, Content]]) -> Markup:
    """Names and values; pairs without a value are left out."""
    shown = (tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs if value not in (None, ""))
    return tag("dl", *shown, class_="facts")


def listed(values: Mapping[str, Any]) -> str:
    """Names with their values in one line, such as versions; those without one are left out."""
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)


def digest(text: str | None) -> Markup | None:
    """The beginning of a digest (a pointer over it shows the whole), or another name of exact files."""
    return None if text is None else tag("code", text[:16] if len(text) == 64 else text, title=text)


def figure(title: str, chart: Content, caption: Content = "", numbers: Content = None) -> Markup:
    """A chart with its title, a caption, and its numbers as a table to open."""
    opened = tag("details", tag("summary", "The numbers"), numbers) if numbers is not None else None
    said = tag("figcaption", caption) if caption else None
    return tag("figure", tag("h3", title), chart, said, opened)


def grid(*figures: Content) -> Markup:
    """Figures side by side where there is room."""
    return tag("div", *figures, class_="figures")


def paragraph(*content: Content) -> Markup:
    return tag("p", *content)


def stack(*content: Content) -> Markup:
    """One part below the other."""
    return joined(content)
