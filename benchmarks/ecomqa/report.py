"""report.html of an evaluation, with report.md and scores.csv beside it.

Made of results.json and the predictions' files as they lie in the folder: what is shown is what was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.ecomqa.exports import markdown, scores_csv
from benchmarks.ecomqa.pictures import task_bars, task_label, task_radar
from benchmarks.ecomqa.published import published_accuracy
from benchmarks.ecomqa.ranks import SCORES
from benchmarks.ecomqa.report_analyses import analyses
from benchmarks.ecomqa.report_grading import grading_section
from benchmarks.ecomqa.shown import examples, fields_of, shown
from benchmarks.results import REPORT, Predictions, read_results, write_text
from reporting.markup import Content, Markup, count, joined, number, tag
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
    table,
    tiles,
    whisker,
)
from reporting.records import filter_link, record_list

Results = Mapping[str, Any]
Lines = Sequence[Mapping[str, Any]]
MARKDOWN = "report.md"
LIST = "list"  # the anchor of the list of answers
# Ways of asking beside the plain one: the name in results.json and in the file's, and how the list calls it.
VARIANTS = {"confidence": "with confidence", "rag": "with passages"}
BEHAVIOUR = "behaviour"
# Of the paper's models the best, a middling and a weak one, to hold results on the released questions against.
BESIDE = ("DeepSeek-R1", "GPT-4o", "Qwen2.5-3B")
# Questions of the released file, asked twice or merged; only their results compare with the published ones.
RELEASED = (1800, 1786)


def write_report(folder: Path) -> None:
    """Write the report of the finished evaluation in ``folder``: report.html, report.md and scores.csv.

    Raises FileNotFoundError where it has not finished.
    """
    results = read_results(folder)
    lines = Predictions(folder).read()
    for name, asked in VARIANTS.items():
        if name in results:  # a file without results is an earlier run's
            lines += [{**line, "asked": asked} for line in Predictions(folder, f"predictions-{name}").read()]
    sorted_traces = "shares" in results.get("thinking", {})
    behaviours = Predictions(folder, BEHAVIOUR).read() if sorted_traces else []
    write_text(folder / REPORT, report(results, lines, behaviours))
    write_text(folder / MARKDOWN, markdown(results))
    write_text(folder / SCORES, scores_csv(results))


def report(results: Results, lines: Lines, behaviours: Lines = ()) -> str:
    """The page.

    Args:
        lines: graded lines of all ways of asking, each with ``asked``.
        behaviours: lines of traces that were sorted, by id of a plain question.
    """
    plain = [line for line in lines if line.get("asked", "plain") == "plain"]
    # The plain question names an answer however it was asked.
    prompts = {line["id"]: line["prompt"] for line in (*lines, *plain)}
    sections = [
        _sub_concepts(results),
        _pictures(results),
        *analyses(results, plain, behaviours),
        grading_section(results),
        Section("examples", "Examples of each grade", examples(plain), "From different sub-concepts.", wide=True),
        Section(
            "answers",
            "All answers",
            record_list(LIST, fields_of(lines), [shown(line, prompts[line["id"]]) for line in lines], noun="answers"),
            "Search reads questions, answers, references and what judges wrote; every word must occur.",
            wide=True,
        ),
        _facts(results),
    ]
    version = results["versions"].get("ecomjudge", "")
    footer = f"Written by ecomjudge {version} from results.json and predictions.jsonl."
    head = joined([_lead(results), tiles(_tiles(results))])
    return page("ChineseEcomQA", results["subject"]["name"], head, sections, footer)


def _lead(results: Results) -> Markup:
    average, everything, baseline = results["average"], results["all"], results["baseline"]
    mean = "the ten sub-concepts" if results["complete"] else f"{len(results['sub_concepts'])} sub-concepts"
    found = paragraph(
        f"Of {count(everything['n'])} questions ({results['data']['reference']}) it answered "
        f"{count(everything['correct'])} right. The unweighted mean over {mean} is ",
        tag("strong", f"{number(average['value'], 1)} %"),
        f"; constant answers, the best for each kind of question, would reach {number(baseline, 1)} %.",
    )
    if average["low"] > baseline:
        said = "The whole 95 % interval lies above that."
    elif average["high"] < baseline:
        said = "The whole 95 % interval lies below that."
    else:
        said = "The 95 % interval includes that: these questions do not tell the two apart."
    return joined([found, paragraph(said)])


def _tiles(results: Results) -> list[Tile]:
    average, everything = results["average"], results["all"]
    ends = f"95 %: {number(average['low'], 1)} to {number(average['high'], 1)}"
    counts = f"{count(everything['not_attempted'])} of {count(everything['n'])} not attempted"
    return [
        Tile("Mean accuracy, %", number(average["value"], 1), ends),
        Tile("Attempted, %", number(everything["attempted"], 1), counts),
        Tile("Right of those attempted, %", number(everything["given_attempted"], 1), "all questions together"),
        Tile("F, %", number(everything["f"], 1), "all questions together: of their accuracy and the share before"),
    ]


def _sub_concepts(results: Results) -> Section:
    head = [
        Column("Sub-concept"),
        Column("n", "number"),
        Column("Accuracy, %", "number"),
        Column("0 to 100", "graphic"),
        Column("Constant answers", "number"),
        Column("Attempted", "number"),
        Column("Given attempted", "number"),
        Column("F", "number"),
        Column("Wrong", "number"),
    ]
    rows = [_row(task, own) for task, own in results["sub_concepts"].items()]
    other = [
        [task_label(task), own["baseline"]["says"], number(own.get("macro_f1"), 1), number(own.get("list_f1"), 1)]
        for task, own in results["sub_concepts"].items()
    ]
    more = [
        Column("Sub-concept"),
        Column("Constant answers"),
        Column("Macro-F1", "number"),
        Column("List F1", "number"),
    ]
    lead = (
        "In brackets, 95 % Wilson intervals. The dashed line is the best constant answers, one for each kind of "
        "question (or copying the query), chosen on these very questions. A number of wrong answers leads to them."
    )
    body = joined(
        [table("By sub-concept", head, rows, True), table("Constant answers, and F1 where it tells more", more, other)]
    )
    return Section("sub-concepts", "Sub-concepts", body, lead, wide=True)


def _row(task: str, own: Results) -> list[Content]:
    wrong = tag("a", count(own["wrong"]), href=filter_link(LIST, task=task_label(task), grade="Wrong"))
    return [
        joined([task_label(task), tag("br"), tag("span", own["name"], class_="ends")]),
        count(own["n"]),
        interval(own["accuracy"], 1),
        whisker(own["accuracy"], 0, 100, own["baseline"]["accuracy"]),
        number(own["baseline"]["accuracy"], 1),
        number(own["attempted"], 1),
        number(own["given_attempted"], 1),
        number(own["f"], 1),
        wrong if own["wrong"] else "0",
    ]


def _pictures(results: Results) -> Section:
    name, own = results["subject"]["name"], results["sub_concepts"]
    series = {name: {task: one["accuracy"]["value"] for task, one in own.items()}}
    series["constant answers"] = {task: one["baseline"]["accuracy"] for task, one in own.items()}
    caption = "Constant answers are the best ones for each kind of question."
    if compares_with_published(results):
        series |= {model: published_accuracy()[model] for model in BESIDE if model != name}
        caption += " Other models as the paper prints them, graded there by three large judges."
    drawn = task_radar(series)
    bars = figure("With intervals", task_bars(own, results["average"]["value"]), "95 % Wilson intervals.")
    return Section("pictures", "Pictures", grid(figure("Profile", drawn, caption) if drawn else None, bars))


def compares_with_published(results: Results) -> bool:
    """Whether the questions are, by their number, all of the released file's."""
    return bool(results["complete"]) and results["all"]["n"] in RELEASED


