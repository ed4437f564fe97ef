"""The update does not depend on how a batch is cut; the loss is the one on paper."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from transformers.trainer_utils import EvalPrediction

from models.checkpoint import resolve
from models.judge import new_judge
from recipes.reading import read_records
from recipes.script_verify import SCRIPT_VERIFY
from train.batching import LengthBlockSampler
from train.config import TrainConfig
from train.data import prepare
from train.run import train
from train.trainer import balanced_weights, validation_metrics

LOSSES = {
    "plain": {"class_weights": "none", "label_smoothing": 0.0},
    "weighted and smoothed": {"class_weights": "balanced", "label_smoothing": 0.2},
}


def first_line(config: TrainConfig) -> dict[str, Any]:
    path = Path(config.run.folder) / "script_verify" / str(config.run.name) / "metrics.jsonl"
    return dict(json.loads(path.read_text().splitlines()[0]))


def one_update(config: TrainConfig, name: str, micro: int, loss: dict[str, Any]) -> TrainConfig:
    return replace(
        config,
        optim=replace(config.optim, micro_batch_size=micro, max_steps=1, max_grad_norm=1e9, **loss),
        run=replace(config.run, name=name),
    )


def by_hand(config: TrainConfig, loss: dict[str, Any]) -> tuple[float, float]:
    """(loss, gradient norm) of the first update, written out with plain torch on one batch."""
    torch.manual_seed(config.seed)
    judge = new_judge(
        resolve(config.checkpoint),
        "script_verify",
        SCRIPT_VERIFY.template_version,
        ("No", "Yes"),
        config.model,
        config.lora,
    )
    records = read_records(SCRIPT_VERIFY, config.data.train)
    dataset = prepare("train", SCRIPT_VERIFY, records, judge).dataset
    rows = list(LengthBlockSampler(dataset.lengths, 8, config.seed))[:8]
    labels = torch.tensor([dataset.labels[row] for row in rows])
    logits = judge.logits(judge.encoder.pad([dataset.encoded[row] for row in rows]))
    smooth = loss["label_smoothing"]
    target = torch.full((8, 2), smooth / 2)
    target[torch.arange(8), labels] += 1 - smooth
    losses = -(target * logits.log_softmax(-1)).sum(-1)
    yes = sum(dataset.labels)
    weights = {0: 32 / (2 * (32 - yes)), 1: 32 / (2 * yes)} if loss["class_weights"] == "balanced" else {0: 1.0, 1: 1.0}
    total = sum(weights[int(label)] * value for label, value in zip(labels, losses, strict=True)) / 8
    total.backward()
    norms = [p.grad.norm() for p in judge.model.parameters() if p.grad is not None]
    return float(total.detach()), float(torch.stack(norms).norm())


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs several configurations in one launch of two processes, and returns when all have ended."""

    def launch(configs: list[TrainConfig]) -> None:
        folder = tmp_path_factory.mktemp("launch")
        for number, config in enumerate(configs):
            (folder / f"{number}.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(asdict(config)))))
        script = Path(__file__).parent / "train_each.py"
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc_per_node",
            "2",
            str(script),
            str(folder),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]

    return launch


def test_the_update_does_not_depend_on_how_a_batch_is_cut(tiny_config: TrainConfig, two_processes: Any) -> None:
    cuts = {(1, 8): 1, (1, 2): 1, (2, 4): 2, (2, 2): 2}  # (processes, micro-batch)
    runs = {
        (processes, micro, kind): one_update(tiny_config, f"{kind}-{processes}-{micro}".replace(" ", "-"), micro, loss)
        for processes, micro in cuts
        for kind, loss in LOSSES.items()
    }
    two_processes([config for (processes, _, _), config in runs.items() if processes == 2])
    for (processes, _, _), config in runs.items():
        if processes == 1:
            train(SCRIPT_VERIFY, config)
    for kind, loss in LOSSES.items():
        expected_loss, expected_norm = by_hand(tiny_config, loss)
        for processes, micro in cuts:
            line = first_line(runs[processes, micro, kind])
            assert line["grad_norm"] == pytest.approx(expected_norm, rel=1e-4), (processes, micro, kind)
            assert line["loss"] == pytest.approx(expected_loss, rel=1e-4), (processes, micro, kind)


