"""A trained judge's folder: what models.judge writes, with the facts, the picture and the card beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from models.folder import written_whole
from models.judge import Judge
from models.spec import SPEC_FILE
from train.card import card
from train.facts import write_facts
from train.reliability import PICTURE, draw_reliability
from train.runs import RunFolder, write_text

CARD = "README.md"


def save_judge(folder: RunFolder, judge: Judge, facts: Mapping[str, Any], labels: ArrayLike, p: ArrayLike) -> None:
    """Write the adapter's folder in one move, and a copy of its card beside it.

    Args:
        facts: what `train.facts.training_facts` gathered.
        labels, p: of the validation records and what they were given, [records], for the picture.
    """
    with written_whole(folder.adapter, SPEC_FILE) as draft:
        judge.write(draft)
        write_facts(draft, facts)
        draw_reliability(labels, p, judge.spec.threshold, f"{judge.spec.judgment}: validation records", draft)
        text = card(judge.spec, facts)
        (draft / CARD).write_text(text, encoding="utf-8")
    write_text(folder.path / CARD, text.replace(f"({PICTURE})", f"({folder.adapter.name}/{PICTURE})"))