def _facts(results: Results) -> Section:
    subject, answers, cost = results["subject"], results["answers"], results["cost"]
    pairs: list[tuple[str, Content]] = [
        ("Model", subject["name"]),
        *(
            (name.capitalize(), _short(value))
            for name, value in subject.items()
            if name != "name" and value is not None
        ),
        ("Data", joined([results["data"]["reference"], " ", tag("code", results["data"]["fingerprint"][:16])])),
        ("Answers cut by the limit", count(answers["cut"])),
        ("Traces", f"{count(answers['traces'])}, {count(answers['unfinished_traces'])} without an end"),
        ("Too long to ask", f"{count(answers['too_long'])}, {count(answers['without_shots'])} asked without examples"),
        ("Written last, answers", _effort(cost.get("answers"))),
        ("Written last, votes", _effort(cost.get("votes"))),
        (
            "Settings",
            ", ".join(f"{name} {value}" for name, value in results["settings"].items() if value not in (None, [])),
        ),
        ("Versions", ", ".join(f"{name} {value}" for name, value in results["versions"].items())),
    ]
    lead = "What fixes the result. Fingerprints are of the questions and files themselves, whatever their names."
    return Section("facts", "What was examined", facts(pairs), lead)


def _short(value: Any) -> Content:
    text = str(value)
    return tag("code", text[:16]) if len(text) == 64 else text


def _effort(cost: Mapping[str, Any] | None) -> str:
    if not cost or not cost["texts"]:
        return "nothing: all was there"
    rate = cost["tokens"] / cost["seconds"] if cost["seconds"] else 0
    return (
        f"{count(cost['texts'])} texts, {count(cost['tokens'])} tokens written and {count(cost['prompt_tokens'])} read "
        f"in {cost['seconds']:,.0f} s ({rate:,.0f} tokens/s)"
    )
