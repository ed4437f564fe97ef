"""What was found about a yes/no judge, before anything else: a sentence or two, and a figure for each measure.

``results`` are as results.json has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recipes.judgments import get_judgment
from recipes.reading import counted
from reporting.markup import Markup, count, joined, number, percent, tag
from reporting.page import Tile, paragraph
from reporting.predictions import UNREAD

MEASURES = {"accuracy": "Accuracy", "macro_f1": "Macro-F1", "auc": "AUC"}


def answered_right(results: Mapping[str, Any]) -> Markup:
    """How often it answered right, and whether the majority class's share lies within that measure's interval."""
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


def measure_tiles(results: Mapping[str, Any]) -> list[Tile]:
    """The measures beside the majority's, and the calibration error (or how much was not read) behind them."""
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
