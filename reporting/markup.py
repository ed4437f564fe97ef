"""HTML and SVG from plain functions: what is text is escaped, what is markup has its own type."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape

VOID = frozenset({"br", "input", "meta"})
Content = Markup | str | int | float | None


def tag(name: str, /, *content: Content, **attributes: Content | bool) -> Markup:
    """An element. Strings are escaped unless they are Markup; None is left out.

    An attribute's underscores become hyphens and one at its end goes (``class_``). True is an attribute without a
    value, False and None are no attribute; floats are written with at most two decimals.
    """
    given = {key: value for key, value in attributes.items() if value is not None and value is not False}  # 0 is given
    said = Markup("").join(_attribute(key, value) for key, value in given.items())
    if name in VOID:
        return Markup(f"<{name}{said}>")
    return Markup(f"<{name}{said}>{joined(content)}</{name}>")


def joined(content: Iterable[Content]) -> Markup:
    """All parts one after the other, escaped where they are text."""
    return Markup("").join(part if isinstance(part, str) else str(part) for part in content if part is not None)


def _attribute(key: str, value: Any) -> Markup:
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return Markup(f" {name}")
    if isinstance(value, float):
        value = shortest(value)
    return Markup(f' {name}="{escape(value)}"')


def shortest(value: float) -> str:
    """A coordinate with at most two decimals, none that are zero."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def number(value: float | None, digits: int = 3) -> str:
    """A figure as tables show it; a dash where there is none."""
    return "–" if value is None or not math.isfinite(value) else f"{value:,.{digits}f}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share of 1 in per cent; a dash where there is none."""
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f}\u00a0%"


def count(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}"


def embedded_json(value: Any) -> Markup:
    """JSON that may stand inside a script element: nothing in it can close the element or open a comment.

    Raises ValueError for NaN and infinities, which are no JSON.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
