"""Results for other programs and for a README: a CSV row that tables can be made of, and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from benchmarks.ecomqa.data import SUB_CONCEPTS
from benchmarks.ecomqa.wording import in_words, mean_name
from reporting.markup import number

Results = Mapping[str, Any]


def scores_csv(results: Results) -> str:
    """One row in the form of the published table: model, average, and the accuracy of each sub-concept, in percent.

    A sub-concept that was not asked is empty.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["model", "average", *SUB_CONCEPTS])
    own = results["sub_concepts"]
    scores = [f"{own[task]['accuracy']['value']:.2f}" if task in own else "" for task in SUB_CONCEPTS]
    table.writerow([results["subject"]["name"], f"{results['average']['value']:.2f}", *scores])
    return text.getvalue()


def markdown(results: Results) -> str:
    """The main table, under it how it came about, and what it leaves to be said."""
    head = ["sub-concept", "n", "accuracy [95 %]", "constant answers", "attempted", "given attempted", "F"]
    rows = [
        _row(f"{task} {own['name']}", own, number(own["baseline"]["accuracy"], 1))
        for task, own in results["sub_concepts"].items()
    ]
    mean = (mean_name(results), _ends(results["average"]), number(results["baseline"], 1))
    name, ends, baseline = (f"**{cell}**" for cell in mean)
    rows += [[name, "", ends, baseline, "", "", ""], _row("all questions together", results["all"], "")]
    lines = [_line(head), _line(["---", *["---:"] * (len(head) - 1)]), *map(_line, rows)]
    told = [f"- {sentence}" for sentence in in_words(results)]
    return "\n".join([*lines, "", _how(results), "", *told, ""])


def _row(name: str, own: Results, baseline: str) -> list[str]:
    shares = (own["attempted"], own["given_attempted"], own["f"])
    return [name, str(own["n"]), _ends(own["accuracy"]), baseline, *(number(value, 1) for value in shares)]


def _ends(accuracy: Results) -> str:
    return f"{number(accuracy['value'], 1)} [{number(accuracy['low'], 1)}, {number(accuracy['high'], 1)}]"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _how(results: Results) -> str:
    grading = results["grading"]
    by = ", ".join(f"{who.replace('_', ' ')} {count}" for who, count in grading["by"].items())
    judges = f" Judges: {', '.join(grading['judges'])}." if grading["judges"] else ""
    return f"{results['subject']['name']} on {results['data']['reference']}, in percent. Graded by: {by}.{judges}"
