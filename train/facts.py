"""What training knows of a judge that it made: its data, its measures, the command. ``training.json`` beside it.

The model card is written from this file and `judge.json`: it can be written again for another place without the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from peft import PeftModel

from models.judge import Judge
from models.scoring import probabilities
from recipes.base import Judgment, Record
from recipes.intervals import LEVEL, bootstrap
from recipes.metrics import expected_calibration_error
from recipes.reading import fingerprint
from train.command import publishable, training_command
from train.config import TrainConfig
from train.data import Split

FACTS_FILE = "training.json"
RESAMPLES = 2000
# What a card shows the judge on: short texts of ours, and never a record of the training data.
PRODUCT = {"title": "String Lights, 20 m", "features": ["weatherproof"], "price": 24.9}
EXAMPLES: dict[str, dict[str, Any]] = {
    "script_verify": {"script": ["Choose a date", "Invite the guests", "Hang warm lights in the garden"]},
    "step_product": {"step": "Hang warm lights in the garden", "product": PRODUCT},
    "holistic_verify": {
        "script": [{"step": "Choose a date"}, {"step": "Hang warm lights in the garden", "products": [PRODUCT]}]
    },
}


def training_facts(
    judgment: Judgment[Any],
    config: TrainConfig,
    judge: Judge,
    splits: Mapping[str, Split],
    margins: Mapping[str, ArrayLike],
    processes: int,
) -> dict[str, Any]:
    """The content of ``training.json``. No path of this machine is in it.

    Args:
        judge: with the threshold and temperature that were chosen.
        margins: of the fitted records of each split that was judged.
    """
    base = judge.spec.base
    references = {"train": config.data.train, "validation": config.data.validation, "test": config.data.test}
    return {
        "method": config.method if isinstance(judge.model, PeftModel) else "full",
        "seed": config.seed,
        "command": training_command(
            judgment.name, config, f"{base.id}@{base.revision}" if base.revision else base.id, processes
        ),
        "data": {name: _data(split, references[name]) for name, split in splits.items()},
        "results": {name: _measured(splits, name, values, judge) for name, values in margins.items()},
        "bootstrap": {"resamples": RESAMPLES, "seed": 0, "level": LEVEL, "over": "groups", "interval": "percentile"},
        "example": example_texts(judgment, judge),
        "special_tokens": not judge.encoder.chat,
    }


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write ``training.json`` into a judge's folder."""
    (folder / FACTS_FILE).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_facts(folder: Path) -> dict[str, Any]:
    """What training wrote. Raises FileNotFoundError where it wrote nothing (or an older version did)."""
    path = folder / FACTS_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder}: no {FACTS_FILE}; give the folder that training wrote (runs/.../adapter), "
            "with --merge to publish it merged"
        )
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return facts


def example_texts(judgment: Judgment[Any], judge: Judge) -> list[str]:
    """A made-up record as the judge reads it: one text, or the two of a pair."""
    record = {"id": "example", "goal": "Plan an autumn party", **EXAMPLES[judgment.name]}
    prompt = judgment.render(judgment.record.model_validate(record), judge.style)
    if judge.encoder.bidirectional:
        return ["".join(prompt.prefix).strip(), prompt.suffix.strip()]
    return [judge.encoder.text(prompt)]


def _data(split: Split, reference: str | None) -> dict[str, Any]:
    facts = split.facts()
    return {
        "reference": publishable(reference) if reference else "held out of the training records",
        **{key: facts[key] for key in ("records", "yes", "groups", "shortened", "left_out")},
        "fingerprint": fingerprint(split.given),
    }


def _measured(splits: Mapping[str, Split], name: str, values: ArrayLike, judge: Judge) -> dict[str, Any]:
    """Measures with intervals over groups, and those of the commoner training label, as results.json has them."""
    records: list[Record] = splits[name].fitted.records
    labels = np.array([record.label for record in records])
    groups = [record.group_key for record in records]
    p = probabilities(np.asarray(values), judge.spec.temperature)
    taught = [record.label for record in splits["train"].fitted.records]
    common = int(2 * sum(taught) >= len(taught))
    constant = np.full(len(labels), common)
    found = bootstrap(labels, p, p >= judge.spec.threshold, groups, RESAMPLES)
    always = bootstrap(labels, np.zeros(len(labels)), constant, groups, RESAMPLES)
    return {
        "n": len(labels),
        "yes": int(labels.sum()),
        "groups": len(set(groups)),
        "metrics": {key: asdict(interval) for key, interval in found.items()},
        "calibration": {
            "ece": expected_calibration_error(labels, p),
            "ece_equal_mass": expected_calibration_error(labels, p, equal_mass=True),
            "bins": 10,
        },
        "baselines": {
            "majority": {"class": common, "metrics": {key: asdict(interval) for key, interval in always.items()}}
        },
    }
