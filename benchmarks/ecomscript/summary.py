"""The numbers made of the predictions, and the table that a person reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.table import Table

from benchmarks.ecomscript.baselines import coin, majority
from recipes.base import Record
from recipes.intervals import LEVEL, Interval, bootstrap
from recipes.metrics import binary_metrics, expected_calibration_error

Prediction = Mapping[str, Any]


def measure(predictions: Sequence[Prediction], resamples: int, bins: int, seed: int) -> dict[str, Any]:
    """Metrics with intervals, calibration, class balance and lengths, from prediction lines alone.

    Written answers have no probability: their AUC and calibration are blank.
    """
    labels, said = _column(predictions, "label"), _column(predictions, "verdict")
    plain = binary_metrics(labels, said)  # verdicts as probabilities: of no use for the AUC, right for the rest
    tokens, shots = _column(predictions, "tokens"), _column(predictions, "shots")
    probable = all(line["p_yes"] is not None for line in predictions)
    scores = [line["margin"] for line in predictions] if probable else said
    intervals = _intervals(labels, scores, said, predictions, resamples, seed)
    if not probable:
        intervals["auc"] = asdict(Interval(None, None, None))
    return {
        "n": len(labels),
        "yes": int(labels.sum()),
        "groups": len({line["group"] for line in predictions}),
        "metrics": {**intervals, **{name: plain[name] for name in ("precision", "recall", "said_yes")}},
        "calibration": _calibration(labels, predictions, bins) if probable else None,
        "tokens": {"total": int(tokens.sum()), "mean": float(tokens.mean()), "max": int(tokens.max())},
        "shots": {"min": int(shots.min()), "mean": float(shots.mean()), "max": int(shots.max())},
        "shortened": sum(line["shortened"] for line in predictions),
        "rescored": sum(line.get("rescored", False) for line in predictions),
        "bootstrap": {"resamples": resamples, "seed": seed, "level": LEVEL, "over": "groups", "interval": "percentile"},
    }


def _calibration(labels: Any, predictions: Sequence[Prediction], bins: int) -> dict[str, Any]:
    p = np.array([line["p_yes"] for line in predictions])
    return {
        "ece": expected_calibration_error(labels, p, bins),
        "ece_equal_mass": expected_calibration_error(labels, p, bins, equal_mass=True),
        "bins": bins,
    }


def measure_answers(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Of written answers, how many said neither yes nor no (or were undecided between samples), how many texts were cut
    at the limit, and how many tokens were written. What was not read is scored as wrong."""
    unread = Counter(line["unread"] for line in predictions)
    return {
        "unparsed": unread["unparsed"],
        "undecided": unread["undecided"],
        "cut": sum(line["cut"] for line in predictions),
        "written": sum(line["written"] for line in predictions),
    }


def measure_baselines(
    predictions: Sequence[Prediction], counted: Sequence[Record], where: str, resamples: int, seed: int
) -> dict[str, Any]:
    """Metrics with intervals, on the same records, of the majority class among ``counted`` and of a coin."""
    labels = _column(predictions, "label")
    baselines = {"majority": majority(counted, where, len(labels)), "random": coin(labels, seed)}
    return {
        name: {**made.facts, "metrics": _intervals(labels, made.margins, made.verdicts, predictions, resamples, seed)}
        for name, made in baselines.items()
    }


def _column(predictions: Sequence[Prediction], name: str) -> Any:
    return np.array([line[name] for line in predictions], dtype=np.int64)


def _intervals(
    labels: ArrayLike, scores: ArrayLike, said: ArrayLike, predictions: Sequence[Prediction], resamples: int, seed: int
) -> dict[str, Any]:
    groups = [line["group"] for line in predictions]
    intervals = bootstrap(labels, scores, said, groups, resamples, seed)
    return {name: asdict(interval) for name, interval in intervals.items()}


def table(results: Mapping[str, Any]) -> Table:
    """The examined one and the baselines, with their 95 % intervals."""
    subject = results["subject"]
    shots = f", {results['shots']['max']} shots" if results["shots"]["max"] else ""
    title = f"{results['judgment']}: {results['n']} records, {results['yes']} yes, {results['groups']} groups"
    shown = Table("", "accuracy", "macro-F1", "AUC", "ECE", title=title, caption=_caption(results))
    ece = f"{results['calibration']['ece']:.3f}" if results["calibration"] else "-"
    shown.add_row(f"{subject['name']} ({subject['method']}{shots})", *_cells(results["metrics"]), ece)
    for name, baseline in results["baselines"].items():
        told = f"majority: {'yes' if baseline['class'] else 'no'}" if name == "majority" else "random"
        shown.add_row(told, *_cells(baseline["metrics"]), "-")
    return shown


def _caption(results: Mapping[str, Any]) -> str:
    threshold, answers, refused = results["threshold"], results.get("answers"), results["refused"]["count"]
    parts = [
        "95 % bootstrap intervals over groups",
        *([f"threshold {threshold['value']:.4f} ({threshold['from']})"] if threshold else []),
        *([f"unparsed {answers['unparsed']}, undecided {answers['undecided']}, scored as wrong"] if answers else []),
        f"{results['shortened']} records shortened, {refused} left out",
        *([f"{results['rescored']} scored again in float32"] if results.get("rescored") else []),
        f"majority counted on {results['baselines']['majority']['class_from']}",
    ]
    return "; ".join(parts)


def _cells(metrics: Mapping[str, Any]) -> list[str]:
    return [_cell(metrics[name]) for name in ("accuracy", "macro_f1", "auc")]


def _cell(interval: Mapping[str, Any]) -> str:
    if interval["value"] is None:
        return "-"
    if interval["low"] is None:
        return f"{interval['value']:.3f}"
    return f"{interval['value']:.3f} [{interval['low']:.3f}, {interval['high']:.3f}]"
