"""What watches a training run: metrics.jsonl, throughput, and W&B."""

from __future__ import annotations

import json
import netrc
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from models.judge import Batch
from models.packing import Packed
from models.precision import compute_dtype, flops_per_token, peak_memory, rate
from models.runtime import resident_memory, return_freed_memory
from train.config import TrackingConfig


class MetricsFile(TrainerCallback):
    """Appends each logged line to ``metrics.jsonl``; the main process only.

    Trainer's closing ``train_loss`` is left out: after a restart it averages the updates since then alone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        if state.is_world_process_zero and logs:
            with self.path.open("a", encoding="utf-8") as file:
                line = {"step": state.global_step, **{key: value for key, value in logs.items() if key != "train_loss"}}
                file.write(json.dumps(line, sort_keys=True) + "\n")


class Throughput(TrainerCallback):
    """Adds to each logged training line, for the time since the last one: tokens/s and records/s, the share of padding
    among the tokens computed, and the share of the records' tokens that were not computed because another record of
    the batch begins with them as well; ``mfu``, the share of the machine's own rate of matrix products (measured when
    training begins) at which the linear layers ran; and the most memory held so far, in GiB.

    The figures are of this process; ``watch`` is called with each batch.
    """

    def __init__(self, model: nn.Module) -> None:
        self.flops = flops_per_token(model, learning=True)
        self.dtype = compute_dtype(model)
        self.rate: float | None = None
        self.real = self.computed = self.padding = self.rows = 0
        self.since = time.perf_counter()

    def watch(self, batch: Batch, rows: int) -> None:
        """Count a batch of so many records."""
        if isinstance(batch, Packed):
            self.real += batch.unshared
            self.computed += batch.tokens
            self.padding += batch.filling
        else:
            mask = batch["attention_mask"]
            real = int(mask.sum())
            self.real += real
            self.computed += mask.numel()
            self.padding += mask.numel() - real
        self.rows += rows

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.rate = rate(self.dtype, args.device)

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.rows == 0:
            self.since = time.perf_counter()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        if logs is None or "loss" not in logs or not self.rows:
            return
        seconds = max(time.perf_counter() - self.since, 1e-9)
        logs["tokens_per_second"] = round(self.real / seconds, 1)
        logs["records_per_second"] = round(self.rows / seconds, 2)
        logs["padding_share"] = round(self.padding / self.computed, 4)
        logs["shared_share"] = round(1 - (self.computed - self.padding) / self.real, 4)
        if self.rate is not None:
            logs["mfu"] = round(self.flops * self.computed / seconds / (self.rate * 1e9), 4)
        logs["peak_memory_gib"] = round(peak_memory(), 3)
        self.real = self.computed = self.padding = self.rows = 0


class SteadyMemory(TrainerCallback):
    """Keeps a run on a CPU near the memory of its first update, which has the longest batch.

    The C library keeps freed memory for what comes next, but batches of other sizes do not fit the holes: what is in
    use comes back to the same level after every update, while the process grows (docs/experiments.md). Once it is
    ``GROWTH`` times as large as after the first update, the holes are given back; the next update takes a few percent
    longer for it.
    """

    GROWTH = 1.1

    def __init__(self) -> None:
        self.first: int | None = None

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if args.device.type != "cpu":
            return
        held = resident_memory()
        if self.first is None:
            self.first = held
        elif held > self.GROWTH * self.first:
            return_freed_memory()


class WandbRun(TrainerCallback):
    """A W&B run on the main process: configuration, metrics, and the adapter as an artifact at the end.

    Offline where no account is found; it never asks for one.
    """

    def __init__(self, settings: TrackingConfig, config: dict[str, Any], folder: Path, name: str) -> None:
        self.settings = settings
        self.config = config
        self.folder = folder
        self.name = name
        self.run: Any = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if not state.is_world_process_zero or self.settings.wandb == "disabled" or self.run is not None:
            return
        import wandb

        self.run = wandb.init(
            project=self.settings.project,
            entity=self.settings.entity,
            name=self.name,
            dir=str(self.folder),
            config=self.config,
            mode=wandb_mode(self.settings.wandb),  # type: ignore[arg-type]
            settings=wandb.Settings(silent=True, console="off"),
        )

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        if self.run is not None and logs:
            self.run.log(
                {key: value for key, value in logs.items() if not isinstance(value, str)}, step=state.global_step
            )

    def finish(self, adapter: Path | None, summary: dict[str, Any]) -> None:
        """Log the adapter's folder as an artifact, set the summary and end the run."""
        if self.run is None:
            return
        import wandb

        self.run.summary.update(summary)
        if adapter is not None:
            artifact = wandb.Artifact(f"{self.name}-adapter", type="model")
            artifact.add_dir(str(adapter))
            self.run.log_artifact(artifact)
        self.run.finish()
        self.run = None


def wandb_mode(asked: str) -> str:
    """online, offline or disabled; auto is what WANDB_MODE says, else online where a key is configured."""
    if asked != "auto":
        return asked
    if mode := os.environ.get("WANDB_MODE"):
        return mode
    return "online" if os.environ.get("WANDB_API_KEY") or _key_in_netrc() else "offline"


def _key_in_netrc() -> bool:
    """Whether `wandb login` has left a key for the configured server."""
    import wandb

    try:
        host = urlsplit(wandb.Settings().base_url).hostname or ""
        return netrc.netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False
