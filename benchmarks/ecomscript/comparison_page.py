"""A comparison of two runs as a person reads it: in the terminal, as JSON, and as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks.ecomscript.comparing import Compared, Comparison, right
from benchmarks.ecomscript.finished import Prediction
from benchmarks.paired import Difference
from recipes.reading import counted
from reporting.markup import Content, Markup, count, joined, number, tag
from reporting.page import Column, Section, facts, interval, page, paragraph, table, whisker
from reporting.predictions import shown_as
from reporting.records import Field, Shown, filter_link, record_list
from reporting.slices import Slicing

MEASURES = {"accuracy": "Accuracy", "macro_f1": "Macro-F1", "auc": "AUC"}
LIST = "list"  # the anchor of the list of records


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The figures of a comparison; no path and no record's text among them."""
    first, second = comparison.first, comparison.second
    return {
        "benchmark": "ecomscript",
        "judgment": first.results["judgment"],
        "data": first.results["data"],
        "first": {"name": first.name, "subject": first.results["subject"]},
        "second": {"name": second.name, "subject": second.results["subject"]},
        "left_out": comparison.left_out,
        "whole": asdict(comparison.whole),
        "slices": {name: [asdict(one) for one in rows] for name, rows in comparison.slices.items()},
        "differing": [name for name, one, other in comparison.pairs if right(one) != right(other)],
    }


def as_table(comparison: Comparison) -> Table:
    """What a terminal shows: the measures, and the slices in which the two differ most."""
    whole, names = comparison.whole, (comparison.first.name, comparison.second.name)
    shown = Table("", *names, "difference", "detectable", title=f"{count(whole.count)} records", caption=mcnemar(whole))
    for key, one in whole.measures.items():
        shown.add_row(MEASURES[key], number(one.first), number(one.second), _signed(one), number(one.detectable))
    for slicing in comparison.groupings:
        shown.add_section()
        for row in comparison.slices[slicing.key]:
            one = row.measures["accuracy"]
            told = f"{slicing.name}: {row.value} ({count(row.count)})"
            shown.add_row(told, number(one.first), number(one.second), _signed(one), number(one.detectable))
    return shown


def mcnemar(whole: Compared) -> str:
    only = whole.only
    return f"Right alone: {count(only.first_only)} and {count(only.second_only)}; McNemar's exact p {only.p:.2g}"


def _signed(one: Difference) -> str:
    found = one.difference
    if found.value is None:
        return "–"
    ends = "" if found.low is None else f" [{found.low:+.3f}, {found.high:+.3f}]"
    return f"{found.value:+.3f}{ends}"


def as_page(comparison: Comparison) -> str:
    """The whole HTML of a comparison."""
    first, second = comparison.first, comparison.second
    return page(
        f"EcomScriptBench · {first.results['judgment']} · comparison",
        f"{second.name} beside {first.name}",
        _lead(comparison),
        [_measures(comparison), _slices(comparison), _differing(comparison), _facts(comparison)],
        "Written by ecomjudge from results.json and predictions.jsonl of both runs.",
    )


def _lead(comparison: Comparison) -> Markup:
    whole, only = comparison.whole, comparison.whole.only
    accuracy = whole.measures["accuracy"]
    found = accuracy.difference
    told = paragraph(
        f"On the same {count(whole.count)} records, {comparison.second.name} was right in {number(accuracy.second)} "
        f"and {comparison.first.name} in {number(accuracy.first)} of them: ",
        tag("strong", _signed(accuracy)),
        f". {count(only.second_only)} only the former got right, {count(only.first_only)} only the latter.",
    )
    if found.low is None or found.high is None:
        return told
    if found.low <= 0 <= found.high:
        said = "The 95 % interval of the difference includes 0: these records do not tell the two apart."
        said += f" So many would mostly have shown a difference of {number(accuracy.detectable)}."
    else:
        said = f"The whole 95 % interval of the difference lies {'above' if found.low > 0 else 'below'} 0."
    return joined([told, paragraph(said)])


def _columns(comparison: Comparison) -> list[Column]:
    names = (comparison.first.name, comparison.second.name, "Difference")
    return [*(Column(name, "number") for name in names), Column("−0.3 to 0.3", "graphic")]


