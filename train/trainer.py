"""JudgeTrainer: transformers' Trainer with a classification loss that does not depend on how a batch is cut."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import Sampler
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import EvalPrediction

from models.judge import Judge
from models.packing import Forest
from recipes.metrics import best_threshold, binary_metrics, expected_calibration_error
from train.batching import Collator, EncodedDataset, LengthBlockSampler
from train.callbacks import SteadyMemory, Throughput


class JudgeTrainer(Trainer):
    """Teaches a judge by cross-entropy over (no, yes).

    Args:
        judge: its ``model`` is trained in place.
        batch_size: records an update over all processes; the order of records follows from it.
        class_weights: weight of a record by its label, averaging 1 over the training records.
        label_smoothing: in training only; validation loss is neither smoothed nor weighted.
        together: records that begin alike (same goal, same step) laid into one update, where the judge computes what
            they share once; 1 leaves the order to chance.
    """

    # The loss below is already divided by the records of the whole update, so that Trainer must not divide it again.
    loss_is_scaled_for_ga = True

    def __init__(
        self,
        judge: Judge,
        args: TrainingArguments,
        train_dataset: EncodedDataset | None,
        eval_dataset: EncodedDataset,
        batch_size: int,
        class_weights: tuple[float, float] = (1.0, 1.0),
        label_smoothing: float = 0.0,
        callbacks: list[TrainerCallback] | None = None,
        together: int = 1,
    ) -> None:
        super().__init__(
            model=judge.model,
            args=args,
            data_collator=Collator(judge),
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            compute_metrics=validation_metrics,
            callbacks=callbacks,
        )
        self.throughput = Throughput(judge.model)
        self.callback_handler.callbacks.insert(0, self.throughput)  # it adds to lines that the others write
        self.add_callback(SteadyMemory())
        if self.args.n_gpu > 1:
            raise RuntimeError("several GPUs in one process: start with `accelerate launch`, one process a GPU")
        # Makes Trainer count the records of a whole update over all processes and hand the count to compute_loss.
        self.model_accepts_loss_kwargs = True
        self.judge = judge
        self.batch_size = batch_size
        self.together = together
        self.class_weights = torch.tensor(class_weights)
        self.label_smoothing = label_smoothing

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """Sum of the records' losses, divided by the records of the whole update (transformers#47688).

        Distributed training averages gradients over processes, hence the factor of their number.
        """
        batch, labels = inputs["batch"], inputs["labels"]
        self.throughput.watch(batch, len(labels))
        logits = self.judge.logits(batch, model)
        weights = self.class_weights.to(logits.device)
        losses = F.cross_entropy(logits, labels, label_smoothing=self.label_smoothing, reduction="none")
        count = len(labels) if num_items_in_batch is None else num_items_in_batch
        loss = (losses * weights[labels]).sum() / count * self.accelerator.num_processes
        return (loss, {"logits": logits}) if return_outputs else loss

    def prediction_step(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        prediction_loss_only: bool,
        ignore_keys: list[str] | None = None,
    ) -> tuple[None, torch.Tensor, torch.Tensor]:
        """Class logits [rows, 2], and (label, row number) [rows, 2]: metrics are made of rows, never of batch means."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            logits = self.judge.logits(inputs["batch"], model)
        return None, logits.detach(), torch.stack([inputs["labels"], inputs["row"]], dim=1)

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        dataset = train_dataset or self.train_dataset
        rows = [encoded["input_ids"] for encoded in dataset.encoded]
        alike = Forest(rows).runs() if self.together > 1 and self.judge.packs else []
        return LengthBlockSampler(dataset.lengths, self.batch_size, self.args.seed, alike, self.together)

    def _get_eval_sampler(self, eval_dataset: Any) -> Sampler[int]:
        """Longest first, so that little is padding; `validation_metrics` and `margins_of` go by row numbers."""
        return _InOrder(sorted(range(len(eval_dataset)), key=lambda row: -eval_dataset.lengths[row]))

    def margins_of(self, dataset: EncodedDataset) -> NDArray[np.float64]:
        """logit(yes) - logit(no) of each record, [rows], the same on every process; all processes must call it."""
        prediction = self.predict(dataset)
        return _margins_in_order(prediction.predictions, prediction.label_ids)[0]


class _InOrder(Sampler[int]):
    """A fixed order of rows."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows)


def validation_metrics(prediction: EvalPrediction) -> dict[str, float]:
    """Metrics at the best threshold of these rows, and the plain log loss, over every row exactly once.

    The threshold is chosen as it will be for the finished judge: at 0.5 a judge that ranks well but leans to one side
    would pass for one that knows nothing.

    Raises RuntimeError if a row is missing or was counted twice, and ValueError if training has blown up.
    """
    margins, labels = _margins_in_order(prediction.predictions, prediction.label_ids)
    if not np.isfinite(margins).all():
        raise ValueError("the judge's answers are not finite any more; lower optim.learning_rate")
    p = 1.0 / (1.0 + np.exp(-margins))
    threshold = best_threshold(labels, p)
    loss = float(np.mean(np.logaddexp(0.0, margins) - labels * margins))
    metrics = {
        **binary_metrics(labels, p, threshold),
        "threshold": threshold,
        "loss": loss,
        "ece": expected_calibration_error(labels, p),
    }
    return {name: value for name, value in metrics.items() if not math.isnan(value)}


def _margins_in_order(predictions: Any, label_ids: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(margins, labels) by row number, from class logits and (label, row number) pairs in any order."""
    logits = np.asarray(predictions, dtype=np.float64)
    labels, rows = np.asarray(label_ids).T
    if sorted(rows.tolist()) != list(range(len(rows))):
        raise RuntimeError(
            f"validation saw {len(set(rows.tolist()))} different rows among {len(rows)}; none may be missing or twice"
        )
    order = np.argsort(rows)
    return (logits[:, 1] - logits[:, 0])[order], labels[order]


def balanced_weights(labels: list[int]) -> tuple[float, float]:
    """n / (2 n_class) for (no, yes): both classes weigh the same in total, and the average weight is 1."""
    count = len(labels)
    yes = sum(labels)
    if yes in (0, count):
        raise ValueError("class weights need both classes among the training records")
    return count / (2 * (count - yes)), count / (2 * yes)
