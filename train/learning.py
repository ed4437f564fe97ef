"""What every stage of a run does: transformers' arguments from our configuration, and going on where it was stopped."""

from __future__ import annotations

import math
import sys

import torch
from rich.console import Console
from transformers import TrainingArguments

from models.runtime import this_process
from train.checkpoints import newest_whole, written_by
from train.config import TrainConfig
from train.runs import RunFolder
from train.trainer import JudgeTrainer


def go_on(trainer: JudgeTrainer, folder: RunFolder, say: Console) -> None:
    """Train from the newest whole checkpoint on, or from the beginning where there is none."""
    state = this_process()
    with state.main_process_first():
        last = newest_whole(folder.checkpoints)
    if last is not None:
        step, wrote = int(last.name.rsplit("-", 1)[1]), written_by(last)
        others = f"; {wrote} processes wrote it, so dropout is drawn anew" if wrote != state.num_processes else ""
        say.print(f"resuming {folder.path} from update {step} ({last.name}{others})")
        if state.is_main_process:
            folder.cut_metrics(step)
    trainer.train(resume_from_checkpoint=str(last) if last else None)


def training_arguments(config: TrainConfig, folder: RunFolder, records: int, processes: int) -> TrainingArguments:
    """transformers' arguments for a run. Raises ValueError where the batch cannot be cut as asked."""
    optim = config.optim
    micro = min(optim.micro_batch_size, max(1, optim.batch_size // processes))
    if optim.batch_size % (micro * processes):
        raise ValueError(
            f"optim.batch_size {optim.batch_size} is not a multiple of optim.micro_batch_size {micro} x {processes} "
            f"processes; give {micro * processes * max(1, round(optim.batch_size / (micro * processes)))}"
        )
    updates = optim.max_steps or math.ceil(math.ceil(records / optim.batch_size) * optim.epochs)
    every = config.evaluation.every
    steps = max(1, round(every * updates)) if every <= 1 else min(round(every), updates)  # at least at the end
    return TrainingArguments(
        output_dir=str(folder.checkpoints),
        per_device_train_batch_size=micro,
        per_device_eval_batch_size=config.evaluation.batch_size,
        gradient_accumulation_steps=optim.batch_size // (micro * processes),
        learning_rate=optim.learning_rate,
        num_train_epochs=optim.epochs,
        max_steps=optim.max_steps or -1,
        lr_scheduler_type=optim.schedule if optim.schedule != "constant" else "constant_with_warmup",
        warmup_steps=math.ceil(optim.warmup * updates),
        weight_decay=optim.weight_decay,
        max_grad_norm=optim.max_grad_norm,
        activation_checkpointing=optim.gradient_checkpointing,
        activation_checkpointing_kwargs={"use_reentrant": False},
        # Without it, processes on a machine without an accelerator each take themselves for the only one.
        use_cpu=not torch.accelerator.is_available(),
        bf16=config.method == "full" and torch.cuda.is_available() and torch.cuda.is_bf16_supported(),
        eval_strategy="steps",
        eval_steps=steps,
        save_strategy="steps",
        save_steps=steps,
        load_best_model_at_end=True,
        metric_for_best_model=config.evaluation.metric,
        greater_is_better=config.evaluation.upwards,
        logging_steps=config.tracking.log_every,
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=not sys.stderr.isatty(),
        remove_unused_columns=False,
        label_names=["labels"],
        seed=config.seed,
        data_seed=config.seed,
        ddp_find_unused_parameters=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )


def refuse_to_shard(trainer: JudgeTrainer, config: TrainConfig) -> None:
    """Raises ValueError for what accelerate's FSDP2 cannot do (tried with 1.15): it fails late, or in other words."""
    if not trainer.is_fsdp_enabled:
        return
    quantized = config.model.quantization != "none"
    if quantized or trainer.judge.encoder.bidirectional:
        what = "a quantized backbone" if quantized else "an encoder"
        raise ValueError(f"FSDP cannot shard {what}; start with --config_file configs/accelerate/multi-gpu.yaml")
