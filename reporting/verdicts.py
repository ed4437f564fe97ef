"""Sections that every report of a yes/no judge has: where it errs, its probabilities, its verdicts, all its answers.

``results`` are as results.json has them (metrics, calibration, bootstrap, threshold, temperature), lines as
predictions.jsonl has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from recipes.base import Record
from reporting.classifier import (
    Bin,
    confusion_matrix,
    reliability_bins,
    reliability_chart,
    threshold_chart,
    threshold_curve,
)
from reporting.markup import Content, Markup, count, joined, number, percent, tag
from reporting.page import Column, Section, figure, grid, interval, table, whisker
from reporting.predictions import OUTCOMES, extremes, fields_of, meta_of, shown_as
from reporting.records import Shown, filter_link, record_list
from reporting.slices import Slice, Slicing, measure_slices, slicings

Lines = Sequence[Mapping[str, Any]]
LIST = "list"  # the anchor of the list of predictions
ERROR = " Error is the distance of p(yes) from the label: near 1 is confidently wrong."
CAUTION = "A better one in this picture is no better choice: it would be chosen on the records that are reported."
SLICE_COLUMNS = (
    Column("Records", "number"),
    Column("Yes", "number"),
    Column("Accuracy", "number"),
    Column("0 to 1", "graphic"),
    Column("Mean p(yes)", "number"),
    Column("Wrong", "number"),
)


def judged_sections(
    results: Mapping[str, Any], lines: Lines, records: Mapping[str, Record], caution: str = CAUTION
) -> list[Section]:
    """All of them; without probabilities, those that need none.

    Args:
        records: by id, for their texts; predictions of others are shown by their id alone.
        caution: what to know of the threshold.
    """
    own = [records.get(line["id"]) for line in lines]
    groupings = slicings(lines, [meta_of(*pair) for pair in zip(lines, own, strict=True)])
    judgment, probable = results["judgment"], results["calibration"] is not None
    shown = [shown_as(judgment, *pair, groupings, place) for place, pair in enumerate(zip(lines, own, strict=True))]
    return [
        _slices(results, lines, groupings),
        *([_probabilities(results, lines, caution)] if probable else []),
        _verdicts(lines),
        *([extremes(results, lines, shown)] if probable else []),
        _predictions(shown, groupings, probable),
    ]


def _slices(results: Mapping[str, Any], lines: Lines, groupings: Sequence[Slicing]) -> Section:
    drawn, overall = results["bootstrap"], results["metrics"]["accuracy"]["value"]
    tables = []
    for slicing in groupings:
        measured = measure_slices(lines, slicing, drawn["resamples"], drawn["seed"])
        rows = [_slice_row(slicing, one, overall) for one in measured]
        tables.append(table(f"By {slicing.name.lower()}", [Column(slicing.name), *SLICE_COLUMNS], rows, True))
    lead = "The dashed line is the accuracy on all records. A number of wrong ones leads to their texts."
    return Section("slices", "Where it errs", joined(tables) or "The records have nothing to be grouped by.", lead)


def _slice_row(slicing: Slicing, one: Slice, overall: float) -> list[Content]:
    accuracy = asdict(one.accuracy)
    link = filter_link(LIST, **{slicing.key: one.value, "right": "wrong"})
    return [
        one.value,
        count(one.count),
        percent(one.yes / one.count, 0),
        interval(accuracy),
        whisker(accuracy, 0, 1, overall),
        number(one.mean),
        tag("a", count(one.wrong), href=link) if one.wrong else "0",
    ]


def _probabilities(results: Mapping[str, Any], lines: Lines, caution: str) -> Section:
    labels, p = [line["label"] for line in lines], [line["p_yes"] for line in lines]
    calibration, chosen = results["calibration"], results["threshold"]
    bins = reliability_bins(labels, p, calibration["bins"])
    reliable = figure(
        "Reliability",
        reliability_chart("Share of yes against mean p(yes), in bins", bins),
        f"Expected calibration error {number(calibration['ece'])} with bins of equal width, "
        f"{number(calibration['ece_equal_mass'])} with bins of equal counts. Vertical lines are 95 % Wilson intervals "
        "that take records as independent.",
        _bin_table(bins),
    )
    threshold = figure(
        "Threshold",
        threshold_chart("Accuracy and macro-F1 against the threshold", threshold_curve(labels, p), chosen["value"]),
        f"Yes is said from p(yes) = {chosen['value']:.4f} on ({chosen['from']}). {caution}",
    )
    lead = "Whether a probability of 0.8 is right eight times in ten, and what another threshold would have said."
    return Section("probabilities", "Probabilities", grid(reliable, threshold), lead)


def _bin_table(bins: Sequence[Bin]) -> Markup:
    head = [Column("p(yes)"), *(Column(name, "number") for name in ("Records", "Mean", "Share of yes"))]
    rows = [[f"{one.low:g} to {one.high:g}", count(one.count), number(one.mean), _share(one)] for one in bins]
    return table("Bins of p(yes)", head, rows)


def _share(one: Bin) -> Markup:
    return interval({"value": one.share, "low": one.share_low, "high": one.share_high})


def _verdicts(lines: Lines) -> Section:
    counts, unread = [[0, 0], [0, 0]], 0
    for line in lines:
        if line.get("unread"):
            unread += 1
        else:
            counts[line["label"]][line["verdict"]] += 1
    links = {place: filter_link(LIST, outcome=name) for place, name in OUTCOMES.items()}
    matrix = confusion_matrix("Records, and their share of the row", ("no", "yes"), counts, links)
    rows: list[list[Content]] = []
    for label, name in ((1, "Yes"), (0, "No")):
        right, said, so = counts[label][label], counts[0][label] + counts[1][label], sum(counts[label])
        rates = (right / said if said else None, right / so if so else None, 2 * right / max(said + so, 1))
        rows.append([name, *map(number, rates)])
    head = [Column("Answer"), *(Column(name, "number") for name in ("Precision", "Recall", "F1"))]
    lead = "What was said of what is so. Each count leads to its records."
    if unread:
        lead += (
            f" {count(unread)} answers said neither yes nor no: they stand in no cell, and count as wrong elsewhere."
        )
    return Section("verdicts", "Verdicts", grid(matrix, table("Of each answer", head, rows)), lead)


def _predictions(shown: Sequence[Shown], groupings: Sequence[Slicing], probable: bool) -> Section:
    return Section(
        "predictions",
        "All predictions",
        record_list(LIST, fields_of(groupings, probable), shown, "-error" if probable else ""),
        "Search reads the records' texts; every word must occur." + (ERROR if probable else ""),
        wide=True,
    )
