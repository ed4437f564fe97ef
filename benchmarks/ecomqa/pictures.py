"""The pictures of a report: radar and bars over the sub-concepts, reliability, thinking behaviours.

Labels are text in the page's own drawing: a browser shows Chinese with whatever font the reader has for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.ecomqa.thinking import SHORT
from benchmarks.shares import share
from reporting.charts import Bar, bar_chart, radar
from reporting.classifier import Bin, Wording, reliability_chart
from reporting.markup import Markup
from reporting.svg import Axis

CHINESE = {
    "IC": "行业分类",
    "IDC": "行业概念",
    "CC": "品类概念",
    "BC": "品牌概念",
    "AC": "属性概念",
    "SC": "口语概念",
    "ITC": "意图概念",
    "RVC": "评论概念",
    "RLC": "相关性概念",
    "PC": "个性化概念",
}
CONFIDENCE = Wording("stated confidence", "right", "answers")


def task_label(task: str) -> str:
    """A sub-concept as pictures and tables name it."""
    return f"{CHINESE[task]} {task}"


def task_radar(series: Mapping[str, Mapping[str, float]]) -> Markup | None:
    """Accuracies in percent over the sub-concepts that all series have; None for fewer than three of them."""
    tasks = [task for task in CHINESE if all(task in scores for scores in series.values())]
    if len(tasks) < 3:
        return None
    values = {name: [scores[task] for task in tasks] for name, scores in series.items()}
    return radar("Accuracy by sub-concept, in percent", [task_label(task) for task in tasks], values, high=100.0)


def task_bars(sub_concepts: Mapping[str, Mapping[str, Any]], average: float) -> Markup:
    """Accuracies in percent with their intervals; the dashed line is the mean."""
    bars = []
    for task, own in sub_concepts.items():
        accuracy = own["accuracy"]
        bars.append(Bar(task_label(task), accuracy["value"], accuracy["low"], accuracy["high"]))
    axis = Axis("accuracy, percent", 0, 100)
    return bar_chart("Accuracy by sub-concept, in percent", bars, axis, (average, f"mean {average:.1f}"), digits=1)


def confidence_chart(calibration: Mapping[str, Any]) -> Markup:
    """Share of right answers against stated confidence (see benchmarks.ecomqa.calibration)."""
    return reliability_chart("Share of right answers by stated confidence", confidence_bins(calibration), CONFIDENCE)


def confidence_bins(calibration: Mapping[str, Any]) -> list[Bin]:
    """The bins of results.json, in percent there, as shares with Wilson intervals."""
    found = []
    for one in calibration["bins"]:
        ends = (one["low"] / 100, one["high"] / 100, one["n"])
        if not one["n"]:
            found.append(Bin(*ends))
            continue
        right = share(round(one["n"] * one["accuracy"] / 100), one["n"])
        found.append(Bin(*ends, one["confidence"] / 100, right.value, right.low, right.high))
    return found


def behaviour_bars(shares: Mapping[str, float]) -> Markup:
    """The shares of the thinking behaviours, in percent of the traces that were sorted."""
    bars = [Bar(name, shares[behaviour]) for behaviour, name in SHORT.items()]
    return bar_chart("Thinking behaviours, in percent of the traces", bars, Axis("percent", 0, 100), digits=1)
