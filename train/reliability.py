"""The picture of a card: whether a probability of 0.8 is right eight times in ten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

PICTURE = "calibration.png"
BINS = 10  # of equal width, as for the expected calibration error
INK, FAINT, BAR = "#1f2933", "#9aa5b1", "#2a6f97"


def reliability(labels: ArrayLike, p: ArrayLike, bins: int = BINS) -> list[tuple[float, float, int]]:
    """(mean p(yes), share of yes, records) of each bin of equal width that has records.

    Args:
        labels: 0 or 1, [records].
        p: probability of yes, [records].
    """
    y, probability = np.asarray(labels, np.float64), np.asarray(p, np.float64)
    place = np.minimum((probability * bins).astype(np.int64), bins - 1)
    parts = [np.flatnonzero(place == k) for k in range(bins)]
    return [(float(probability[part].mean()), float(y[part].mean()), len(part)) for part in parts if len(part)]


def draw_reliability(labels: ArrayLike, p: ArrayLike, threshold: float, title: str, folder: Path) -> None:
    """Write ``calibration.png``: the share of yes against the mean probability in bins, and how records are spread."""
    from matplotlib.figure import Figure  # half a second, which other commands need not wait for

    found = reliability(labels, p)
    figure = Figure(figsize=(5, 5.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    above.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=1)
    above.plot([mean for mean, _, _ in found], [share for _, share, _ in found], color=BAR, marker="o", linewidth=2)
    below.hist(np.asarray(p), bins=BINS, range=(0, 1), color=BAR, rwidth=0.9)
    for axes in (above, below):
        axes.axvline(threshold, color=INK, linestyle=":", linewidth=1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK)
    above.annotate(f"threshold {threshold:.3f}", (threshold, 0.0), (4, 5), textcoords="offset points", color=INK)
    above.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="share of yes")
    above.set_title(title, loc="left", color=INK)
    below.set(xlabel="probability of yes", ylabel="records")
    below.yaxis.get_major_locator().set_params(integer=True)
    figure.savefig(folder / PICTURE, dpi=120)
