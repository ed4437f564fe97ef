"""Charts of a yes/no judge: reliability diagram, threshold curve, confusion matrix; and the numbers they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from reporting.charts import Mark, Series, line_chart
from reporting.markup import Markup, count, joined, number, percent, tag
from reporting.svg import WIDTH, Axis, Scale, drawing, frame, label, line, path, text_width

CURVE_POINTS = 400


@dataclass(frozen=True)
class Bin:
    """Records whose p_yes lies from ``low`` to ``high``: how many, their mean p_yes, and the share that is yes.

    ``share_low`` and ``share_high`` are the ends of the share's 95 % Wilson interval, records taken as independent.
    The figures of a bin without records are None.
    """

    low: float
    high: float
    count: int
    mean: float | None = None
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None


def reliability_bins(labels: ArrayLike, probabilities: ArrayLike, bins: int = 10) -> list[Bin]:
    """Bins of equal width, cut as the expected calibration error cuts them (p_yes = 1 belongs to the last)."""
    y, p = np.asarray(labels, np.int64), np.asarray(probabilities, np.float64)
    place = np.minimum((p * bins).astype(np.int64), bins - 1)
    found = []
    for k in range(bins):
        inside = place == k
        n, yes = int(inside.sum()), int(y[inside].sum())
        if not n:
            found.append(Bin(k / bins, (k + 1) / bins, 0))
            continue
        wilson = binomtest(yes, n).proportion_ci(0.95, method="wilson")
        ends = float(wilson.low), float(wilson.high)
        found.append(Bin(k / bins, (k + 1) / bins, n, float(p[inside].mean()), yes / n, *ends))
    return found


@dataclass(frozen=True)
class Wording:
    """What a reliability diagram calls the score, what it is held against, and what was scored."""

    score: str = "p(yes)"
    share: str = "yes"
    noun: str = "records"


def reliability_chart(title: str, bins: Sequence[Bin], wording: Wording | None = None) -> Markup:
    """Share of yes against mean p_yes with intervals, the diagonal of perfect calibration, and the bins' counts."""
    wording = wording or Wording()
    left, plot, below = 34.0, 236.0, 76.0
    across, up = Scale(0, 1, left, WIDTH - 14), Scale(0, 1, plot, 30)
    filled = [one for one in bins if one.count]
    dots = []
    for one in filled:
        assert one.mean is not None and one.share is not None
        assert one.share_low is not None and one.share_high is not None
        x = across(one.mean)
        said = f"{wording.score} {one.low:g} to {one.high:g}: {count(one.count)} {wording.noun}, "
        said += f"mean {number(one.mean)}, {wording.share} {number(one.share)}"
        dots += [
            line(x, up(one.share_low), x, up(one.share_high), "whisker"),
            tag("circle", tag("title", said), cx=x, cy=up(one.share), r=4.5, class_="dot"),
        ]
    joint = path((across(one.mean or 0), up(one.share or 0)) for one in filled)
    bottom = plot + 42 + below
    drawn = [
        frame(across, up, f"mean {wording.score} of the bin", f"share that is {wording.share}"),
        line(across(0), up(0), across(1), up(1), "mark"),
        tag("g", tag("path", d=joint, class_="line"), *dots, class_="s1") if filled else None,
        _counts(bins, across, plot + 58, bottom),
        label(0, plot + 54, wording.noun, "start", "name"),
    ]
    return drawing(title, bottom + 4, *drawn)


def _counts(bins: Sequence[Bin], across: Scale, top: float, bottom: float) -> Markup:
    highest = max((one.count for one in bins), default=0) or 1
    bars = []
    for one in bins:
        left, right = across(one.low) + 1, across(one.high) - 1
        size = (bottom - top - 16) * one.count / highest
        bars.append(tag("rect", x=left, y=bottom - size, width=right - left, height=size, class_="bar"))
        if one.count and text_width(count(one.count), 11) <= right - left + 4:
            bars.append(label((left + right) / 2, bottom - size - 4, count(one.count), "middle", "small"))
    return tag("g", *bars, line(across.start, bottom, across.end, bottom, "axis"), class_="s1 counts")


@dataclass(frozen=True)
class ThresholdCurve:
    """Accuracy and macro-F1 where yes is said at p_yes >= threshold, for rising thresholds."""

    thresholds: list[float]
    accuracy: list[float]
    macro_f1: list[float]


def threshold_curve(labels: ArrayLike, probabilities: ArrayLike, most: int = CURVE_POINTS) -> ThresholdCurve:
    """The curve at the records' own probabilities (where it changes), evenly thinned to at most ``most``."""
    y, p = np.asarray(labels, np.int64), np.asarray(probabilities, np.float64)
    order = np.argsort(p, kind="stable")
    values, first = np.unique(p[order], return_index=True)
    if len(values) > most:
        kept = np.unique(np.linspace(0, len(values) - 1, most).astype(np.int64))
        values, first = values[kept], first[kept]
    below_yes = np.concatenate([[0], np.cumsum(y[order])])[first]  # said no, though yes
    below_no = first - below_yes
    yes, no = int(y.sum()), len(y) - int(y.sum())
    wrong = below_yes + (no - below_no)
    f1_yes = 2 * (yes - below_yes) / np.maximum(2 * (yes - below_yes) + wrong, 1)
    f1_no = 2 * below_no / np.maximum(2 * below_no + wrong, 1)
    accuracy, macro_f1 = 1 - wrong / len(y), (f1_yes + f1_no) / 2
    return ThresholdCurve(values.tolist(), accuracy.tolist(), macro_f1.tolist())


def threshold_chart(title: str, curve: ThresholdCurve, chosen: float) -> Markup:
    """Both measures against the threshold, the chosen one marked. The x axis spans the probabilities that occur."""
    ends = [*curve.thresholds, chosen]
    low, high = min(ends), max(ends)
    room = max((high - low) * 0.04, 1e-3)
    series = [
        Series(name, list(zip(curve.thresholds, values, strict=True)))
        for name, values in (("accuracy", curve.accuracy), ("macro-F1", curve.macro_f1))
    ]
    x = Axis("threshold on p(yes)", max(0.0, low - room), min(1.0, high + room))
    return line_chart(title, series, x, Axis("", None, None), [Mark(chosen, f"chosen {chosen:.3f}")], 300)


def confusion_matrix(
    caption: str,
    classes: Sequence[str],
    counts: Sequence[Sequence[int]],
    links: Mapping[tuple[int, int], str] | None = None,
) -> Markup:
    """A table of counts [true class][said class], shaded by the share of the true class's records.

    Args:
        links: (true, said) -> where the count leads, such as a filter of the page's list of records.
    """
    head = tag("tr", tag("td"), *(tag("th", f"said {name}", scope="col") for name in classes))
    rows = []
    for k, (name, row) in enumerate(zip(classes, counts, strict=True)):
        total = sum(row)
        cells = []
        for j, value in enumerate(row):
            share = value / total if total else 0.0
            shown = tag("strong", count(value))
            target = (links or {}).get((k, j))
            shown = tag("a", shown, href=target) if target and value else shown
            kind = "right" if j == k else "wrong"
            cells.append(tag("td", shown, tag("small", percent(share)), class_=kind, style=f"--share:{share:.3f}"))
        rows.append(tag("tr", tag("th", f"is {name}", scope="row"), *cells))
    return tag("table", tag("caption", caption), tag("thead", head), tag("tbody", joined(rows)), class_="confusion")
