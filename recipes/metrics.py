"""Measures of a yes/no judge: what training selects by and every examination reports."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score

Floats = NDArray[np.float64]


def binary_metrics(labels: ArrayLike, probabilities: ArrayLike, threshold: float = 0.5) -> dict[str, float]:
    """Accuracy, macro-F1, AUC, precision and recall of "yes", and the share judged yes.

    Args:
        labels: 0 or 1, shape [n].
        probabilities: of "yes", shape [n]; "yes" is said at ``>= threshold``.

    AUC is NaN where only one class is present.
    """
    y = np.asarray(labels, dtype=np.int64)
    p = np.asarray(probabilities, dtype=np.float64)
    said = (p >= threshold).astype(np.int64)
    return {
        "accuracy": float(accuracy_score(y, said)),
        "macro_f1": float(f1_score(y, said, average="macro", labels=[0, 1], zero_division=0.0)),
        "auc": float(roc_auc_score(y, p)) if len(np.unique(y)) == 2 else math.nan,
        "precision": float(precision_score(y, said, zero_division=0.0)),
        "recall": float(recall_score(y, said, zero_division=0.0)),
        "said_yes": float(said.mean()),
    }


def best_threshold(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """The threshold with the highest macro-F1; midway between neighbouring probabilities, nearest to 0.5 among equals.

    Choose it on validation data, never on the data that is reported.
    """
    y = np.asarray(labels, dtype=np.int64)
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    values, positives = p[order], y[order]
    # Cutting before index k says "no" to the k lowest: counts of the four outcomes for every k in 0..n.
    below_yes = np.concatenate([[0], np.cumsum(positives)])
    below_no = np.arange(len(y) + 1) - below_yes
    yes, no = below_yes[-1], below_no[-1]
    f1_yes = 2 * (yes - below_yes) / np.maximum(2 * (yes - below_yes) + (no - below_no) + below_yes, 1)
    f1_no = 2 * below_no / np.maximum(2 * below_no + below_yes + (no - below_no), 1)
    edges = np.concatenate([[0.0], (values[1:] + values[:-1]) / 2, [1.0]])
    real = np.concatenate([[True], values[1:] > values[:-1], [bool(values[-1] < 1.0)]])
    score = np.where(real, (f1_yes + f1_no) / 2, -1.0)
    best = np.flatnonzero(score >= score.max() - 1e-12)
    return float(edges[best[np.argmin(np.abs(edges[best] - 0.5))]])


def expected_calibration_error(
    labels: ArrayLike, probabilities: ArrayLike, bins: int = 10, equal_mass: bool = False
) -> float:
    """ECE of the probability of "yes" (Guo et al. 2017, eq. 5, for a binary probability); equal width or mass bins."""
    y = np.asarray(labels, dtype=np.float64)
    p = np.asarray(probabilities, dtype=np.float64)
    if equal_mass:
        parts = np.array_split(np.argsort(p, kind="stable"), min(bins, len(p)))
    else:
        place = np.minimum((p * bins).astype(np.int64), bins - 1)
        parts = [np.flatnonzero(place == k) for k in range(bins)]
    return float(sum(len(part) / len(p) * abs(p[part].mean() - y[part].mean()) for part in parts if len(part)))


def fit_temperature(labels: ArrayLike, margins: ArrayLike) -> float:
    """The temperature T in 0.05..20 that minimises the log loss of sigmoid(margin / T) (Guo et al. 2017, section 4.2).

    ``margins`` are logit("yes") - logit("no"), shape [n]. Dividing by T moves no margin across zero.
    """
    y = np.asarray(labels, dtype=np.float64)
    m = np.asarray(margins, dtype=np.float64)

    def loss(log_t: float) -> float:
        z = m / math.exp(log_t)
        return float(np.mean(np.logaddexp(0.0, z) - y * z))

    return float(math.exp(minimize_scalar(loss, bounds=(math.log(0.05), math.log(20.0)), method="bounded").x))
