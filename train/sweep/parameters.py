"""The parameters of a W&B sweep file as Optuna draws them.

What Optuna has a distribution for is drawn as it is, so that its samplers and pictures see the values themselves. Of
anything else Optuna draws the quantile, a number in 0..1, and the value is that quantile of W&B's distribution: right
for random search, and for TPE a prior of exactly the file's shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from scipy import stats

Settings = Mapping[str, Any]
Scalar = bool | int | float | str | None

RANGE, ROUNDED = ("min", "max"), ("min", "max", "q")
# Distribution -> its settings, as W&B's documentation of sweep configurations names them.
SETTINGS: dict[str, tuple[str, ...]] = {
    "constant": ("value",),
    "categorical": ("values",),
    "categorical_w_probabilities": ("values", "probabilities"),
    "int_uniform": RANGE,
    "uniform": RANGE,
    "q_uniform": ROUNDED,
    "log_uniform": RANGE,
    "log_uniform_values": RANGE,
    "q_log_uniform": ROUNDED,
    "q_log_uniform_values": ROUNDED,
    "inv_log_uniform": RANGE,
    "inv_log_uniform_values": RANGE,
    "normal": ("mu", "sigma"),
    "q_normal": ("mu", "sigma", "q"),
    "log_normal": ("mu", "sigma"),
    "q_log_normal": ("mu", "sigma", "q"),
    "beta": ("a", "b"),
    "q_beta": ("a", "b", "q"),
}
DEFAULTS = {"q": 1, "mu": 0.0, "sigma": 1.0, "a": 1.0, "b": 1.0}
# A normal distribution has no value at quantile 0 or 1.
QUANTILES = FloatDistribution(1e-9, 1 - 1e-9)
MOST_GRID_VALUES = 10_000
LARGEST_LOGARITHM = 700  # e to the power of 710 is no float any more


@dataclass(frozen=True)
class Parameter:
    """A parameter of a sweep.

    Attributes:
        drawn: what Optuna draws; None for a constant.
        value: from what was drawn to the parameter's value; of a constant, from anything.
        grid: the values that a grid search goes through; None where there is no end of them.
    """

    name: str
    drawn: BaseDistribution | None
    value: Callable[[Any], Scalar]
    grid: tuple[Scalar, ...] | None

    def on_grid(self) -> Parameter:
        """The same parameter as a grid search draws it: one of its values. Raises ValueError where there is no grid."""
        if self.drawn is None:
            return self
        if self.grid is None:
            raise ValueError(f"parameters.{self.name}: a grid needs values, int_uniform or q_uniform")
        return Parameter(self.name, CategoricalDistribution(self.grid), _same, self.grid)


def read_parameter(name: str, given: Any) -> Parameter:
    """The parameter that a sweep file describes under ``parameters``.

    Raises ValueError naming the parameter and its setting.
    """
    where = f"parameters.{name}"
    if not isinstance(given, Mapping):
        raise ValueError(f"{where}: {given!r} is no description; give value:, values:, or min: and max:")
    if "parameters" in given:
        raise ValueError(f"{where}: nested parameters; write each as one dotted name, {name}.<key>")
    kind = given.get("distribution") or _implied(where, given)
    if not isinstance(kind, str) or kind not in SETTINGS:
        near = get_close_matches(str(kind), SETTINGS, n=1, cutoff=0)[0]
        raise ValueError(f"{where}.distribution: {kind!r} is not known; did you mean {near}?")
    settings = _settings(where, kind, given)
    if kind == "constant":
        constant: Scalar = settings["value"]
        return Parameter(name, None, lambda _: constant, None)
    if kind.startswith("categorical"):
        return _categorical(name, where, settings)
    if kind == "int_uniform":
        low, high = settings["min"], settings["max"]
        if not (isinstance(low, int) and isinstance(high, int)):
            raise ValueError(f"{where}: int_uniform needs whole numbers, not {low} and {high}")
        grid = tuple(range(low, high + 1)) if high - low < MOST_GRID_VALUES else None
        return Parameter(name, IntDistribution(low, high), _same, grid)
    if kind == "uniform":
        return Parameter(name, FloatDistribution(settings["min"], settings["max"]), float, None)
    if kind.startswith(("log_uniform", "inv_log_uniform")):
        return Parameter(name, FloatDistribution(*_ends(kind, settings), log=True), float, None)
    return _quantile(name, kind, settings)


def _same(drawn: Any) -> Any:
    return drawn


def _implied(where: str, given: Settings) -> str:
    """The distribution of a description that names none."""
    if "value" in given:
        return "constant"
    if "values" in given:
        return "categorical_w_probabilities" if "probabilities" in given else "categorical"
    if "min" in given and "max" in given:
        return "int_uniform" if isinstance(given["min"], int) and isinstance(given["max"], int) else "uniform"
    raise ValueError(f"{where}: give value:, values:, or min: and max:, or name the distribution")


def _settings(where: str, kind: str, given: Settings) -> dict[str, Any]:
    """The settings of a distribution, defaults filled in and numbers checked."""
    allowed = SETTINGS[kind]
    if unknown := sorted(set(given) - {*allowed, "distribution"}):
        raise ValueError(f"{where}.{unknown[0]}: {kind} has no such setting; it has {', '.join(allowed)}")
    settings = {key: given.get(key, DEFAULTS.get(key)) for key in allowed}
    for key in allowed:
        value = settings[key]
        if key in ("value", "values", "probabilities"):
            if key not in given:
                raise ValueError(f"{where}.{key}: missing")
        elif not _is_number(value):
            hint = "; YAML takes 1e-4 for a text, write 1.0e-4" if isinstance(value, str) else ""
            raise ValueError(f"{where}.{key}: {value!r} is not a number{hint}")
    _check_order(where, kind, settings)
    return settings


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_order(where: str, kind: str, settings: Settings) -> None:
    low, high = settings.get("min", 0), settings.get("max", 1)
    if not low < high:
        raise ValueError(f"{where}: min {low} is not below max {high}")
    if "log_uniform_values" in kind and not low > 0:
        raise ValueError(f"{where}.min: {low} has no logarithm; give more than 0")
    if kind.endswith("log_uniform") and max(-low, high) > LARGEST_LOGARITHM:
        raise ValueError(f"{where}: {kind} takes logarithms of the ends; {kind}_values takes the ends themselves")
    for key in ("q", "sigma", "a", "b"):
        if not settings.get(key, 1) > 0:
            raise ValueError(f"{where}.{key}: {settings[key]}; give more than 0")


def _categorical(name: str, where: str, settings: Settings) -> Parameter:
    values = settings["values"]
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise ValueError(f"{where}.values: {values!r}; give a list of values")
    if odd := [value for value in values if not isinstance(value, Scalar)]:
        raise ValueError(f"{where}.values: {odd[0]!r}; give numbers, texts, true, false or null")
    choices: tuple[Scalar, ...] = tuple(values)
    if "probabilities" not in settings:
        return Parameter(name, CategoricalDistribution(choices), _same, choices)
    shares = settings["probabilities"]
    listed = isinstance(shares, list) and len(shares) == len(choices) and all(map(_is_number, shares))
    if not listed or min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise ValueError(f"{where}.probabilities: {shares}; give one for each value, together 1")
    edges = np.cumsum(shares)

    def value(quantile: float) -> Scalar:
        return choices[min(int(np.searchsorted(edges, quantile)), len(choices) - 1)]

    return Parameter(name, QUANTILES, value, None)  # W&B, too, refuses weighted values in a grid


def _ends(kind: str, settings: Settings) -> tuple[float, float]:
    """Smallest and largest value of a log-uniform distribution: its ends are values, or natural logarithms of them.

    Inverse ones give log(1/X) its ends, so that the sides change places.
    """
    low, high = float(settings["min"]), float(settings["max"])
    if kind.endswith("_values"):
        return low, high
    return (math.exp(-high), math.exp(-low)) if kind.startswith("inv_") else (math.exp(low), math.exp(high))


def _quantile(name: str, kind: str, settings: Settings) -> Parameter:
    """A distribution that Optuna lacks, by its quantiles; those called q_ give multiples of q."""
    inverse = _law(kind.removeprefix("q_"), settings).ppf
    if not kind.startswith("q_"):
        return Parameter(name, QUANTILES, lambda quantile: float(inverse(quantile)), None)
    q = settings["q"]

    def rounded(number: float) -> int | float:
        multiple = round(number / q)
        return multiple * q if isinstance(q, int) else float(f"{multiple * q:.12g}")

    grid = None
    if kind == "q_uniform" and (settings["max"] - settings["min"]) / q < MOST_GRID_VALUES:
        steps = np.arange(settings["min"], settings["max"], q).tolist()  # W&B's grid: from min on, without max
        grid = tuple(step if isinstance(step, int) else float(f"{step:.12g}") for step in steps)
    return Parameter(name, QUANTILES, lambda quantile: rounded(float(inverse(quantile))), grid)


def _law(kind: str, settings: Settings) -> Any:
    """scipy's distribution."""
    if kind == "uniform":
        return stats.uniform(settings["min"], settings["max"] - settings["min"])
    if kind.startswith("log_uniform"):
        return stats.loguniform(*_ends(kind, settings))
    if kind == "normal":
        return stats.norm(settings["mu"], settings["sigma"])
    if kind == "log_normal":
        return stats.lognorm(s=settings["sigma"], scale=math.exp(settings["mu"]))
    return stats.beta(settings["a"], settings["b"])
