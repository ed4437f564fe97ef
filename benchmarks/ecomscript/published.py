"""Accuracies that the paper prints (arXiv 2505.15196), in percent: facts to stand beside, and not to be compared with.

The benchmark's items are not published, so that whatever is examined here are others. Where two secondary sources give
different figures for a row, the note says so.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class PublishedAccuracy:
    """One model in one setting, on one judgment."""

    setting: str
    model: str
    accuracy: float
    note: str


def published_accuracies(judgment: str) -> list[PublishedAccuracy]:
    """All that are known for a judgment, in the order of the table."""
    text = (files("benchmarks.ecomscript") / "published" / "accuracy.csv").read_text(encoding="utf-8")
    return [
        PublishedAccuracy(row["setting"], row["model"], float(row[judgment]), row["note"])
        for row in csv.DictReader(text.splitlines())
    ]
