"""Charts of any report: lines, bars with intervals, radar; each an inline SVG whose colours are the page's.

Series differ by colour and by dash, so that they can be told apart without colours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reporting.markup import Content, Markup, joined, number, tag
from reporting.svg import (
    WIDTH,
    Axis,
    Scale,
    cut,
    drawing,
    frame,
    label,
    left_margin,
    line,
    path,
    scale,
    text_width,
)

SERIES = 6  # colours of the style sheet; the seventh series has the first's again
MOST_DOTS = 40  # points of a line that are drawn one by one
Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """A named line through points (x, y), with the ends of each point's interval in ``band`` if they are known.

    Points whose y is not finite are left out.
    """

    name: str
    points: Sequence[Point]
    band: Sequence[tuple[float, float]] | None = None


@dataclass(frozen=True)
class Mark:
    """A vertical line at ``x`` and what it says."""

    x: float
    text: str


@dataclass(frozen=True)
class Bar:
    """A named value and the ends of its interval; bars of one ``series`` share a colour."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    series: int = 0


def line_chart(
    title: str,
    series: Sequence[Series],
    x: Axis,
    y: Axis,
    marks: Sequence[Mark] = (),
    height: float = 250.0,
) -> Markup:
    """Lines over a common x, with bands where there are intervals, dots where there are few points, and marks."""
    points = [point for one in series for point in one.points]
    values = [value for _, value in points] + [end for one in series for ends in one.band or () for end in ends]
    across = scale(x, [place for place, _ in points], left_margin(y, values), WIDTH - 14)
    up = scale(y, values, height - 42, 30 if y.label else 14)
    drawn = [
        frame(across, up, x.label, y.label),
        *(_mark(mark, across, up) for mark in marks if across.low <= mark.x <= across.high),
        *(_band(k, one, across, up) for k, one in enumerate(series)),
        *(_line(k, one, across, up) for k, one in enumerate(series)),
    ]
    return joined([legend([one.name for one in series]), drawing(title, height, *drawn)])


def legend(names: Sequence[str]) -> Markup | None:
    """Names beside a sample of each line; None for a single one, which the caption names."""
    if len(names) < 2:
        return None
    samples = [line(0, 5, 26, 5, f"line {_colour(k)}") for k in range(len(names))]
    swatches = [tag("svg", sample, viewBox="0 0 26 10", aria_hidden="true", class_="swatch") for sample in samples]
    items = (tag("li", swatch, name) for swatch, name in zip(swatches, names, strict=True))
    return tag("ul", *items, class_="legend")


def bar_chart(
    title: str, bars: Sequence[Bar], axis: Axis, reference: tuple[float, str] | None = None, digits: int = 3
) -> Markup:
    """Horizontal bars from 0 with their intervals; names on the left, values on the right, ``reference`` a dashed line.

    Names longer than their room are cut; a pointer over the bar shows them whole.
    """
    row, top = 27.0, 22.0 if reference else 6.0
    room = min(150.0, max((text_width(bar.name) for bar in bars), default=0.0)) + 10
    values = [value for bar in bars for value in (bar.value, bar.low, bar.high) if value is not None]
    across = scale(axis, [0.0, *values], room, WIDTH - 48)
    bottom = top + row * len(bars)
    ticks = across.ticks()
    drawn: list[Content] = [
        *(line(across(tick), top, across(tick), bottom, "grid") for tick in ticks),
        *(label(across(tick), bottom + 16, f"{tick:g}", "middle") for tick in ticks),
        *(_bar(bar, across, top + row * k, row, room, digits) for k, bar in enumerate(bars)),
        line(across(0.0), top, across(0.0), bottom, "axis") if across.low <= 0 <= across.high else None,
        label(WIDTH - 48, bottom + 33, axis.label, "end", "name") if axis.label else None,
    ]
    if reference:
        place = across(reference[0])
        drawn += [line(place, top - 4, place, bottom, "mark"), label(place, top - 8, reference[1], "middle", "name")]
    return drawing(title, bottom + (38 if axis.label else 22), *drawn)


