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
class IntentsConfig:
    """Purchase-intent knowledge that a judge is given, see docs/intents.md.

    Attributes:
        mode: none; sequential (learns to tell right pairs of product and intent from wrong ones, then the judgment with
            the same adapter and a new head); mixed (learns both at once); context (reads a product's intents beside
            it, in training and ever after).
        data: files in the ``intents`` format, FolkScope's or MIND's CSV, IntentionQA's task 1, or sample:train.
        apart: records that the judge will be examined on, which the knowledge must not tell of either; validation and
            test records never need to be named.
        overlap: what is done with knowledge of products that are to be judged, and with intents that are the very
            text of a goal or step to be judged: refuse the run, drop it, or allow it (where it was not made from what
            is judged, such as intents mined from the catalogue).
        shuffled: the control: as many intents, each with a product that is not its own.
        min_plausibility, min_typicality: intents of lower score are left out, and those without one.
        limit: draw so many right intents; None takes all.
        negatives: wrong pairs a right one: those that the source calls wrong, then intents of other products.
        hard: share of the intents of other products that are chosen for being similar to the product's own.
        embedder: the sentence encoder that finds these: a packaged name, a folder, or a hub id.
        ratio: mixed: pairs a record of the judgment, as far as there are pairs.
        epochs: sequential: passes over the pairs.
        shown: context: intents beside a product at most.
        hidden: context: share of the training records that show none, so that unknown products are nothing new.
    """

    mode: Literal["none", "sequential", "mixed", "context"] = "none"
    data: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    overlap: Literal["refuse", "drop", "allow"] = "refuse"
    shuffled: bool = False
    min_plausibility: Annotated[float, Limits(0)] | None = None
    min_typicality: Annotated[float, Limits(0)] | None = None
    limit: Annotated[int, Limits(1)] | None = None
    negatives: Annotated[float, Limits(above=0)] = 1.0
    hard: Annotated[float, Limits(0, 1)] = 0.5
    embedder: str = "minilm"
    ratio: Annotated[float, Limits(above=0)] = 1.0
    epochs: Annotated[float, Limits(above=0)] = 1.0
    shown: Annotated[int, Limits(1, 100)] = 3
    hidden: Annotated[float, Limits(0, 1)] = 0.2


@dataclass(frozen=True)
class OptimConfig:
    """How the weights move.

    Attributes:
        batch_size: records an update, over all processes together; learning depends on this alone.
        micro_batch_size: records a process computes at once; how the batch is cut, which changes no result.
        together: records that begin alike (the same goal, the same step) and go into one update, where a decoder
            computes what they share once; 1 leaves the order to chance. It changes what an update sees.
        epochs: passes over the data; ``max_steps`` (updates), if given, wins.
        warmup: share of the updates over which the learning rate rises.
        class_weights: none, or balanced: n / (2 n_class) from the training records.
        label_smoothing: mass moved from the label to both classes evenly.
        gradient_checkpointing: less memory for about half more time.
    """

    learning_rate: Annotated[float, Limits(above=0)] = 1e-4
    batch_size: Annotated[int, Limits(1)] = 32
    micro_batch_size: Annotated[int, Limits(1)] = 8
    together: Annotated[int, Limits(1)] = 1
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
        every: share of the run between evaluations, each followed by a checkpoint (1: one, at the end); above 1 so many
            updates.
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
    intents: IntentsConfig = field(default_factory=IntentsConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    run: RunConfig = field(default_factory=RunConfig)
    hub: HubConfig = field(default_factory=HubConfig)
    push_to_hub: bool = False
    seed: Annotated[int, SEEDS] = 0
    threads: Annotated[int, THREADS] | None = None
    dry_run: bool = False
