"""Figures that the paper prints (arXiv 2502.20196), in percent: to compare with, and to check our sums by."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Literal

Scores = dict[str, dict[str, float]]


def published_accuracy() -> Scores:
    """Model -> {"average", sub-concept code: accuracy} of the 27 models of the main table."""
    return {row["model"]: _numbers(row, {"model", "weights"}) for row in _rows("accuracy")}


def published_rag() -> dict[str, Scores]:
    """Model -> {"plain", "rag": {"BC", "CC", "average": accuracy}}."""
    found: dict[str, Scores] = {}
    for row in _rows("rag"):
        found.setdefault(row["model"], {})[row["setting"]] = _numbers(row, {"model", "setting"})
    return found


def published_thinking() -> Scores:
    """Model -> {"A" to "D": share of its reasoning traces} (see benchmarks.ecomqa.thinking)."""
    return {row["model"]: _numbers(row, {"model"}) for row in _rows("thinking")}


def _rows(table: Literal["accuracy", "rag", "thinking"]) -> list[dict[str, str]]:
    text = (files("benchmarks.ecomqa") / "published" / f"{table}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _numbers(row: dict[str, str], names: set[str]) -> dict[str, float]:
    return {column: float(value) for column, value in row.items() if column not in names}