def radar(title: str, axes: Sequence[str], series: Mapping[str, Sequence[float]], high: float = 1.0) -> Markup:
    """A polygon for each series over named axes, from 0 at the centre to ``high`` at the rim.

    Args:
        series: name -> a value for each axis.

    Raises ValueError for fewer than three axes (bars show them better) or another number of values.
    """
    if len(axes) < 3 or any(len(values) != len(axes) for values in series.values()):
        raise ValueError(f"radar: {len(axes)} axes; give at least 3, and each series one value for each")
    turns = [2 * math.pi * k / len(axes) for k in range(len(axes))]
    drawn = [
        *(tag("path", d=path([_at(turn, share) for turn in turns], True), class_="grid ring") for share in RINGS),
        *(line(*_at(0, 0), *_at(turn, 1.0), "grid") for turn in turns),
        *(_polygon(k, name, axes, values, high) for k, (name, values) in enumerate(series.items())),
        *(label(CENTRE[0] + 3, _at(0, share)[1] + 11, f"{share * high:g}", class_="faint") for share in RINGS[1::2]),
        *(_radar_name(name, turn) for name, turn in zip(axes, turns, strict=True)),
    ]
    return joined([legend(list(series)), drawing(title, 2 * CENTRE[1], *drawn)])


RINGS, RADIUS, CENTRE = (0.25, 0.5, 0.75, 1.0), 108.0, (WIDTH / 2, 148.0)


def _at(turn: float, share: float) -> Point:
    """The point at an angle clockwise from the top, in radians, and a share of the radius."""
    return CENTRE[0] + RADIUS * share * math.sin(turn), CENTRE[1] - RADIUS * share * math.cos(turn)


def _polygon(k: int, name: str, axes: Sequence[str], values: Sequence[float], high: float) -> Markup:
    corners = [_at(2 * math.pi * j / len(axes), value / high) for j, value in enumerate(values)]
    told = zip(axes, corners, values, strict=True)
    dots = (_dot(x, y, f"{name}: {axis} {number(value)}") for axis, (x, y), value in told)
    outline = path(corners, True)
    return tag(
        "g", tag("path", d=outline, class_="band"), tag("path", d=outline, class_="line"), *dots, class_=_colour(k)
    )


def _radar_name(name: str, turn: float) -> Markup:
    x, y = _at(turn, 1 + 10 / RADIUS)
    side = math.sin(turn)
    if abs(side) < 0.2:
        return label(x, y + 4 - 6 * math.cos(turn), cut(name, WIDTH), "middle", "name")
    room = WIDTH / 2 - abs(x - CENTRE[0])
    return label(x, y + 4, cut(name, room), "start" if side > 0 else "end", "name")


def _colour(k: int) -> str:
    return f"s{k % SERIES + 1}"


def _line(k: int, one: Series, across: Scale, up: Scale) -> Markup:
    points = [(x, y) for x, y in one.points if math.isfinite(y)]
    places = [(across(x), up(y)) for x, y in points]
    dots: list[Markup] = []
    if len(places) <= MOST_DOTS:
        told = zip(places, points, strict=True)
        dots = [_dot(px, py, f"{one.name}: {x:g}, {number(y)}") for (px, py), (x, y) in told]
    return tag("g", tag("path", d=path(places), class_="line") if places else None, *dots, class_=_colour(k))


def _band(k: int, one: Series, across: Scale, up: Scale) -> Markup | None:
    if not one.band:
        return None
    lower = [(across(x), up(low)) for (x, _), (low, _) in zip(one.points, one.band, strict=True)]
    upper = [(across(x), up(high)) for (x, _), (_, high) in zip(one.points, one.band, strict=True)]
    return tag("path", d=path([*lower, *reversed(upper)], True), class_=f"band {_colour(k)}")


def _dot(x: float, y: float, said: str) -> Markup:
    return tag("circle", tag("title", said), cx=x, cy=y, r=3, class_="dot")


def _mark(mark: Mark, across: Scale, up: Scale) -> Markup:
    place = across(mark.x)
    before = place + text_width(mark.text) + 8 > across.end
    text = label(place + (-5 if before else 5), up.end + 9, mark.text, "end" if before else "start", "name halo")
    return joined([line(place, up.start, place, up.end, "mark"), text])


def _bar(bar: Bar, across: Scale, top: float, row: float, room: float, digits: int) -> Markup:
    middle, zero, end = top + row / 2, across(max(across.low, 0.0)), across(bar.value)
    said = f"{bar.name}: {number(bar.value, digits)}"
    whisker: list[Markup] = []
    if bar.low is not None and bar.high is not None:
        said += f" [{number(bar.low, digits)}, {number(bar.high, digits)}]"
        low, high = across(bar.low), across(bar.high)
        whisker = [line(low, middle, high, middle, "whisker")]
        whisker += [line(side, middle - 4, side, middle + 4, "whisker") for side in (low, high)]
    return tag(
        "g",
        tag("title", said),
        label(room - 8, middle + 4, cut(bar.name, room - 9), "end", "name"),
        tag("rect", x=min(zero, end), y=top + 6, width=abs(end - zero), height=row - 12, class_="bar"),
        *whisker,
        label(WIDTH, middle + 4, number(bar.value, digits), "end", "figure"),
        class_=_colour(bar.series),
    )
