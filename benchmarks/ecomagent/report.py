"""report.html of an evaluation: the tables, why episodes fail, and every episode turn by turn.

Made of results.json and the graded predictions as they lie in the folder: what is shown is what was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.ecomagent.evaluations import EVALUATED, published
from benchmarks.ecomagent.shown import FAULTS, episodes, fields_of
from benchmarks.results import REPORT, read_results, write_text
from reporting.charts import Bar, bar_chart
from reporting.markup import Content, Markup, count, joined, number, percent, tag
from reporting.page import (
    Column,
    Section,
    Tile,
    facts,
    figure,
    grid,
    interval,
    page,
    paragraph,
    stack,
    table,
    tiles,
    whisker,
)
from reporting.records import filter_link, record_list
from reporting.svg import Axis

Results = Mapping[str, Any]
LIST = "list"  # the anchor of the list of episodes


def write_report(folder: Path) -> None:
    """Write the report of the finished evaluation in ``folder``. Raises FileNotFoundError where it has not finished."""
    results = read_results(folder)
    lines = [json.loads(line) for line in (folder / EVALUATED).read_text(encoding="utf-8").splitlines()]
    write_text(folder / REPORT, report(results, lines))


def report(results: Results, lines: Sequence[Mapping[str, Any]]) -> str:
    """The page; ``lines`` are the graded predictions."""
    causes = {(one["id"], one["trial"]): one for one in results["attribution"]["causes"]}
    sections = [
        Section("sources", "Where requirements come from", _sources(results), SOURCES_LEAD),
        Section("failures", "Why episodes fail", _failures(results), FAILURES_LEAD),
        Section("intents", "Intents", _intents(results), "Accuracy with its 95 % interval.", wide=True),
        Section("types", "Types of requirements", _types(results), TYPES_LEAD),
        *_trials(results),
        *_agreement(results),
        Section("published", "Published results", _published(results), PUBLISHED_LEAD),
        Section(
            "episodes",
            "Every episode",
            record_list(LIST, fields_of(lines), episodes(lines, causes), noun="episodes"),
            "An episode opens to its turns, what it recommended, and each requirement. Long results are cut.",
            wide=True,
        ),
        Section("facts", "What was examined", facts(list(_facts(results))), "What fixes the result."),
    ]
    footer = f"Written by ecomjudge {results['versions'].get('ecomjudge', '')} from results.json and {EVALUATED}."
    head = joined([_lead(results), tiles(_tiles(results))])
    return page("EComAgentBench", results["subject"]["name"], head, sections, footer)


SOURCES_LEAD = (
    "The query is seen at once; the profile and the shopper's answers only by asking for them. Shares of requirements "
    "that the recommended products meet, with 95 % bootstrap intervals over tasks."
)
FAILURES_LEAD = (
    "Each failed episode is laid to one requirement: the kind of product if that is wrong; else a hidden requirement "
    "that it was never told of; else the plainest that it knew and did not meet."
)
TYPES_LEAD = "All requirements of all episodes. Without a judge, kinds and opinions are compared word by word."
PUBLISHED_LEAD = (
    "The paper's table, on its own 662 tasks and catalogue of 3.7 million products, graded by one large model: figures "
    "on other tasks do not compare with it."
)


def _lead(results: Results) -> Markup:
    correct, total = results["total_correct"], results["total_samples"]
    found = paragraph(
        f"It shopped {count(total)} times for {count(results['tasks'])} tasks and was right in {count(correct)}: ",
        tag("strong", percent(results["overall_accuracy"])),
        ". The exact product was recommended in "
        f"{count(results['exact_match_correct'])}, another that meets every requirement in "
        f"{count(results['non_exact_but_correct'])}.",
    )
    faults = results["attribution"]["by_fault"]
    if not faults:
        return found
    told = ", ".join(f"{FAULTS[name]} in {count(value)}" for name, value in faults.items())
    return joined([found, paragraph(f"Of {count(results['attribution']['failed'])} failures: {told}.")])


def _tiles(results: Results) -> list[Tile]:
    cost, asked = results["cost"], results["clarification_efficiency"]
    told = asked["trigger_rate"]
    seconds = cost.get("seconds", {}).get("mean")
    return [
        Tile("Accuracy", percent(results["overall_accuracy"]), _ends(results["intervals"]["overall_accuracy"])),
        Tile(
            "Requirements met",
            percent(results["overall_rubric_satisfaction"]),
            _ends(results["intervals"]["overall_rubric_satisfaction"]),
        ),
        Tile(
            "Recommended a product",
            percent(results["prediction_finished_rate"]),
            f"{count(results['prediction_unfinished_count'])} episodes did not",
        ),
        Tile(
            "Answers brought out",
            percent(told),
            f"profile read in {percent(results['persona_utilization']['profile_called_rate'])}",
        ),
        Tile(
            "Calls an episode",
            number(results["avg_tool_calls"], 1),
            f"{number(seconds, 1)} seconds" if seconds else "",
        ),
    ]


def _ends(found: Results) -> str:
    return "" if found["low"] is None else f"95 %: {percent(found['low'])} to {percent(found['high'])}"


def _share(found: Results, key: str) -> dict[str, Any]:
    return {"value": found[key], "low": found["low"], "high": found["high"]}


def _measured(name: str, rows: Mapping[str, Results], key: str, more: Mapping[str, str]) -> Markup:
    """A table of shares with their intervals; ``more`` names further columns of counts by key."""
    head = [
        Column(name),
        *(Column(title, "number") for title in more.values()),
        Column("Share", "number"),
        Column("0 to 1", "graphic"),
    ]
    body = [
        [
            label.replace("_", " "),
            *(count(row[column]) for column in more),
            interval(_share(row, key)),
            whisker(_share(row, key), 0, 1),
        ]
        for label, row in rows.items()
    ]
    return table(name, head, body, True)


def _sources(results: Results) -> Markup:
    by_source = results["by_source"]
    bars = [
        Bar(name, row["satisfaction"], row["low"], row["high"])
        for name, row in by_source.items()
        if row["satisfaction"] is not None
    ]
    chart = bar_chart("Requirements met by source", bars, Axis("share met", 0.0, 1.0)) if bars else None
    numbers = _measured("Source", by_source, "satisfaction", {"count": "Requirements", "satisfied": "Met"})
    implicit = _measured("Implicit requirements", results["by_implicit_count"], "accuracy", {"count": "Episodes"})
    drawn = figure("Met, by source", chart) if chart is not None else None
    return stack(grid(drawn) if drawn is not None else None, numbers, paragraph(IMPLICIT_LEAD), implicit)


IMPLICIT_LEAD = "Accuracy by how many requirements the query only hints at:"


def _failures(results: Results) -> Markup:
    found = results["attribution"]
    if not found["failed"]:
        return paragraph("No episode failed.")
    faults = list(found["by_fault"])
    sources = list(dict.fromkeys(one["source"] or "–" for one in found["causes"]))
    named = [Column(FAULTS[fault], "number") for fault in faults]
    head = [Column("Source of the cause"), *named, Column("All", "number")]
    rows = [[source, *(_cell(found, source, fault) for fault in faults), _cell(found, source)] for source in sources]
    missed = [
        [one["source"], one["type"].replace("_", " "), FAULTS[one["fault"]], count(one["count"])]
        for one in sorted(found["missed_items"], key=lambda one: -one["count"])
    ]
    every = [Column("Source"), Column("Type"), Column("What went wrong"), Column("Requirements", "number")]
    return stack(
        table("Failed episodes by cause; a number leads to them", head, rows),
        table("All requirements that recommended products missed", every, missed) if missed else None,
    )


def _cell(found: Results, source: str, fault: str | None = None) -> Content:
    """How many failures have this source (and fault), as a link to them."""
    chosen = [
        one for one in found["causes"] if (one["source"] or "–") == source and (fault is None or one["fault"] == fault)
    ]
    if not chosen:
        return "0"
    wanted = {"source": source} if source != "–" else {}
    wanted |= {"fault": FAULTS[fault]} if fault else {}
    return tag("a", count(len(chosen)), href=filter_link(LIST, result="wrong", **wanted))


def _intents(results: Results) -> Markup:
    more = {"count": "Episodes", "correct": "Right", "exact_match_correct": "Exact"}
    return _measured("Intent", results["by_intent"], "accuracy", more)


def _types(results: Results) -> Markup:
    return _measured("Type", results["by_rubric_type"], "satisfaction", {"count": "Requirements", "satisfied": "Met"})


def _trials(results: Results) -> list[Section]:
    """Repeated trials, where there are some."""
    found = results["trials"]
    if found["trials"] < 2:
        return []
    rows = [[f"pass^{k}", number(value)] for k, value in found["pass_hat_k"].items()]
    rows += [[f"trial {name}", number(value)] for name, value in found["accuracy_by_trial"].items()]
    lead = "pass^k is the chance that k trials of a task, drawn at random, are all right."
    body = table("Repeated trials", [Column("Measure"), Column("Accuracy", "number")], rows, True)
    return [Section("trials", "Repeated trials", body, lead)]


def _agreement(results: Results) -> list[Section]:
    """Code and judge, where a judge was asked."""
    if not results["agreement"]:
        return []
    head = [
        Column("Type"),
        Column("Requirements", "number"),
        Column("Agreement", "number"),
        Column("Cohen's kappa", "number"),
        Column("Only code says yes", "number"),
        Column("Only the judge", "number"),
        Column("No usable answer", "number"),
    ]
    rows = [
        [
            name.replace("_", " "),
            count(row["items"]),
            number(row["agreement"]),
            number(row["kappa"]),
            count(row["only_own_yes"]),
            count(row["only_judge_yes"]),
            count(row["judge_failed"]),
        ]
        for name, row in results["agreement"].items()
    ]
    lead = "Kappa is not defined where both say the same of everything."
    return [Section("agreement", "Code and judge", table("Agreement", head, rows, True), lead, wide=True)]


def _published(results: Results) -> Markup:
    names = ("accuracy", "rubric_satisfaction", "finish_rate", "avg_tool_calls")
    head = [
        Column("Model"),
        Column("Accuracy, %", "number"),
        Column("Requirements met, %", "number"),
        Column("Finished, %", "number"),
        Column("Calls", "number"),
    ]
    own = results["published_denominators"]
    keys = ("overall_accuracy", "overall_rubric_satisfaction", "prediction_finished_rate")
    shares = [number(None if own[key] is None else 100 * own[key], 1) for key in keys]
    mine = [f"{results['subject']['name']} (here)", *shares, number(own["avg_tool_calls"], 1)]
    rows: list[Sequence[Content]] = [mine, *([row["model"], *(row[name] for name in names)] for row in published())]
    return table("As the published evaluation divides: crashed episodes are left out, any ending counts", head, rows)


def _facts(results: Results) -> Iterator[tuple[str, Content]]:
    yield from ((name.replace("_", " ").capitalize(), _short(value)) for name, value in results["subject"].items())
    yield "Tasks", joined([results["data"]["tasks"], " ", tag("code", results["data"]["tasks_fingerprint"][:16])])
    yield "Catalogue", joined([results["data"]["catalogue"], " ", tag("code", str(results["catalogue"])[:16])])
    yield "Tools", results["mode"]
    yield "Turns at most", count(results["max_steps"])
    yield "Judge", results["judge_model"] or "none: words are compared"
    for name in ("input_tokens", "computed_tokens", "output_tokens"):
        if name in results["cost"]:
            yield f"{name.replace('_', ' ').capitalize()} an episode", number(results["cost"][name]["mean"], 0)
    yield "Played last", f"{count(results['run']['episodes'])} episodes in {number(results['run']['seconds'], 0)} s"
    yield "Versions", ", ".join(f"{name} {value}" for name, value in results["versions"].items())


def _short(value: Any) -> Content:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items() if one not in (None, [], ()))
    text = "" if value is None else str(value)
    return tag("code", text[:16]) if len(text) == 64 else text
