"""What a finished judge said of each validation record: ``predictions.jsonl`` of a run, as evaluations have it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from models.scoring import probabilities
from models.spec import JudgeSpec
from train.data import Split
from train.runs import write_text


def prediction_lines(split: Split, margins: ArrayLike, spec: JudgeSpec) -> list[dict[str, Any]]:
    """A line for each record that was used.

    Args:
        margins: logit(yes) - logit(no) of the split's fitted records, [records].
        spec: with the threshold and temperature that make a probability and a verdict of a margin.
    """
    values = np.asarray(margins, np.float64)
    fitted = split.fitted
    told = zip(fitted.records, fitted.lengths, values, probabilities(values, spec.temperature), strict=True)
    return [
        {
            "id": record.id,
            "group": record.group_key,
            "label": record.label,
            "p_yes": float(p_yes),
            "margin": float(margin),
            "verdict": int(p_yes >= spec.threshold),
            "tokens": tokens,
            "shortened": record.id in fitted.shortened,
        }
        for record, tokens, margin, p_yes in told
    ]


def write_predictions(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    write_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
