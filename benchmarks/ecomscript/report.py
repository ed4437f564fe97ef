"""report.html of an evaluation: how well, how sure, where not, and every record with its text.

Made of results.json and predictions.jsonl as they lie in the folder, and of the records' own texts where they are at
hand: what is shown is what was written, never what a process remembers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.ecomscript.facts import facts_section
from benchmarks.ecomscript.published_section import published_section
from benchmarks.results import REPORT, RESULTS, Predictions, write_text
from recipes.base import Record
from recipes.judgments import get_judgment
from recipes.reading import counted, fingerprint
from reporting.classifier import (
    Bin,
    confusion_matrix,
    reliability_bins,
    reliability_chart,
    threshold_chart,
    threshold_curve,
)
from reporting.markup import Content, Markup, count, joined, number, percent, tag
from reporting.page import (
    Column,
    Section,
    Tile,
    figure,
    grid,
    interval,
    page,
    paragraph,
    table,
    tiles,
    whisker,
)
from reporting.predictions import OUTCOMES, UNREAD, extremes, fields_of, meta_of, shown_as
from reporting.records import filter_link, record_list
from reporting.slices import Slice, Slicing, measure_slices, slicings

Lines = Sequence[Mapping[str, Any]]
MEASURES = {"accuracy": "Accuracy", "macro_f1": "Macro-F1", "auc": "AUC"}
SLICE_COLUMNS = (
    Column("Records", "number"),
    Column("Yes", "number"),
    Column("Accuracy", "number"),
    Column("0 to 1", "graphic"),
    Column("Mean p(yes)", "number"),
    Column("Wrong", "number"),
)
ERROR = " Error is the distance of p(yes) from the label: near 1 is confidently wrong."
LIST = "list"  # the anchor of the list of predictions


def write_report(folder: Path, records: Sequence[Record]) -> None:
    """Write ``report.html`` of the finished evaluation in ``folder``.

    Args:
        records: those that were examined, for their texts. Raises ValueError where they are others.
    """
    results = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    if fingerprint(records) != results["data"]["fingerprint"]:
        raise ValueError(f"{folder} was made on other records than these; give those of {results['data']['reference']}")
    write_text(folder / REPORT, report(results, Predictions(folder).read(), {one.id: one for one in records}))


def report(results: Mapping[str, Any], lines: Lines, records: Mapping[str, Record]) -> str:
    """The page. Predictions whose record is not among ``records`` (by id) are shown by their id alone."""
    own = [records.get(line["id"]) for line in lines]
    groupings = slicings(lines, [meta_of(*pair) for pair in zip(lines, own, strict=True)])
    judgment, probable = results["judgment"], results["calibration"] is not None
    shown = [shown_as(judgment, *pair, groupings, place) for place, pair in enumerate(zip(lines, own, strict=True))]
    return page(
        f"EcomScriptBench · {judgment}",
        results["subject"]["name"],
        joined([_lead(results), tiles(_tiles(results))]),
        [
            _measures(results),
            _slices(results, lines, groupings),
            *([_probabilities(results, lines)] if probable else []),
            _verdicts(lines),
            *([extremes(results, lines, shown)] if probable else []),
            Section(
                "predictions",
                "All predictions",
                record_list(LIST, fields_of(groupings, probable), shown, "-error" if probable else ""),
                "Search reads the records' texts; every word must occur." + (ERROR if probable else ""),
                wide=True,
            ),
            published_section(results),
            facts_section(results),
        ],
        f"Written by ecomjudge {results['versions'].get('ecomjudge', '')} from results.json and predictions.jsonl.",
    )


def _lead(results: Mapping[str, Any]) -> Markup:
    accuracy, baseline = results["metrics"]["accuracy"], results["baselines"]["majority"]
    constant = baseline["metrics"]["accuracy"]["value"]
    asked = get_judgment(results["judgment"]).question.split("?")[0]
    found = paragraph(
        f"{asked}? On {count(results['n'])} records in {counted(results['groups'], 'group')} of "
        f"{results['data']['reference']}, {percent(results['yes'] / results['n'])} of them yes, it answered right in ",
        tag("strong", percent(accuracy["value"])),
        f"; always answering {'yes' if baseline['class'] else 'no'} would be right in {percent(constant)}.",
    )
    if accuracy["low"] is None:
        return found
    if accuracy["low"] > constant:
        compared = "The whole 95 % interval of its accuracy lies above that."
    elif accuracy["high"] < constant:
        compared = "The whole 95 % interval of its accuracy lies below that."
    else:
        compared = "The 95 % interval of its accuracy includes that: these records do not tell the two apart."
    return joined([found, paragraph(compared)])


def _tiles(results: Mapping[str, Any]) -> list[Tile]:
    majority = results["baselines"]["majority"]["metrics"]
    shown = []
    for key, name in MEASURES.items():
        measure = results["metrics"][key]
        below = joined([_ends(measure), tag("br"), f"majority {number(majority[key]['value'])}"])
        shown.append(Tile(name, number(measure["value"]), below))
    if results["calibration"] is None:
        unread = sum(results["answers"][name] for name in UNREAD)
        below = joined(["said neither yes nor no;", tag("br"), "scored as wrong"])
        return [*shown, Tile("Not read", percent(unread / results["n"]), below)]
    ece = results["calibration"]["ece"]
    below = joined(["0 would be perfect", tag("br"), f"{results['calibration']['bins']} bins of equal width"])
    return [*shown, Tile("Calibration error", number(ece), below)]


def _ends(measure: Mapping[str, Any]) -> str:
    return "no interval" if measure["low"] is None else f"95 %: {number(measure['low'])} to {number(measure['high'])}"


def _measures(results: Mapping[str, Any]) -> Section:
    metrics, baselines, drawn = results["metrics"], results["baselines"], results["bootstrap"]
    majority, coin = (baselines[name]["metrics"] for name in ("majority", "random"))
    rows: list[list[Content]] = [
        [
            name,
            interval(metrics[key]),
            whisker(metrics[key], 0, 1, majority[key]["value"]),
            number(majority[key]["value"]),
            interval(coin[key]),
        ]
        for key, name in MEASURES.items()
    ]
    head = [
        Column("Measure"),
        Column("Value", "number"),
        Column("0 to 1", "graphic"),
        Column(f"Always {'yes' if baselines['majority']['class'] else 'no'}", "number"),
        Column("A coin", "number"),
    ]
    lead = (
        f"In brackets, 95 % intervals: percentiles of {count(drawn['resamples'])} bootstrap resamples of the "
        f"{counted(results['groups'], 'group')}. The dashed line is the majority class, counted on "
        f"{baselines['majority']['class_from']}; the coin was thrown once."
    )
    return Section("measures", "Measures", table("Beside what is to be beaten", head, rows), lead)


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


def _probabilities(results: Mapping[str, Any], lines: Lines) -> Section:
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
        f"Yes is said from p(yes) = {chosen['value']:.4f} on ({chosen['from']}). A better one in this picture is no "
        "better choice: it would be chosen on the records that are reported.",
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
