"""How a report shows predictions: columns, texts, and which of them come first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from recipes.base import Record
from recipes.judgments import get_judgment
from reporting.markup import tag
from reporting.page import Section, grid, paragraph
from reporting.records import Field, Shown, short_list
from reporting.slices import Slicing

Prediction = Mapping[str, Any]
OUTCOMES = {(0, 0): "true no", (0, 1): "false yes", (1, 0): "false no", (1, 1): "true yes"}  # by (label, verdict)
UNREAD = ("unparsed", "undecided")  # what was said of neither class
TONES: dict[str, Literal["good", "bad"]] = {
    **{name: "good" if label == said else "bad" for (label, said), name in OUTCOMES.items()},
    **dict.fromkeys(UNREAD, "bad"),
}
FEW = 8


def fields_of(groupings: Sequence[Slicing], probable: bool = True) -> list[Field]:
    """The columns of the list of predictions; every grouping can be filtered by, the kind is a column too.

    Args:
        probable: whether predictions have a probability.
    """
    shares = [Field("p_yes", "p(yes)", "share"), Field("error", "Error", "number")] if probable else []
    return [
        Field("outcome", "Outcome", "choice", tones=TONES),
        Field("right", "Verdict", "choice", column=False),
        *(Field(one.key, one.name, "choice", column=one.key == "meta.kind") for one in groupings),
        *shares,
        Field("tokens", "Tokens", "number", 0),
    ]


def shown_as(judgment: str, line: Prediction, record: Record | None, groupings: Sequence[Slicing], place: int) -> Shown:
    """A prediction line (the one at ``place`` among all) with the text of its record, if that is at hand."""
    values: dict[str, Any] = {
        "outcome": line.get("unread") or OUTCOMES[line["label"], line["verdict"]],
        "right": "right" if line["label"] == line["verdict"] else "wrong",
        **{one.key: one.values[place] for one in groupings},
        "tokens": line["tokens"],
    }
    if line["p_yes"] is not None:
        values |= {"p_yes": round(line["p_yes"], 6), "error": round(abs(line["label"] - line["p_yes"]), 6)}
    texts = line.get("texts", [])
    known = [(f"Text {k}" if len(texts) > 1 else "Text", text) for k, text in enumerate(texts, 1)]
    known.append(("Id", f"{line['id']}, group {line['group']}"))
    if record is None:
        return Shown(line["id"], values, known)
    parts = (part.partition(":") for part in get_judgment(judgment).parts(record))
    return Shown(_title(record), values, [*((name, text.strip()) for name, _, text in parts), *known])


def _title(record: Record) -> str:
    """What tells a record from others: its product and step where it has them, else its goal."""
    product, step = getattr(record, "product", None), getattr(record, "step", None)
    return record.goal if product is None else f"{product.title} → {step}"


def meta_of(line: Prediction, record: Record | None) -> dict[str, Any]:
    """What is known of a prediction's record: its meta, and the kind that its line carries."""
    own = {"kind": line["kind"]} if "kind" in line else {}
    return own if record is None else own | (record.meta or {})


def extremes(results: Mapping[str, Any], lines: Sequence[Prediction], shown: Sequence[Shown]) -> Section:
    """The errors with margins farthest beyond the threshold's, and the predictions with margins nearest to it."""
    threshold = min(max(results["threshold"]["value"], 1e-9), 1 - 1e-9)
    border = math.log(threshold / (1 - threshold)) * results["temperature"]
    near = sorted(range(len(lines)), key=lambda place: abs(lines[place]["margin"] - border))
    wrong = [place for place in reversed(near) if lines[place]["label"] != lines[place]["verdict"]]
    told = [Field("outcome", "Outcome"), Field("p_yes", "p(yes)", "share")]
    if any("meta.kind" in one.values for one in shown):
        told.insert(1, Field("meta.kind", "Kind"))
    worst = short_list(told, [shown[place] for place in wrong[:FEW]]) if wrong else paragraph("Nothing was wrong.")
    doubtful = short_list(told, [shown[place] for place in near[:FEW]])
    parts = (("Most confidently wrong", worst), ("Most uncertain", doubtful))
    lead = (
        "The errors farthest beyond the threshold, where a label may be wrong or a distinction was not learned; and "
        "the records nearest to it."
    )
    body = grid(*(tag("div", tag("h3", title), part) for title, part in parts))
    return Section("extremes", "Worst and most uncertain", body, lead, wide=True)
