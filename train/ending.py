"""How a run ends: the best checkpoint calibrated on validation, saved as a judge, measured, and told of in a report."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from peft import set_peft_model_state_dict
from rich.console import Console
from safetensors.torch import load_file
from transformers.integrations.deepspeed import unset_hf_deepspeed_config

from models.judge import ADAPTER_WEIGHTS, Judge
from models.runtime import this_process, versions
from models.scoring import probabilities
from recipes.base import Judgment
from recipes.metrics import best_threshold, binary_metrics, expected_calibration_error, fit_temperature
from train.config import TrainConfig
from train.data import Split
from train.facts import training_facts
from train.predictions import prediction_lines, write_predictions
from train.report import Ending, write_report
from train.runs import RunFolder
from train.saving import save_judge
from train.trainer import JudgeTrainer

JUDGED = ("validation", "test")


def finish(
    judgment: Judgment[Any],
    config: TrainConfig,
    folder: RunFolder,
    trainer: JudgeTrainer,
    splits: Mapping[str, Split],
    make: Callable[[], Judge],
    say: Console,
) -> dict[str, Any]:
    """Calibrate the best checkpoint on validation, save the judge, and measure validation and test with it.

    Every process must call it. The final metrics are the last thing that is written: a run without them goes on.

    Args:
        make: makes the judge as it was before training, where what is trained lies in pieces on several processes.
    """
    state = this_process()
    best = folder.checkpoints / "best"
    trainer.save_model(str(best))
    state.wait_for_everyone()
    sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    if not sharded:
        _restore(trainer.judge, best)
    judged = [name for name in JUDGED if name in splits]
    margins = {name: trainer.margins_of(splits[name].dataset) for name in judged}
    labels = splits["validation"].dataset.labels
    temperature = fit_temperature(labels, margins["validation"])
    threshold = best_threshold(labels, probabilities(margins["validation"], temperature))
    summary: dict[str, Any] = {
        name: _measure(splits[name].dataset.labels, values, temperature, threshold) for name, values in margins.items()
    }
    summary["best"] = {"step": trainer.state.best_global_step, config.evaluation.metric: trainer.state.best_metric}
    if state.is_main_process:
        judge = _whole(make, best) if sharded else trainer.judge
        chosen = {"threshold": threshold, "temperature": temperature, "max_length": trainer.judge.max_length}
        judge = judge.with_spec(**chosen, versions=versions())
        _write(judgment, config, folder, judge, splits, margins)
        shutil.rmtree(best)
        with folder.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": trainer.state.global_step, "final": summary}, sort_keys=True) + "\n")
        say.print(f"saved {folder.adapter}: {_sentence(summary)}")
        say.print(f"report: {folder.report}")
    state.wait_for_everyone()
    return summary


def _write(
    judgment: Judgment[Any],
    config: TrainConfig,
    folder: RunFolder,
    judge: Judge,
    splits: Mapping[str, Split],
    margins: Mapping[str, ArrayLike],
) -> None:
    """The judge's folder, what it said of each validation record, and the report."""
    validation, spec = splits["validation"], judge.spec
    p = probabilities(np.asarray(margins["validation"]), spec.temperature)
    facts = training_facts(judgment, config, judge, splits, margins, this_process().num_processes)
    save_judge(folder, judge, facts, validation.dataset.labels, p)
    lines = prediction_lines(validation, margins["validation"], spec)
    write_predictions(folder.predictions, lines)
    records = {record.id: record for record in validation.fitted.records}
    write_report(folder, judgment.name, Ending(spec, facts, lines, records))


def _whole(make: Callable[[], Judge], folder: Path) -> Judge:
    """A judge in one piece from the files that were gathered from a sharded one."""
    unset_hf_deepspeed_config()  # else transformers would shard the new model as well
    judge = make()
    _restore(judge, folder)
    return judge


def _restore(judge: Judge, folder: Path) -> None:
    """Put the files' weights into the model, so that what is measured is what was saved."""
    if (folder / ADAPTER_WEIGHTS).is_file():
        set_peft_model_state_dict(judge.model, load_file(folder / ADAPTER_WEIGHTS))


def _measure(labels: Any, values: Any, temperature: float, threshold: float) -> dict[str, float]:
    p = probabilities(np.asarray(values), temperature)
    measured = {**binary_metrics(labels, p, threshold), "ece": expected_calibration_error(labels, p)}
    return {name: round(value, 6) for name, value in measured.items() if not math.isnan(value)}


def _sentence(summary: Mapping[str, Any]) -> str:
    parts = [
        f"{name} accuracy {summary[name]['accuracy']:.3f}, macro-F1 {summary[name]['macro_f1']:.3f}"
        for name in JUDGED
        if name in summary
    ]
    return "; ".join(parts)
