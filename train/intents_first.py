"""The first stage of a sequential run: a judge learns purchase intents, and its adapter is what the judgment begins
with. It lies in the run's folder, as ``intents/``, with metrics and checkpoints of its own, and goes on by itself."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from peft import get_peft_model_state_dict, set_peft_model_state_dict
from rich.console import Console
from safetensors.torch import load_file

from models.judge import ADAPTER_WEIGHTS, Judge
from models.manifest import flush
from models.runtime import this_process
from recipes.intents.judgment import INTENTS, IntentRecord
from recipes.splits import split_by_group
from train.callbacks import MetricsFile
from train.checkpoints import Checkpoints
from train.config import RunConfig, TrainConfig
from train.data import prepare
from train.learning import go_on, training_arguments
from train.runs import RunFolder
from train.trainer import JudgeTrainer, balanced_weights

STAGE = "intents"


def stage_of(config: TrainConfig, folder: RunFolder) -> RunFolder:
    """The stage's folder, within that of its run."""
    run = RunConfig(folder=str(folder.path.parent), name=STAGE)
    return RunFolder(replace(config, run=run), folder.path.name)


def learn_intents(
    config: TrainConfig, folder: RunFolder, judge: Judge, pairs: Sequence[IntentRecord], say: Console
) -> Path:
    """Teach the judge the pairs, unless that has been done; the file with the adapter.

    A share of the products is held out (``data.validation_share``) to tell what was learned. Nothing is chosen by it:
    the last update counts, so that true and shuffled intents were learned from equally long. The judge is spent
    afterwards; what is carried over is in the file.
    """
    state = this_process()
    stage = stage_of(config, folder)
    done = stage.path / ADAPTER_WEIGHTS
    if done.is_file():
        say.print(f"the intents are learned: {done}")
        return done
    share = config.data.validation_share
    parts = split_by_group(pairs, {"train": 1 - share, "validation": share}, config.seed)
    sets = {
        name: prepare(f"intents ({name})", INTENTS, records, judge, config.data.drop_too_long).dataset
        for name, records in parts.items()
    }
    say.print(f"learning {len(sets['train'])} intent pairs, {len(sets['validation'])} held out")
    if state.is_main_process:
        stage.path.mkdir(parents=True, exist_ok=True)
    state.wait_for_everyone()
    labels = sets["train"].labels
    own = replace(config, optim=replace(config.optim, epochs=config.intents.epochs, max_steps=None))
    arguments = training_arguments(own, stage, len(labels), state.num_processes)
    arguments.load_best_model_at_end = False
    trainer = JudgeTrainer(
        judge,
        arguments,
        sets["train"],
        sets["validation"],
        config.optim.batch_size,
        balanced_weights(list(labels)) if config.optim.class_weights == "balanced" else (1.0, 1.0),
        config.optim.label_smoothing,
        [MetricsFile(stage.metrics), Checkpoints(stage.checkpoints)],
        config.optim.together,
    )
    _refuse_sharded(trainer)
    go_on(trainer, stage, say)
    _keep(trainer, stage, done, config.evaluation.metric, say)
    trainer.accelerator.free_memory()
    return done


def carry_over(file: Path, judge: Judge) -> None:
    """Put the adapter of ``file`` into a new judge, whose head stays as it was drawn."""
    own = get_peft_model_state_dict(judge.model, save_embedding_layers=False)
    learned = {name: weight for name, weight in load_file(file).items() if "lora_" in name}
    if odd := sorted({name for name in own if "lora_" in name} ^ learned.keys()):
        raise ValueError(f"{file}: {', '.join(odd[:5])}: not what the adapter takes; remove the run's folder")
    set_peft_model_state_dict(judge.model, {**own, **learned})


def _refuse_sharded(trainer: JudgeTrainer) -> None:
    """Raises ValueError: a second model in one sharded process is not tried."""
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        raise ValueError(
            "intents.mode sequential is not for sharded training; start with "
            "--config_file configs/accelerate/multi-gpu.yaml, or take --intents.mode mixed"
        )


def _keep(trainer: JudgeTrainer, stage: RunFolder, done: Path, metric: str, say: Console) -> None:
    """Write the adapter under its name once it is whole on the disk; that ends the stage."""
    state = this_process()
    last = stage.checkpoints / "last"
    trainer.save_model(str(last))
    state.wait_for_everyone()
    if state.is_main_process:
        flush(last / ADAPTER_WEIGHTS)
        (last / ADAPTER_WEIGHTS).replace(done)
        flush(stage.path)
        shutil.rmtree(last)
        seen = next(line for line in reversed(trainer.state.log_history) if f"eval_{metric}" in line)
        say.print(f"learned the intents: {metric} {seen[f'eval_{metric}']:.3f} on pairs of held-out products")
    state.wait_for_everyone()