def _cells(one: Difference) -> list[Content]:
    found = asdict(one.difference)
    near = {key: None if value is None else min(max(value, -0.3), 0.3) for key, value in found.items()}
    return [number(one.first), number(one.second), interval(found), whisker(near, -0.3, 0.3, 0.0)]


def _measures(comparison: Comparison) -> Section:
    rows = [[MEASURES[key], *_cells(one), number(one.detectable)] for key, one in comparison.whole.measures.items()]
    head = [Column("Measure"), *_columns(comparison), Column("Detectable", "number")]
    groups = len({line["group"] for _, line, _ in comparison.pairs})
    lead = (
        f"Differences are the second's less the first's. In brackets, 95 % intervals: both are measured on the same "
        f"draws of the {counted(groups, 'group')}. Detectable is the smallest difference that four in five such "
        f"comparisons find. {mcnemar(comparison.whole)}, which takes records as independent."
    )
    return Section("measures", "Measures", table("On all records", head, rows), lead)


def _slices(comparison: Comparison) -> Section:
    tables = []
    for slicing in comparison.groupings:
        columns = [Column(slicing.name), Column("Records", "number"), *_columns(comparison)]
        columns += [Column(name, "number") for name in ("First only", "Second only", "p (Holm)")]
        rows = [_slice_row(slicing, row) for row in comparison.slices[slicing.key]]
        tables.append(table(f"By {slicing.name.lower()}", columns, rows, True))
    lead = (
        "Accuracy in slices. p is McNemar's, raised for as many slices as are asked at once (Holm). Lengths are in the "
        "first run's tokens. A count leads to its records."
    )
    return Section("slices", "Where they differ", joined(tables) or "Nothing to group the records by.", lead, wide=True)


def _slice_row(slicing: Slicing, row: Compared) -> list[Content]:
    only = []
    for outcome, found in (("first only", row.only.first_only), ("second only", row.only.second_only)):
        link = filter_link(LIST, **{slicing.key: row.value, "right": outcome})
        only.append(tag("a", count(found), href=link) if found else "0")
    return [row.value, count(row.count), *_cells(row.measures["accuracy"]), *only, f"{row.adjusted:.2g}"]


def _differing(comparison: Comparison) -> Section:
    shown = [
        _shown(comparison, place)
        for place, (_, one, other) in enumerate(comparison.pairs)
        if right(one) != right(other)
    ]
    fields = [
        Field("right", "Right", "choice", tones={"first only": "bad", "second only": "good"}),
        *(Field(one.key, one.name, "choice", column=one.key == "meta.kind") for one in comparison.groupings),
        Field("label", "Label", "choice"),
        Field("first", "First p(yes)", "share"),
        Field("second", "Second p(yes)", "share"),
    ]
    lead = "The records that only one of them got right. Search reads the records' texts; every word must occur."
    body = record_list(LIST, fields, shown) if shown else "They were right and wrong on the same records."
    return Section("differing", "Records on which they differ", body, lead, wide=True)


def _shown(comparison: Comparison, place: int) -> Shown:
    name, one, other = comparison.pairs[place]
    values: dict[str, Any] = {
        "right": "first only" if right(one) else "second only",
        **{slicing.key: slicing.values[place] for slicing in comparison.groupings},
        "label": "yes" if one["label"] else "no",
        "first": _rounded(one),
        "second": _rounded(other),
    }
    told = shown_as(comparison.first.results["judgment"], one, comparison.records.get(name), (), place)
    return Shown(told.title, values, told.body)


def _rounded(line: Prediction) -> float | None:
    return None if line.get("p_yes") is None else round(line["p_yes"], 6)


def _facts(comparison: Comparison) -> Section:
    data = comparison.first.results["data"]
    pairs: list[tuple[str, Content]] = [
        ("Data", f"{data['reference']}, fingerprint {data['fingerprint'][:16]}"),
        ("Records", f"{count(comparison.whole.count)}; {count(comparison.left_out)} were judged by one run only"),
        *(
            (which, _subject(run.results))
            for which, run in (("First", comparison.first), ("Second", comparison.second))
        ),
    ]
    return Section("facts", "What was compared", facts(pairs))


def _subject(results: Mapping[str, Any]) -> str:
    subject, threshold = results["subject"], results.get("threshold") or {}
    at = f", threshold {threshold['value']:.4f} ({threshold['from']})" if threshold.get("value") is not None else ""
    return f"{subject['name']} ({subject['method']}){at}"
