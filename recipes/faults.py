"""What is wrong with a record, in sentences for people: ``file:line: field: what is wrong; what to do``.

Fields are written as one points at them, ``product.title`` or ``script[3].step``; positions count from 1, as lines do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from recipes.base import short_repr

LISTED = 20
KINDS = {"str": "text", "list": "a list", "tuple": "a list", "dict": "an object", "bytes": "bytes"}
EXPECTED = {"string_type": "text", "tuple_type": "a list", "model_type": "an object", "dict_type": "an object"}


@dataclass(frozen=True)
class Fault:
    """One thing wrong. ``line`` is the line (JSONL) or the row (Parquet, hub) from 1; None concerns the whole file."""

    where: str
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return printable(": ".join(part for part in (place, shortened(self.field), self.message) if part))


class DataFaults(ValueError):
    """Records that cannot be used. The message lists the first 20 faults and counts the rest; ``faults`` has all."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        lines = [str(fault) for fault in self.faults[:LISTED]]
        if len(self.faults) > LISTED:
            lines.append(f"and {len(self.faults) - LISTED} more")
        super().__init__("\n".join(lines))


def shortened(text: str, longest: int = 80) -> str:
    """A text, or its beginning."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def printable(text: str) -> str:
    """Text that any terminal takes: control characters and lone surrogates are written as escapes."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def kind(value: object) -> str:
    """A value's kind in the words of JSON."""
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    if isinstance(value, int | float):
        return f"the number {short_repr(value)}"
    return KINDS.get(type(value).__name__, f"a {type(value).__name__}")


def nested_model(annotation: object) -> type[BaseModel] | None:
    """The record type inside an annotation such as ``tuple[Product, ...]``, if there is one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := nested_model(part))), None)


def field_path(location: Sequence[int | str]) -> str:
    """pydantic's location as people write it: ("script", 2, "step") is ``script[3].step``."""
    path = ""
    for part in location:
        path += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def explain(error: ErrorDetails, model: type[BaseModel]) -> tuple[str, str]:
    """A pydantic error of ``model`` as (field, what is wrong; what to do)."""
    return field_path(error["loc"]), f"{_what(error)}{_advice(error, model)}"


def _what(error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return "missing"
    if error["type"] in ("empty_text", "too_short"):
        return "empty"
    if error["type"] in EXPECTED:
        return f"{kind(error['input'])} where {EXPECTED[error['type']]} belongs"
    return error["msg"].removesuffix("; give the text")


def _advice(error: ErrorDetails, model: type[BaseModel]) -> str:
    wrong, value = error["type"], error["input"]
    if wrong not in EXPECTED and wrong not in ("missing", "empty_text", "no_text", "too_short"):
        return ""  # the validators of recipes.base say themselves what to do
    if wrong == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return f'; write "{short_repr(value)}" if this is the text'
    field, within, is_entry = _locate(error["loc"], model)
    need = [name for name, info in within.model_fields.items() if info.is_required()] if within else []
    if wrong == "tuple_type" and isinstance(value, str):
        entry = ", ".join(f'"{name}": "..."' for name in need)
        return f"; write [{{{entry}}}]" if need else '; write ["..."]'
    if is_entry:
        return f"; give {'an object with ' + ', '.join(need) if need else 'its text'}, or take the entry out"
    leave = "" if field is None or field.is_required() else ", or leave the field out"
    return f"; give {field.description if field else 'it'}{leave}"


Place = tuple[FieldInfo | None, type[BaseModel] | None, bool]


def _locate(location: Sequence[int | str], model: type[BaseModel]) -> Place:
    """The field that a location ends in, the record type inside it, and whether it points at an entry of a list."""
    field: FieldInfo | None = None
    within: type[BaseModel] | None = model
    is_entry = False
    for part in location:
        is_entry = isinstance(part, int)
        if isinstance(part, str):
            field = within.model_fields.get(part) if within else None
            within = nested_model(field.annotation) if field else None
    return field, within, is_entry


def unknown_fields(value: Mapping[str, Any], model: type[BaseModel], path: str = "") -> Iterator[tuple[str, str]]:
    """(field, nearest known field) for every field of a raw record that ``model`` does not have, at any depth.

    Positions in lists are left out (``script[].prodcts``), so that the same slip reads the same everywhere.
    """
    for name, inner in value.items():
        if inner is None:  # a Parquet column that has no value here
            continue
        field = model.model_fields.get(name)
        if field is None:
            nearest = get_close_matches(shortened(name), model.model_fields, n=1, cutoff=0.0)[0]
            yield path + (name or "''"), path + nearest
            continue
        within = nested_model(field.annotation)
        if within is None:
            continue
        many = isinstance(inner, list | tuple)
        for entry in inner if many else [inner]:
            if isinstance(entry, Mapping):
                yield from unknown_fields(entry, within, f"{path}{name}{'[]' if many else ''}.")
