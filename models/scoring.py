"""Scoring prompts with a judge: batches planned by content, so that a score depends on neither order nor restarts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from models.encoding import Encoded
from models.judge import Judge

# Padded tokens in a batch. On a CPU larger batches fall out of the cache; see docs/experiments.md.
TOKEN_BUDGET = 2048


def plan_batches(lengths: Sequence[int], token_budget: int = TOKEN_BUDGET) -> list[list[int]]:
    """Row numbers in batches of at most ``token_budget`` padded tokens (a longer row goes alone), longest first.

    The plan follows from the lengths alone.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batches: list[list[int]] = []
    for row in order:
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= token_budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


@torch.inference_mode()
def batch_margins(judge: Judge, rows: Sequence[Encoded]) -> NDArray[np.float64]:
    """logit(yes) - logit(no) of each encoded row, shape [rows]."""
    batch = {key: tensor.to(judge.device) for key, tensor in judge.encoder.pad(rows).items()}
    judge.model.eval()
    logits = judge.logits(batch)
    margins: NDArray[np.float64] = (logits[:, 1] - logits[:, 0]).double().cpu().numpy()
    return margins


def score(
    judge: Judge, encoded: Sequence[Encoded], token_budget: int = TOKEN_BUDGET
) -> Iterator[tuple[list[int], NDArray[np.float64]]]:
    """Yield (row numbers, margins) batch by batch; every row comes exactly once."""
    for rows in plan_batches([len(row["input_ids"]) for row in encoded], token_budget):
        yield rows, batch_margins(judge, [encoded[row] for row in rows])


def margins(judge: Judge, encoded: Sequence[Encoded], token_budget: int = TOKEN_BUDGET) -> NDArray[np.float64]:
    """Margins of all rows in the order given, shape [rows]."""
    result = np.full(len(encoded), np.nan)
    for rows, values in score(judge, encoded, token_budget):
        result[rows] = values
    return result


def probabilities(margins: NDArray[np.float64], temperature: float = 1.0) -> NDArray[np.float64]:
    """P(yes) of each margin: sigmoid(margin / temperature)."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(margins / temperature, -700, 700))))
