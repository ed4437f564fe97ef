"""JSON that a model or a server wrote: of any depth, and with half characters, which no file holds."""

from __future__ import annotations

import json
from typing import Any

_DECODER = json.JSONDecoder()


class TooDeep(ValueError):
    """More brackets within brackets than can be read."""

    def __init__(self) -> None:
        super().__init__("its JSON nests too deeply")


def loads(text: str | bytes) -> Any:
    """The value that a text holds; half characters, as a limit of tokens leaves them of an emoji, become U+FFFD.

    Raises ValueError where it is no JSON, TooDeep (one of them) where it nests too deeply to be read.
    """
    try:
        return _whole(json.loads(text))
    except RecursionError:
        raise TooDeep from None


def value_at(text: str, place: int) -> Any:
    """The value that begins there, whatever follows it. Reads and raises as ``loads`` does."""
    try:
        return _whole(_DECODER.raw_decode(text, place)[0])
    except RecursionError:
        raise TooDeep from None


def _whole(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    if text.isascii():
        return value
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