def test_balanced_weights_average_one() -> None:
    no, yes = balanced_weights([1, 0, 0, 0])
    assert (no, yes) == (4 / 6, 2.0)
    assert (3 * no + yes) / 4 == 1.0
    with pytest.raises(ValueError, match="both classes"):
        balanced_weights([1, 1])


def test_validation_counts_every_row_once_and_its_loss_is_the_plain_log_loss() -> None:
    logits = np.array([[0.0, 1.0], [2.0, 0.0]])
    metrics = validation_metrics(EvalPrediction(predictions=logits, label_ids=np.array([[1, 0], [1, 1]])))
    # -log sigmoid(1) = 0.3133, -log sigmoid(-2) = 2.1269; AUC of one class is left out.
    assert metrics["loss"] == pytest.approx((0.31326 + 2.12693) / 2, abs=1e-4)
    assert "auc" not in metrics
    # All margins below zero, yet in the right order: at the threshold between them both are right.
    logits = np.array([[1.0, 0.0], [3.0, 0.0]])
    metrics = validation_metrics(EvalPrediction(predictions=logits, label_ids=np.array([[1, 0], [0, 1]])))
    assert (metrics["accuracy"], metrics["macro_f1"]) == (1.0, 1.0)
    assert 0.047 < metrics["threshold"] < 0.269  # sigmoid(-3) and sigmoid(-1)
    with pytest.raises(RuntimeError, match="1 different rows among 2"):
        validation_metrics(EvalPrediction(predictions=logits, label_ids=np.array([[1, 0], [1, 0]])))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_training_that_has_blown_up_says_what_to_do(value: float) -> None:
    logits = np.array([[0.0, value], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"not finite any more; lower optim\.learning_rate"):
        validation_metrics(EvalPrediction(predictions=logits, label_ids=np.array([[1, 0], [0, 1]])))


def test_every_epoch_sees_each_row_in_full_updates_of_similar_length_with_the_longest_first() -> None:
    lengths = [(7 * row) % 101 + 1 for row in range(203)]
    sampler = LengthBlockSampler(lengths, 8, seed=3)
    orders = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        order = list(sampler)
        assert set(order) == set(range(203))
        assert len(order) == len(sampler) == 208  # five rows fill up the last of 26 updates
        assert max(Counter(order).values()) == 2
        first = sum(lengths[row] for row in order[:8])
        assert first == max(sum(lengths[row] for row in order[cut : cut + 8]) for cut in range(0, 208, 8))
        spread = [np.ptp([lengths[row] for row in order[cut : cut + 8]]) for cut in range(0, 208, 8)]
        assert np.median(spread) <= 10  # 100 apart in shuffled order
        orders.append(order)
    assert orders[0] != orders[1]
    again = LengthBlockSampler(lengths, 8, seed=3)
    assert list(again) == orders[0]
    assert list(LengthBlockSampler(lengths, 8, seed=4)) != orders[0]
    assert Counter(LengthBlockSampler([5, 6, 7], 8, seed=0)).keys() == {0, 1, 2}
    assert sorted(Counter(LengthBlockSampler([5, 6, 7], 8, seed=0)).values()) == [2, 3, 3]


def test_rows_that_share_go_together_in_pieces_that_change_with_the_epoch() -> None:
    lengths = [50 + row % 7 for row in range(240)]
    runs = [list(range(low, low + 12)) for low in range(0, 120, 12)]  # the other half of the rows shares nothing
    sampler = LengthBlockSampler(lengths, 8, seed=0, alike=runs, together=4)
    neighbours = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        order = list(sampler)
        assert sorted(order) == list(range(240))
        pairs = {(a, b) for a, b in pairwise(order) if b == a + 1 and b < 120 and b % 12}
        # Ten runs of 12 rows, each cut in three or four pieces, leave 8 or 9 pairs a run; an update's end cuts some.
        assert 60 <= len(pairs) <= 98
        neighbours.append(pairs)
    assert neighbours[0] != neighbours[1]
    sampler.set_epoch(0)
    assert list(sampler) == list(LengthBlockSampler(lengths, 8, 0, runs, 4)) != list(LengthBlockSampler(lengths, 8, 0))
