"""The configuration of a training run: one tree of dataclasses; every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from models.backbone import LoadSettings
from models.limits import SEEDS, THREADS, Limits
from models.lora import LoraSettings


@dataclass(frozen=True)
class DataConfig:
    """What to learn from. A reference is a JSONL or Parquet file, a hub data set (org/name[@revision][:split]), or
    sample:train, sample:validation, sample:test.

    Attributes:
        validation: None holds out ``validation_share`` of the training groups.
        test: scored once, at the end; None to leave it to scripts/evaluate.py.
        max_length: tokens allowed a record; None takes the backbone's limit. Longer records lose product text.
        drop_too_long: leave out (and count) what cannot be made to fit, where the default is to refuse the run.
    """

    train: str = "sample:train"
    validation: str | None = "sample:validation"
    test: str | None = None
    validation_share: Annotated[float, Limits(above=0, below=1)] = 0.1
    max_length: Annotated[int, Limits(1)] | None = None
    drop_too_long: bool = False


@dataclass(frozen=True)
class OptimConfig:
    """How the weights move.

    Attributes:
        batch_size: records an update, over all processes together; learning depends on this alone.
        micro_batch_size: records a process computes at once; how the batch is cut, which changes no result.
        epochs: passes over the data; ``max_steps`` (updates), if given, wins.
        warmup: share of the updates over which the learning rate rises.
        class_weights: none, or balanced: n / (2 n_class) from the training records.
        label_smoothing: mass moved from the label to both classes evenly.
        gradient_checkpointing: less memory for about half more time.
    """

    learning_rate: Annotated[float, Limits(above=0)] = 1e-4
    batch_size: Annotated[int, Limits(1)] = 32
    micro_batch_size: Annotated[int, Limits(1)] = 8
    epochs: Annotated[float, Limits(above=0)] = 3.0
    max_steps: Annotated[int, Limits(1)] | None = None
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup: Annotated[float, Limits(0, 1)] = 0.05
    weight_decay: Annotated[float, Limits(0)] = 0.0
    max_grad_norm: Annotated[float, Limits(0)] = 1.0
    label_smoothing: Annotated[float, Limits(0, below=1)] = 0.0
    class_weights: Literal["none", "balanced"] = "none"
    gradient_checkpointing: bool = False


@dataclass(frozen=True)
class EvaluationConfig:
    """When to look at the validation records, and which checkpoint is best.

    Attributes:
        every: updates between evaluations, each followed by a checkpoint; below 1 a share of the run.
        metric: accuracy, macro_f1, precision or recall at the best threshold; auc, loss or ece.
        direction: which way ``metric`` is better; auto is down for loss and ece, up for the others.
        patience: evaluations without a new best after which to stop; None never stops early.
    """

    every: Annotated[float, Limits(above=0)] = 0.2
    metric: Literal["accuracy", "macro_f1", "precision", "recall", "auc", "loss", "ece"] = "macro_f1"
    direction: Literal["auto", "up", "down"] = "auto"
    patience: Annotated[int, Limits(1)] | None = None
    batch_size: Annotated[int, Limits(1)] = 16

    @property
    def upwards(self) -> bool:
        """Whether a higher ``metric`` is better."""
        return self.direction == "up" if self.direction != "auto" else self.metric not in ("loss", "ece")


@dataclass(frozen=True)
class TrackingConfig:
    """Where the curves go besides metrics.jsonl.

    Attributes:
        wandb: auto is online where W&B finds an account, else offline; it never asks.
        log_every: updates between lines.
    """

    wandb: Literal["auto", "online", "offline", "disabled"] = "auto"
    project: str = "ecomjudge"
    entity: str | None = None
    log_every: Annotated[int, Limits(1)] = 5


@dataclass(frozen=True)
class RunConfig:
    """Where the run lives: ``folder/<judgment>/<name>``. A run that was stopped goes on; ``overwrite`` starts anew."""

    folder: str = "runs"
    name: str | None = None
    overwrite: bool = False


@dataclass(frozen=True)
class HubConfig:
    """Where ``push_to_hub`` publishes the judge when training has ended; scripts/publish.py does the same later.

    Attributes:
        repo: org/name, or a name under your own account; None calls it <judgment>-<name of the run>.
        private: whether the repository is private, should it have to be made.
        revision: the branch; None is main.
        license: as the hub names licences (apache-2.0, mit, ...); None takes the backbone's.
    """

    repo: str | None = None
    private: bool = False
    revision: str | None = None
    license: str | None = None


@dataclass(frozen=True)
class TrainConfig:
    """A training run.

    Attributes:
        checkpoint: the backbone: a packaged name (minilm, smollm2-135m), a folder, or a hub id (org/name[@revision]).
        method: lora, or full fine-tuning of every weight.
        push_to_hub: publish the judge at the end, as ``hub`` says; token, rights and name are checked before training.
        threads: CPU threads a process; None shares the machine's cores among the processes on it.
        dry_run: check configuration, data and model, print what would happen, and train nothing.
    """

    checkpoint: str = "minilm"
    method: Literal["lora", "full"] = "lora"
    model: LoadSettings = field(default_factory=LoadSettings)
    lora: LoraSettings = field(default_factory=LoraSettings)
    data: DataConfig = field(default_factory=DataConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    run: RunConfig = field(default_factory=RunConfig)
    hub: HubConfig = field(default_factory=HubConfig)
    push_to_hub: bool = False
    seed: Annotated[int, SEEDS] = 0
    threads: Annotated[int, THREADS] | None = None
    dry_run: bool = False
