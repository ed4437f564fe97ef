"""Pictures of a sweep: which parameters mattered, and what the good trials have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState

from train.sweep.study import VALUES
from train.sweep.sweep_file import SweepFile, swept

IMPORTANCE, PARALLEL = "importance.png", "parallel_coordinates.png"
FEW = 6  # so many values of a parameter are shown one by one
INK, FAINT, BAR = "#1f2933", "#9aa5b1", "#2a6f97"


@dataclass(frozen=True)
class Scale:
    """Where a parameter's values lie on its axis, from 0 to 1, and which of them are written beside it."""

    values: tuple[Any, ...]
    log: bool
    single: bool

    @classmethod
    def of(cls, values: Sequence[Any], listed: bool) -> Scale:
        """Words and short lists are spread evenly; other numbers keep their distances, by magnitude if wide."""
        distinct = tuple(dict.fromkeys(values))
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in distinct)
        ordered = tuple(sorted(distinct)) if numbers else distinct
        single = not numbers or len(distinct) == 1 or (listed and len(distinct) <= FEW)
        return cls(ordered, not single and ordered[0] > 0 and ordered[-1] / ordered[0] >= 10, single)

    def place(self, value: Any) -> float:
        if self.single:
            return (self.values.index(value) + 0.5) / len(self.values)
        low, high, here = (math.log(v) if self.log else float(v) for v in (self.values[0], self.values[-1], value))
        return (here - low) / (high - low)

    def ticks(self) -> list[tuple[float, str]]:
        """Places with their texts: each of few values, else the ends and the middle."""
        if self.single:
            return [(self.place(value), _text(value)) for value in self.values]
        low, high = self.values[0], self.values[-1]
        middle = math.sqrt(low * high) if self.log else (low + high) / 2
        return [(0.0, _text(low)), (0.5, _text(float(middle))), (1.0, _text(high))]


def draw_pictures(sweep: SweepFile, trials: Sequence[FrozenTrial], folder: Path) -> list[Path]:
    """Write the importance of each parameter and the parallel coordinates of the finished trials, as PNG.

    None is written where fewer than two trials are finished, or all with the same value: there is nothing to see.
    """
    finished = [one for one in trials if one.state == TrialState.COMPLETE]
    if len({one.value for one in finished}) < 2:
        return []
    found = importances(sweep, finished)
    names = list(found) + [name for name in swept(sweep.parameters) if name not in found]
    pictures = {IMPORTANCE: _bars(sweep, found, len(finished)), PARALLEL: _lines(sweep, names, finished)}
    for name, figure in pictures.items():
        figure.savefig(folder / name, dpi=130)
    return [folder / name for name in pictures]


def importances(sweep: SweepFile, finished: Sequence[FrozenTrial]) -> dict[str, float]:
    """Share of the metric's variation that each parameter explains by itself (fANOVA, Hutter et al. 2014), largest
    first.

    Of the values themselves, where Optuna may have drawn quantiles of them.
    """
    columns = {name: [one.user_attrs[VALUES][name] for one in finished] for name in swept(sweep.parameters)}
    laws = {name: _law(values) for name, values in columns.items() if len(set(values)) > 1}
    study = optuna.create_study(direction="maximize" if sweep.maximize else "minimize")
    for row, one in enumerate(finished):
        values = {name: columns[name][row] for name in laws}
        study.add_trial(optuna.create_trial(params=values, distributions=laws, value=one.value))
    return get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))


def _law(values: Sequence[Any]) -> BaseDistribution:
    """The plainest distribution over values that were drawn."""
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return CategoricalDistribution(list(dict.fromkeys(values)))
    low, high = min(values), max(values)
    log = low > 0 and high / low >= 10
    if all(isinstance(value, int) for value in values):
        return IntDistribution(low, high, log=log)
    return FloatDistribution(low, high, log=log)


def _bars(sweep: SweepFile, found: dict[str, float], count: int) -> Figure:
    figure = Figure(figsize=(7, 1.3 + 0.45 * len(found)), layout="constrained")
    axes = figure.subplots()
    names = list(reversed(found))
    drawn = axes.barh(names, [found[name] for name in names], color=BAR, height=0.6)
    axes.bar_label(drawn, fmt="{:.2f}", padding=4, color=INK)
    axes.set_xlim(0, max(found.values()) * 1.12 or 1)
    axes.set_xlabel("share of the variation that it explains by itself")
    axes.set_title(f"{sweep.metric}: importance of the parameters, from {count} trials", loc="left", color=INK)
    _bare(axes)
    return figure


def _lines(sweep: SweepFile, names: Sequence[str], finished: Sequence[FrozenTrial]) -> Figure:
    """A line for each trial over an axis for each parameter and one for the metric, best trials darkest and on top."""
    columns = [[one.user_attrs[VALUES][name] for one in finished] for name in names]
    results = [one.value or 0.0 for one in finished]
    listed = {one.name for one in sweep.parameters if one.grid is not None}
    scales = [Scale.of(values, name in listed) for name, values in zip(names, columns, strict=True)]
    low, high = min(results), max(results)
    heights = [(value - low) / (high - low) for value in results]
    figure = Figure(figsize=(2.4 + 1.7 * len(names), 4.6), layout="constrained")
    axes = figure.subplots()
    colours = colormaps["viridis_r"]
    merit = heights if sweep.maximize else [1 - height for height in heights]
    for row in sorted(range(len(finished)), key=lambda row: merit[row]):
        points = [scale.place(values[row]) for scale, values in zip(scales, columns, strict=True)]
        width = 3.0 if merit[row] == 1.0 else 1.4
        axes.plot([*points, heights[row]], color=colours(merit[row]), linewidth=width, solid_joinstyle="round")
    for place, scale in enumerate(scales):
        _axis(axes, place, scale.ticks())
    _axis(axes, len(names), [(0.0, f"{low:.4g}"), (1.0, f"{high:.4g}")])
    axes.set_xticks(range(len(names) + 1), [*(name.replace(".", ".\n") for name in names), sweep.metric])
    axes.set_yticks([])
    axes.set_xlim(-0.1, len(names) + 0.35)
    axes.set_title(f"{len(finished)} trials, darker is better; the best is the thick line", loc="left", color=INK)
    _bare(axes)
    axes.spines["bottom"].set_visible(False)
    return figure


def _axis(axes: Axes, place: int, ticks: Sequence[tuple[float, str]]) -> None:
    axes.axvline(place, color=FAINT, linewidth=0.8, zorder=0)
    halo = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
    for height, text in ticks:
        axes.annotate(text, (place, height), (5, 0), textcoords="offset points", va="center", fontsize=8, bbox=halo)


def _bare(axes: Axes) -> None:
    axes.tick_params(length=0, labelcolor=INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _text(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
