"""One line of Amazon Reviews 2023: product metadata and reviews, each field of one type, or refused.

Only what makes a line useless refuses it (no id, no title, no rating). Whatever else real files hold is understood:
details as an object or as its JSON text, prices as numbers or as "$1,299.00", lists or a single text, absent fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

NUMBER = re.compile(r"\s*\$?\s*(\d[\d,]*(?:\.\d+)?)\s*")


class UselessLine(ValueError):
    """A line that cannot become a product or a review; says why."""


def read_line(line: bytes) -> dict[str, Any]:
    """The JSON object of a line. Raises UselessLine for everything else."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UselessLine(f"no JSON: {error}") from None
    if not isinstance(value, dict):
        raise UselessLine(f"JSON, but no object: {type(value).__name__}")
    return value


def product_record(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a product that we know, each of one type; what comes beside them (images, videos) goes.

    ``bought_together`` goes as well, as in the published catalogue.
    """
    return {
        "parent_asin": _text(raw.get("parent_asin")).strip(),
        "title": _text(raw.get("title")).strip(),
        "main_category": _text(raw.get("main_category")),
        "store": _text(raw.get("store")),
        "average_rating": number(raw.get("average_rating")),
        "rating_number": int(number(raw.get("rating_number")) or 0),
        "price": number(raw.get("price")),
        "categories": _texts(raw.get("categories")),
        "features": _texts(raw.get("features")),
        "description": _texts(raw.get("description")),
        "details": _details(raw.get("details")),
    }


def review_record(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A review with the names of the catalogue's columns. Raises UselessLine without a product or a rating."""
    product = _text(raw.get("parent_asin") or raw.get("asin")).strip()
    rating = number(raw.get("rating"))
    if not product or rating is None:
        raise UselessLine("no parent_asin" if not product else "no rating")
    return {
        "product_id": product,
        "rating": rating,
        "title": _text(raw.get("title")),
        "text": _text(raw.get("text")),
        "helpful_vote": int(number(raw.get("helpful_vote")) or 0),
        "verified_purchase": int(raw.get("verified_purchase") is True),
        "timestamp": int(number(raw.get("timestamp")) or 0),
    }


def number(value: object) -> float | None:
    """A number from 0 up, also from text ("12.99", "$1,299.00"); None for what is none ("from 9.99", NaN, "—")."""
    if isinstance(value, str):
        match = NUMBER.fullmatch(value)
        value = float(match[1].replace(",", "")) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value)


def sound(text: str) -> str:
    """Text that SQLite stores and finds again: no NUL (it ends a query), no half of a surrogate pair."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _text(value: object) -> str:
    return sound(value) if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [sound(entry) for entry in values if isinstance(entry, str) and entry.strip()]


def _details(value: object) -> dict[str, Any]:
    """Names and values as they are, texts mostly; Amazon has a few objects among them, such as sales ranks."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    if not isinstance(value, dict):
        return {}
    return {name: entry for name, entry in value.items() if entry is not None}
