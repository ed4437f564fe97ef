"""A learning curve as a person reads it: in the terminal, and as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from reporting.charts import Series, line_chart
from reporting.markup import Content, Markup, count, number
from reporting.page import Column, Section, figure, grid, interval, page, paragraph, table
from reporting.svg import Axis

MEASURES = {"accuracy": "Accuracy", "macro_f1": "Macro-F1", "auc": "AUC"}
Curve = Mapping[str, Any]


def curve_table(curve: Curve) -> Table:
    shown = Table("records", *MEASURES.values(), "seeds", title=f"{curve['judgment']}, examined on {curve['test']}")
    for point in curve["points"]:
        cells = []
        for name in MEASURES:
            one = point["metrics"][name]
            ends = "" if one["low"] is None else f" [{one['low']:.3f}, {one['high']:.3f}]"
            cells.append(number(one["value"]) + ends)
        shown.add_row(count(point["size"]), *cells, str(len(point["seeds"])))
    return shown


def curve_page(curve: Curve) -> str:
    """The whole HTML of a learning curve."""
    points = curve["points"]
    last = points[-1]
    lead = paragraph(
        f"Judges for {curve['judgment']}, taught {count(points[0]['size'])} to {count(last['size'])} records and "
        f"examined on {curve['test']}: accuracy went from {number(points[0]['metrics']['accuracy']['value'])} to "
        f"{number(last['metrics']['accuracy']['value'])}; the majority class is right in {number(last['majority'])}."
    )
    how = (
        "Means over seeds with 95 % intervals: groups of test records and seeds are both drawn again. Every smaller "
        "set of training records is part of the larger ones of its seed."
    )
    body = grid(
        figure("Accuracy", _accuracy(curve), "The dashed line is the majority class."),
        figure("Macro-F1 and AUC", _others(curve)),
    )
    return page(
        "EcomScriptBench · learning curve",
        curve["judgment"],
        lead,
        [Section("curve", "Curve", body, how, wide=True), Section("figures", "Figures", _figures(curve))],
        "Written by ecomjudge from the predictions of every run.",
    )


def _accuracy(curve: Curve) -> Markup:
    sizes = [point["size"] for point in curve["points"]]
    majority = Series(
        "majority", [(size, point["majority"]) for size, point in zip(sizes, curve["points"], strict=True)]
    )
    return line_chart("Accuracy against training records", [_series(curve, "accuracy"), majority], _across(), Axis())


def _others(curve: Curve) -> Markup:
    series = [_series(curve, name) for name in ("macro_f1", "auc")]
    return line_chart("Macro-F1 and AUC against training records", series, _across(), Axis())


def _across() -> Axis:
    return Axis("training records", log=True)


def _series(curve: Curve, name: str) -> Series:
    found = [(point["size"], point["metrics"][name]) for point in curve["points"]]
    points = [(size, one["value"]) for size, one in found if one["value"] is not None]
    band = [(one["low"], one["high"]) for _, one in found if one["low"] is not None]
    return Series(MEASURES[name], points, band if len(band) == len(points) else None)


def _figures(curve: Curve) -> Markup:
    head = [Column("Records", "number"), *(Column(name, "number") for name in MEASURES.values())]
    head.append(Column("Accuracy of each seed", "number"))
    rows: list[list[Content]] = []
    for point in curve["points"]:
        measures = [interval(point["metrics"][name]) for name in MEASURES]
        rows.append([count(point["size"]), *measures, ", ".join(map(number, point["seeds"]))])
    return table("By training records", head, rows)
