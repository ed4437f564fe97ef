"""The ground under every chart: scales, ticks, the frame of a plot, and how wide a text will be."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from reporting.markup import Content, Markup, joined, tag

# Units of the viewBox. A chart is at most some 30rem wide on a page, so that a text of 12 is about 12 to 14 pixels.
WIDTH, TEXT = 420.0, 12.0


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and its ends (None: what the data need)."""

    label: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high`` on the way from ``start`` to ``end``, in units of the viewBox."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, here = map(math.log10 if self.log else float, (self.low, self.high, value))
        return self.start + (here - low) / (high - low) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values between the ends."""
        if self.log:
            return log_ticks(self.low, self.high)
        step = round_step((self.high - self.low) / about)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def scale(axis: Axis, values: Iterable[float], start: float, end: float) -> Scale:
    """The axis over the values; free ends are moved outwards to round values. A log axis needs values above 0."""
    found = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
    low = min(found, default=0.0 if not axis.log else 1.0) if axis.low is None else axis.low
    high = max(found, default=1.0 if not axis.log else 10.0) if axis.high is None else axis.high
    if axis.log:
        if low <= 0:
            raise ValueError(f"axis {axis.label!r}: a logarithmic axis starts above 0, not at {low:g}")
        return Scale(low, high if high > low else 10 * low, start, end, True)
    if high <= low:
        low, high = (low - 0.5, low + 0.5) if axis.low is None and axis.high is None else (low, low + 1.0)
    step = round_step((high - low) / 5)
    low = math.floor(low / step + 1e-9) * step if axis.low is None else low
    high = math.ceil(high / step - 1e-9) * step if axis.high is None else high
    return Scale(low, high, start, end)


def round_step(size: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below ``size``."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= size * (1 - 1e-9))


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, with their 2- and 5-fold where there are fewer than three of them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5)):
        found = [k * 10.0**power for power in powers for k in steps if low * 0.999 <= k * 10.0**power <= high * 1.001]
        if len(found) >= 3:
            break
    return found or [low, high]


def tick_text(value: float, ticks: list[float]) -> str:
    """A tick with as many decimals as tell it from its neighbours."""
    gap = min((b - a for a, b in pairwise(ticks)), default=abs(value) or 1.0)
    digits = max(0, -math.floor(math.log10(gap) + 1e-9)) if gap else 0
    return f"{0.0 if abs(value) < gap / 1e6 else value:,.{digits}f}"


def text_width(text: str, size: float = TEXT) -> float:
    """About how wide a text is: a Chinese, Japanese or Korean character is as wide as high, others 0.56 of that."""
    return sum(size if unicodedata.east_asian_width(character) in "WF" else 0.56 * size for character in text)


def cut(text: str, width: float, size: float = TEXT) -> str:
    """The text, or as much of it as is ``width`` wide, ending in an ellipsis."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def drawing(title: str, height: float, *content: Content, width: float = WIDTH) -> Markup:
    """An SVG that grows with its column; ``title`` is what a screen reader says."""
    return tag("svg", *content, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=title, class_="chart")


def label(x: float, y: float, text: Content, anchor: str = "start", class_: str | None = None) -> Markup:
    return tag("text", text, x=x, y=y, text_anchor=None if anchor == "start" else anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("path", d=path([(x1, y1), (x2, y2)]), class_=class_)


def path(points: Iterable[tuple[float, float]], closed: bool = False) -> str:
    """An SVG path through the points, with one decimal each."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + ("Z" if closed else "")


def frame(x: Scale, y: Scale, x_label: str, y_label: str, x_ticks: list[float] | None = None) -> Markup:
    """Horizontal grid lines, the x axis, tick texts; the y axis' name stands above it, the x axis' below its end."""
    across = x.ticks() if x_ticks is None else x_ticks
    up = y.ticks()
    return joined(
        [
            *(line(x.start, y(value), x.end, y(value), "grid") for value in up),
            *(label(x.start - 7, y(value) + 4, tick_text(value, up), "end") for value in up),
            line(x.start, y.start, x.end, y.start, "axis"),
            *(line(x(value), y.start, x(value), y.start + 4, "axis") for value in across),
            *(label(x(value), y.start + 17, tick_text(value, across), "middle") for value in across),
            label(x.end, y.start + 34, x_label, "end", "name") if x_label else None,
            label(0, 12, y_label, "start", "name") if y_label else None,
        ]
    )


def left_margin(axis: Axis, values: Iterable[float]) -> float:
    """Room for the y axis' tick texts."""
    ticks = scale(axis, values, 1.0, 0.0).ticks()
    return 10 + max(text_width(tick_text(value, ticks)) for value in ticks)
