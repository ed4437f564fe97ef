"""PIQA (Bisk et al. 2020): a goal and two solutions, one of them right by human judgment -> ``script_verify``.

Fields as published: goal, sol1, sol2, label (the index of the right one; in the published validation set the labels are
a file of their own, one a line, to be joined first). Each solution becomes a record whose steps are its sentences, or a
single step where it is one sentence: nine in ten solutions are short. Records of one goal form a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from recipes.importing.files import Options, Skipped, clean, group_name, make, source_rows
from recipes.script_verify import ScriptRecord

# A sentence ends at . ! or ? before a capital or a list number; not after the abbreviations that recipes use.
END = re.compile(r"""(?<=[.!?])["')]*\s+(?=["'(]?[A-Z]|[0-9]{1,2}[.)]\s)""")
ABBREVIATION = re.compile(
    r"\b(approx|no|vs|etc|e\.g|i\.e|oz|tsp|tbsp|tbs|lb|lbs|min|in|ft|dr|mr|mrs|st|[A-Z])\.$", re.I
)
NUMBER = re.compile(r"^[0-9]{1,2}[.)]\s+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, without list numbers; split only where that is safe, never after "approx." or "oz."."""
    whole: list[str] = []
    for piece in END.split(text.strip()):
        if whole and ABBREVIATION.search(whole[-1]):
            whole[-1] += " " + piece
        else:
            whole.append(piece)
    steps = [NUMBER.sub("", step).strip() for step in whole]
    return [step for step in steps if re.search(r"\w", step) and not re.fullmatch(r"[0-9]{1,2}[.)]?", step)]


def read(path: Path, options: Options, skipped: Skipped) -> Iterator[ScriptRecord]:
    """Two records for each row; takes no options."""
    for row in source_rows(path, ("goal", "sol1", "sol2", "label")):
        goal, solutions = clean(row.value["goal"]), [clean(row.value["sol1"]), clean(row.value["sol2"])]
        if str(row.value["label"]) not in ("0", "1"):
            skipped["rows without a label 0 or 1"] += 1
            continue
        right = int(row.value["label"])
        if solutions[0] == solutions[1]:
            skipped["rows whose solutions are the same"] += 1
            continue
        for place, solution in enumerate(solutions):
            fields = {
                "id": f"piqa-{row.line}-{place + 1}",
                "goal": goal,
                "script": sentences(solution or ""),
                "label": int(place == right),
                "group": group_name(goal or ""),
            }
            record = make(ScriptRecord, skipped, fields)
            if record is not None:
                yield record
