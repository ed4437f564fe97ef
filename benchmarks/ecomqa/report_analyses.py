"""The sections of a report that a run may have beside its grades: calibration, retrieval, thinking, comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.ecomqa.pictures import behaviour_bars, confidence_bins, confidence_chart, task_label
from benchmarks.ecomqa.published import published_thinking
from benchmarks.ecomqa.shown import shown
from benchmarks.ecomqa.thinking import BEHAVIOURS, SHORT
from reporting.markup import Content, Markup, count, joined, number, tag
from reporting.page import Column, Section, figure, grid, interval, paragraph, table
from reporting.records import Field, short_list

Results = Mapping[str, Any]
Lines = Sequence[Mapping[str, Any]]
EXAMPLES = 2  # of each thinking behaviour


def analyses(results: Results, plain: Lines, behaviours: Lines) -> Iterator[Section]:
    """The sections that the results have something for."""
    if found := results.get("confidence"):
        yield _calibration(found["calibration"])
    if found := results.get("rag"):
        yield _retrieval(found)
    if found := results.get("thinking"):
        yield _thinking(results["subject"]["name"], found, plain, behaviours)
    if found := results.get("comparison"):
        yield _comparison(results["subject"]["name"], found)


def _calibration(calibration: Mapping[str, Results]) -> Section:
    figures = []
    for name in ("all", *(task for task in calibration if task != "all")):
        own = calibration[name]
        title = "All together" if name == "all" else task_label(name)
        if name == "all" and len(calibration) < 3:  # one sub-concept: all is the same
            continue
        if not own["n"]:
            figures.append(figure(title, paragraph(f"None of {count(own['unread'])} answers states a confidence.")))
            continue
        caption = (
            f"Expected calibration error {number(own['ece'], 1)} points. {count(own['n'])} answers state a confidence, "
            f"on average {number(own['confidence'], 1)}; {number(own['accuracy'], 1)} % of them are right. "
            f"{count(own['unread'])} state none."
        )
        figures.append(figure(title, confidence_chart(own), caption, _bin_table(own)))
    lead = (
        "The questions were asked again, with a request to state a confidence from 0 to 100. On the diagonal, an "
        "answer is right as often as it is sure. Vertical lines are 95 % Wilson intervals."
    )
    return Section("calibration", "Calibration", grid(*figures), lead)


def _bin_table(calibration: Results) -> Markup:
    head = [Column("Confidence"), *(Column(name, "number") for name in ("Answers", "Mean", "Right, %"))]
    rows: list[list[Content]] = []
    for one in confidence_bins(calibration):
        right = {"value": one.share, "low": one.share_low, "high": one.share_high}
        percent = {name: None if end is None else 100 * end for name, end in right.items()}
        mean = None if one.mean is None else 100 * one.mean
        rows.append(
            [f"{100 * one.low:g} to {100 * one.high:g}", count(one.count), number(mean, 1), interval(percent, 1)]
        )
    return table("Bins of stated confidence", head, rows)


def _retrieval(found: Results) -> Section:
    head = ["Plain, %", "With passages, %", "Gain, points", "Gain, % of plain"]
    rows: list[list[Content]] = [
        [
            "Unweighted mean" if name == "average" else task_label(name),
            number(own["plain"], 1),
            number(own["rag"], 1),
            f"{own['absolute']:+.1f}",
            "–" if own["relative"] is None else f"{own['relative']:+.1f}",
        ]
        for name, own in found["gain"].items()
    ]
    settings = found["settings"]
    lead = (
        f"The same questions, asked again behind at most {settings['passages']} passages of {settings['corpus']}, "
        f"found by {settings['method']}. What was shown with each question stands in its entry below."
    )
    columns = [Column("Sub-concept"), *(Column(name, "number") for name in head)]
    return Section("retrieval", "With retrieved passages", table("Plain and with passages", columns, rows, True), lead)


def _thinking(name: str, found: Results, plain: Lines, behaviours: Lines) -> Section:
    title = "Thinking behaviour"
    kinds = "; ".join(f"{letter}: {what}" for letter, what in BEHAVIOURS.items())
    lead = f"Reasoning traces, sorted by the vote of the judges. {kinds}."
    if "message" in found:
        return Section("thinking", title, paragraph(found["message"]), lead)
    models = {name: found["shares"], **published_thinking()}
    rows: list[list[Content]] = [
        [model, *(number(shares[behaviour], 1) for behaviour in BEHAVIOURS)] for model, shares in models.items()
    ]
    caption = (
        f"{count(found['traces'])} of {count(found['answers'])} answers hold a trace; the judges agreed on "
        f"{count(found['decided'])}; {count(found['unread'])} votes could not be read."
    )
    drawn = figure("Shares", behaviour_bars(found["shares"]), caption)
    head = [Column("Model"), *(Column(what, "number") for what in SHORT.values())]
    shares = table("In percent of the sorted traces, beside the published models", head, rows)
    return Section("thinking", title, joined([drawn, shares, _traces(plain, behaviours)]), lead)


def _traces(plain: Lines, behaviours: Lines) -> Markup:
    """Some traces of each behaviour."""
    by_id = {line["id"]: line for line in plain}
    parts = []
    for letter, what in BEHAVIOURS.items():
        own = [by_id[line["id"]] for line in behaviours if line["behaviour"] == letter and line["id"] in by_id]
        if own:
            told = [Field("task", "Sub-concept"), Field("grade", "Grade")]
            listed = short_list(told, [shown(line) for line in own[:EXAMPLES]])
            parts.append(tag("div", tag("h3", f"{letter}: {what}"), listed))
    return grid(*parts)


def _comparison(name: str, found: Results) -> Section:
    difference = found["difference"]
    rows: list[list[Content]] = [
        [
            f"{name} less {found['with']}",
            count(found["n"]),
            interval(difference, 1),
            count(found["first_only"]),
            count(found["second_only"]),
            number(found["p"]),
        ]
    ]
    numbers = ("Questions", "Difference of means, points", "Right here only", "Right there only", "p (McNemar)")
    columns = [Column("Runs"), *(Column(one, "number") for one in numbers)]
    lead = (
        "The same questions in both runs. In brackets the 95 % interval of a paired bootstrap; p is McNemar's exact "
        "test: how often equally good runs would differ in so uneven a way."
    )
    return Section("comparison", "Beside another run", table("Paired comparison", columns, rows, True), lead)
