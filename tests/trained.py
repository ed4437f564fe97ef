"""A judge of script verification as training leaves it, without the training: its weights are random and matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tiny_judges import shake

from models.checkpoint import resolve
from models.judge import Judge, new_judge
from models.runtime import versions
from models.scoring import margins, probabilities
from recipes.script_verify import SCRIPT_VERIFY
from train.config import TrainConfig
from train.data import prepare, read_run_data
from train.facts import training_facts
from train.runs import RunFolder
from train.saving import save_judge

THRESHOLD, TEMPERATURE = 0.4, 1.5


@dataclass(frozen=True)
class Trained:
    """The judge in memory, its folder, and what it says of the validation records.

    Attributes:
        labels: of the validation records, [records].
        p: the probability of yes that they were given, [records].
    """

    judge: Judge
    folder: Path
    facts: dict[str, Any]
    labels: NDArray[np.int64]
    p: NDArray[np.float64]


def make_trained(config: TrainConfig, **base: Any) -> Trained:
    """The judge of a run of this configuration; ``base`` are fields of its backbone's description."""
    torch.manual_seed(0)
    judge = new_judge(
        resolve(config.checkpoint),
        SCRIPT_VERIFY.name,
        SCRIPT_VERIFY.template_version,
        SCRIPT_VERIFY.label_words,
        config.model,
        config.lora,
    )
    spec = {"threshold": THRESHOLD, "temperature": TEMPERATURE, "max_length": 512, "versions": versions()}
    judge = judge.with_spec(base=replace(judge.spec.base, **base), **spec)
    shake(judge)
    data = read_run_data(SCRIPT_VERIFY, config.data, config.seed)
    splits = {name: prepare(name, SCRIPT_VERIFY, records, judge) for name, records in vars(data).items() if records}
    found = margins(judge, splits["validation"].dataset.encoded)
    facts = training_facts(SCRIPT_VERIFY, config, judge, splits, {"validation": found}, 1)
    labels, p = np.array(splits["validation"].dataset.labels), probabilities(found, TEMPERATURE)
    folder = RunFolder(config, SCRIPT_VERIFY.name)
    folder.path.mkdir(parents=True)
    save_judge(folder, judge, facts, labels, p)
    return Trained(judge, folder.adapter, facts, labels, p)
