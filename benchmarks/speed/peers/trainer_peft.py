"""transformers' Trainer with PEFT on labelled texts, as its documentation shows it or at its best.

`python trainer_peft.py TEXTS OUT --threads 2 [--best]`; TEXTS holds {"model", "train": [[text, label], ...]}.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import torch
from datasets import Dataset
from peft import LoraConfig, TaskType, get_peft_model
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("texts", type=Path)
parser.add_argument("out", type=Path)
parser.add_argument("--threads", type=int, required=True)
parser.add_argument("--best", action="store_true", help="bfloat16 weights, batches of like length")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--steps", type=int, default=16)
parser.add_argument("--learning_rate", type=float, default=5e-4)
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()


class Clock(TrainerCallback):
    """When each update ended, and its loss."""

    def __init__(self):
        self.ends, self.losses = [], []

    def on_step_end(self, args, state, control, **kwargs):
        self.ends.append(time.perf_counter())

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.losses.append(float(logs["loss"]))


torch.set_num_threads(given.threads)
set_seed(given.seed)
work = json.loads(given.texts.read_text(encoding="utf-8"))
tokenizer = AutoTokenizer.from_pretrained(work["model"])
tokenizer.pad_token = tokenizer.all_special_tokens[0]
dtype = torch.bfloat16 if given.best else torch.float32
model = AutoModelForSequenceClassification.from_pretrained(work["model"], num_labels=2, dtype=dtype)
model.config.pad_token_id = tokenizer.pad_token_id
lora = LoraConfig(task_type=TaskType.SEQ_CLS, r=32, lora_alpha=64, lora_dropout=0.0, target_modules="all-linear")
model = get_peft_model(model, lora)
data = Dataset.from_list([{"text": text, "labels": label} for text, label in work["train"]])
data = data.map(lambda row: tokenizer(row["text"], truncation=True, max_length=1024), remove_columns="text")
clock = Clock()
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=str(given.out) + ".trainer",
        per_device_train_batch_size=given.batch,
        max_steps=given.steps,
        learning_rate=given.learning_rate,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        seed=given.seed,
        train_sampling_strategy="group_by_length" if given.best else "random",
    ),
    train_dataset=data,
    data_collator=DataCollatorWithPadding(tokenizer),
    callbacks=[clock],
)
trainer.train()
half = len(clock.ends) // 2
given.out.write_text(
    json.dumps(
        {
            "records_per_second": given.batch * (len(clock.ends) - half) / (clock.ends[-1] - clock.ends[half - 1]),
            "losses": clock.losses,
            "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }
    ),
    encoding="utf-8",
)
