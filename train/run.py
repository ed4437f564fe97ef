"""A training run from configuration to a judge on disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from rich.console import Console
from transformers import EarlyStoppingCallback, set_seed
from transformers.utils import logging as transformers_logging

from models.checkpoint import resolve
from models.folder import sole_writer
from models.judge import Judge, new_judge
from models.runtime import one_of_many, this_process, use_threads, versions
from recipes.base import Judgment
from recipes.reading import fingerprint
from train.arguments import parse
from train.callbacks import MetricsFile, WandbRun
from train.checkpoints import Checkpoints
from train.command import default_config
from train.config import TrainConfig
from train.data import RunData, Split, prepare, read_run_data
from train.dry_run import report
from train.ending import finish
from train.intents import beside_products, mixed_in, pairs_to_learn, read_knowledge
from train.intents_first import carry_over, learn_intents
from train.learning import go_on, refuse_to_shard, training_arguments
from train.publishing.after_training import check_before, publish_after
from train.report import ReportPage
from train.runs import RunFolder
from train.trainer import JudgeTrainer, balanced_weights

HELP = """Train a judge for {name}; without --config, as configs/{name}/{default}.yaml says.

The run goes to runs/{name}/<name>/. Given again, the same command goes on from where it was stopped.

examples:
  accelerate launch train/{name}.py --data.train train.jsonl --data.validation validation.jsonl --dry_run
  accelerate launch train/{name}.py --config configs/{name}/smollm2-135m.yaml --optim.learning_rate 5e-5
  accelerate launch --config_file configs/accelerate/multi-gpu.yaml train/{name}.py \\
      --config configs/{name}/llama-3.1-8b.yaml
"""


def main(judgment: Judgment[Any]) -> None:
    """What ``accelerate launch train/<judgment>.py`` does. Faults in data or settings end it: a sentence, status 1."""
    default = default_config(judgment.name)
    config = parse(TrainConfig, default_config=default, doc=HELP.format(name=judgment.name, default=default.stem))
    with one_of_many():
        train(judgment, config)


def train(judgment: Judgment[Any], config: TrainConfig) -> dict[str, Any] | None:
    """Train, choose threshold and temperature on validation, save; the final metrics, or None after a dry run."""
    state = this_process()
    say = Console(stderr=True, highlight=False, soft_wrap=True, quiet=not state.is_main_process)
    use_threads(config.threads)
    folder = RunFolder(config, judgment.name)
    check_before(config, folder, judgment.name)
    with state.main_process_first():
        data = read_run_data(judgment, config.data, config.seed)
        checkpoint = resolve(config.checkpoint)
    known = read_knowledge(config, judgment, data, say)
    told = {"intents": fingerprint(known)} if known else {}
    facts: dict[str, Any] = {"data": {**data.fingerprints, **told}, "versions": versions()}
    judgment, data = beside_products(judgment, data, known, config, say)
    if not config.dry_run:
        folder.check(config, facts)
        if folder.finished and not config.run.overwrite:
            say.print(f"{folder.path} is finished; give --run.name another name, or --run.overwrite to start anew")
            if state.is_main_process:
                publish_after(config, folder, judgment.name, say)
            return folder.final_metrics()
    config = whole_weights(config)
    set_seed(config.seed)
    make = partial(
        new_judge,
        checkpoint,
        judgment.name,
        judgment.template_version,
        judgment.label_words,
        config.model,
        config.lora if config.method == "lora" else None,
        config.data.max_length,
        config.optim.gradient_checkpointing,
    )
    judge = make().with_spec(versions=versions())
    splits = prepare_splits(judgment, data, judge, config, say)
    pairs = pairs_to_learn(config, known)
    if config.intents.mode == "mixed":
        splits["train"] = mixed_in(splits["train"], pairs, judge, config, say)
    if config.dry_run:
        report(Console(quiet=not state.is_main_process), config, judge, list(splits.values()))
        return None
    facts["backbone"] = {"revision": judge.spec.base.revision, "fingerprint": judge.spec.base.fingerprint}
    folder.check(config, facts)
    with sole_writer(folder.path) if state.is_main_process else nullcontext():
        if state.is_main_process:
            folder.open(config, facts)
        state.wait_for_everyone()
        if config.intents.mode == "sequential":
            learned = learn_intents(config, folder, judge, pairs, say)
            del judge  # one model at a time
            set_seed(config.seed)
            judge = make().with_spec(versions=versions())
            carry_over(learned, judge)
        return _learn(judgment, config, folder, judge, splits, make, say)


def whole_weights(config: TrainConfig) -> TrainConfig:
    """Full fine-tuning moves float32 weights: in 16 bits small updates are lost. A GPU computes in mixed precision.

    Raises ValueError for full fine-tuning of a quantized backbone.
    """
    if config.method == "lora":
        return config
    if config.model.quantization != "none":
        raise ValueError(f"method full cannot train {config.model.quantization} weights; use method lora (QLoRA)")
    return replace(config, model=replace(config.model, dtype="float32"))


def prepare_splits(
    judgment: Judgment[Any], data: RunData, judge: Judge, config: TrainConfig, say: Console
) -> dict[str, Split]:
    """Every split that has records, fitted and encoded; what was shortened or left out is said."""
    splits = {}
    for name, records in vars(data).items():
        if not records:
            continue
        with say.status(f"encoding {len(records)} {name} records"):
            split = prepare(f"data.{name}", judgment, records, judge, config.data.drop_too_long)
        facts = split.facts()
        cut = "".join(
            f", {facts[key]} {words}"
            for key, words in (("shortened", "shortened"), ("left_out", "left out"))
            if facts[key]
        )
        say.print(
            f"{name}: {facts['records']} records, {facts['yes']} yes, {facts['tokens']['mean']} tokens on average{cut}"
        )
        splits[name] = split
    return splits


def _learn(
    judgment: Judgment[Any],
    config: TrainConfig,
    folder: RunFolder,
    judge: Judge,
    splits: dict[str, Split],
    make: Callable[[], Judge],
    say: Console,
) -> dict[str, Any]:
    state = this_process()
    labels = splits["train"].dataset.labels
    wandb_run = WandbRun(config.tracking, asdict(config), folder.path, f"{judgment.name}-{folder.path.name}")
    callbacks: list[Any] = [
        MetricsFile(folder.metrics),
        Checkpoints(folder.checkpoints),
        ReportPage(folder, judgment.name),
        wandb_run,
    ]
    if config.evaluation.patience is not None:
        callbacks.append(EarlyStoppingCallback(config.evaluation.patience))
    transformers_logging.set_verbosity_warning()
    trainer = JudgeTrainer(
        judge,
        training_arguments(config, folder, len(labels), state.num_processes),
        splits["train"].dataset,
        splits["validation"].dataset,
        config.optim.batch_size,
        balanced_weights(list(labels)) if config.optim.class_weights == "balanced" else (1.0, 1.0),
        config.optim.label_smoothing,
        callbacks,
        config.optim.together,
    )
    refuse_to_shard(trainer, config)
    go_on(trainer, folder, say)
    summary = finish(judgment, config, folder, trainer, splits, make, say)
    wandb_run.finish(folder.adapter, summary)
    if state.is_main_process:
        publish_after(config, folder, judgment.name, say)
    return summary
