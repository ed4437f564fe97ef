"""report.html of an evaluation: how well, how sure, where not, and every record with its text.

Made of results.json and predictions.jsonl as they lie in the folder, and of the records' own texts where they are at
hand: what is shown is what was written, never what a process remembers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.ecomscript.facts import facts_section
from benchmarks.ecomscript.published_section import published_section
from benchmarks.results import REPORT, Predictions, read_results, write_text
from recipes.base import Record
from recipes.reading import counted, fingerprint
from reporting.markup import Content, count, joined, number
from reporting.page import Column, Section, interval, page, table, tiles, whisker
from reporting.summary import MEASURES, answered_right, measure_tiles
from reporting.verdicts import Lines, judged_sections


def write_report(folder: Path, records: Sequence[Record]) -> None:
    """Write ``report.html`` of the finished evaluation in ``folder``.

    Args:
        records: those that were examined, for their texts. Raises ValueError where they are others.
    """
    results = read_results(folder)
    if fingerprint(records) != results["data"]["fingerprint"]:
        raise ValueError(f"{folder} was made on other records than these; give those of {results['data']['reference']}")
    write_text(folder / REPORT, report(results, Predictions(folder).read(), {one.id: one for one in records}))


def report(results: Mapping[str, Any], lines: Lines, records: Mapping[str, Record]) -> str:
    """The page. Predictions whose record is not among ``records`` (by id) are shown by their id alone."""
    return page(
        f"EcomScriptBench · {results['judgment']}",
        results["subject"]["name"],
        joined([answered_right(results), tiles(measure_tiles(results))]),
        [
            _measures(results),
            *judged_sections(results, lines, records),
            published_section(results),
            facts_section(results),
        ],
        f"Written by ecomjudge {results['versions'].get('ecomjudge', '')} from results.json and predictions.jsonl.",
    )


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
