"""The paper's accuracies beside ours, as a part of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.ecomscript.published import published_accuracies
from reporting.markup import Content, number, tag
from reporting.page import Column, Section, interval, table

DIGITS = 2


def published_section(results: Mapping[str, Any]) -> Section:
    """What is examined, its baselines, and all published rows of the judgment, in percent."""
    ours = [
        (f"this evaluation, {results['subject']['method']}", results["subject"]["name"], results["metrics"]),
        ("this evaluation, baseline", "Majority", results["baselines"]["majority"]["metrics"]),
        ("this evaluation, baseline", "Random", results["baselines"]["random"]["metrics"]),
    ]
    rows: list[list[Content]] = [
        [tag("strong", setting), name, interval(_percent(metrics["accuracy"]), DIGITS), ""]
        for setting, name, metrics in ours
    ]
    rows += [
        [row.setting, row.model, number(row.accuracy, DIGITS), "; ".join(filter(None, ["not comparable", row.note]))]
        for row in published_accuracies(results["judgment"])
    ]
    head = [Column("Setting"), Column("Model"), Column("Accuracy, %", "number"), Column("")]
    lead = (
        "The paper's figures (arXiv 2505.15196, from secondary notes) are of 5,000 annotated items that are not "
        f"published; {results['data']['reference']} holds other items. They show the range that was met there, and say "
        "nothing of who is better."
    )
    return Section("published", "Published accuracies", table("Accuracy here and in the paper", head, rows), lead)


def _percent(measure: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None if measure[key] is None else 100 * measure[key] for key in ("value", "low", "high")}
