"""The learning curves of a run, from its metrics.jsonl: losses, validation measures, learning rate, gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from reporting.charts import Mark, Series, line_chart
from reporting.markup import Markup, count, number
from reporting.page import Column, Section, figure, grid, paragraph, table
from reporting.svg import Axis

Entries = Sequence[Mapping[str, Any]]
MOST_POINTS = 1000  # of a line; a chart is some 400 pixels wide
MEASURES = {"eval_accuracy": "accuracy", "eval_macro_f1": "macro-F1", "eval_auc": "AUC"}
EVALUATED = {"eval_loss": "Loss", "eval_accuracy": "Accuracy", "eval_macro_f1": "Macro-F1", "eval_auc": "AUC"}
EVALUATED |= {"eval_ece": "ECE", "eval_threshold": "Threshold"}
UPDATES = Axis("update")


def curves_section(entries: Entries, best: int | None) -> Section:
    """Four charts over the updates, and the figures of every evaluation.

    Args:
        entries: the lines of metrics.jsonl.
        best: the update whose checkpoint was kept, where that is known.
    """
    lead = (
        "Validation measures are taken at the best threshold of each evaluation: they are optimistic, and comparable "
        "with each other. Where validation loss rises while training loss falls, training went on for too long."
    )
    if not any("loss" in entry for entry in entries):
        return Section("curves", "Learning", paragraph("No update has been logged yet."), lead, wide=True)
    marks = [Mark(best, f"best: {count(best)}")] if best else []
    losses = [_series(entries, "loss", "training"), _series(entries, "eval_loss", "validation")]
    measures = [_series(entries, key, name) for key, name in MEASURES.items()]
    evaluated = [entry for entry in entries if "eval_loss" in entry]
    body = grid(
        figure("Loss", _chart("Loss of training and validation records", losses, marks)),
        figure(
            "Validation",
            _chart("Accuracy, macro-F1 and AUC on validation records", measures, marks),
            numbers=_evaluations(evaluated) if evaluated else None,
        ),
        figure("Learning rate", _chart("Learning rate", [_series(entries, "learning_rate", "learning rate")])),
        figure(
            "Gradients",
            _chart("Norm of the gradients", [_series(entries, "grad_norm", "norm")]),
            "Their norm before it is cut to optim.max_grad_norm.",
        ),
    )
    return Section("curves", "Learning", body, lead, wide=True)


def _chart(title: str, series: Sequence[Series], marks: Sequence[Mark] = ()) -> Markup:
    return line_chart(title, [one for one in series if one.points], UPDATES, Axis(), marks)


def _series(entries: Entries, key: str, name: str) -> Series:
    """A line through the finite values of a key, evenly thinned, the last one kept."""
    found = [(float(entry["step"]), float(entry[key])) for entry in entries if _is_figure(entry.get(key))]
    apart = math.ceil(len(found) / MOST_POINTS) or 1
    return Series(name, found[::-1][::apart][::-1])


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _evaluations(evaluated: Entries) -> Markup:
    head = [Column("Update", "number"), *(Column(name, "number") for name in EVALUATED.values())]
    rows = [[count(entry["step"]), *(number(entry.get(key)) for key in EVALUATED)] for entry in evaluated]
    return table("Every evaluation", head, rows)
