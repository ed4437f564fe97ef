"""A W&B distribution and what Optuna draws for it: kind, ends, and values at quantiles worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from train.sweep.parameters import QUANTILES, read_parameter


def drawn(**given: Any) -> Any:
    return read_parameter("x", given).drawn


def at(quantile: float, **given: Any) -> Any:
    parameter = read_parameter("x", given)
    assert parameter.drawn == QUANTILES
    return parameter.value(quantile)


def test_what_optuna_knows_is_drawn_as_it_is() -> None:
    assert drawn(values=["a", None, True, 2]) == CategoricalDistribution(("a", None, True, 2))
    assert drawn(min=2, max=5) == IntDistribution(2, 5)
    assert drawn(distribution="int_uniform", min=2, max=5) == IntDistribution(2, 5)
    assert drawn(min=0.0, max=1) == FloatDistribution(0.0, 1.0)
    assert drawn(distribution="uniform", min=1, max=3) == FloatDistribution(1.0, 3.0)
    assert drawn(distribution="log_uniform_values", min=1e-5, max=1e-1) == FloatDistribution(1e-5, 1e-1, log=True)
    assert drawn(distribution="inv_log_uniform_values", min=2, max=8) == FloatDistribution(2.0, 8.0, log=True)


def test_ends_that_are_logarithms_become_values() -> None:
    law = drawn(distribution="log_uniform", min=-2, max=1)
    assert law.log and (law.low, law.high) == pytest.approx((1 / math.e**2, math.e))
    law = drawn(distribution="inv_log_uniform", min=1, max=2)  # log(1/X) in 1..2, so X in e^-2..e^-1
    assert law.log and (law.low, law.high) == pytest.approx((1 / math.e**2, 1 / math.e))


def test_a_constant_is_not_drawn() -> None:
    parameter = read_parameter("x", {"value": [1]})
    assert parameter.drawn is None and parameter.value(None) == [1]


@pytest.mark.parametrize(
    ("given", "quantile", "value"),
    [
        ({"distribution": "normal"}, 0.5, 0.0),
        ({"distribution": "normal", "mu": 3, "sigma": 2}, 0.8413447461, 5.0),  # one standard deviation above
        ({"distribution": "log_normal", "mu": 1.0, "sigma": 0.5}, 0.5, math.e),
        ({"distribution": "log_normal", "mu": 0.0, "sigma": 0.5}, 0.8413447461, math.exp(0.5)),
        ({"distribution": "beta", "a": 1, "b": 2}, 0.36, 0.2),  # its cdf is 1 - (1 - x)^2
        ({"distribution": "beta"}, 0.3, 0.3),
    ],
)
def test_other_laws_are_drawn_by_quantile(given: dict[str, Any], quantile: float, value: float) -> None:
    assert at(quantile, **given) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("given", "quantile", "value"),
    [
        ({"distribution": "q_uniform", "min": 0, "max": 10}, 0.26, 3),  # 2.6
        ({"distribution": "q_uniform", "min": 0.0, "max": 0.3, "q": 0.1}, 0.5, 0.1),  # 0.15 / 0.1 is 1.4999...
        ({"distribution": "q_uniform", "min": 0, "max": 100, "q": 8}, 0.33, 32),  # 33
        ({"distribution": "q_log_uniform_values", "min": 8, "max": 128, "q": 8}, 0.5, 32),  # the geometric mean
        ({"distribution": "q_log_uniform", "min": 0, "max": 2, "q": 0.5}, 0.5, 2.5),  # e is 2.718
        ({"distribution": "q_normal", "mu": 0, "sigma": 10, "q": 5}, 0.8413447461, 10),
        ({"distribution": "q_log_normal", "mu": 2.0, "sigma": 1.0}, 0.5, 7),  # e^2 is 7.389
        ({"distribution": "q_beta", "a": 1, "b": 2, "q": 0.25}, 0.36, 0.25),  # 0.2
    ],
)
def test_quantized_laws_give_multiples(given: dict[str, Any], quantile: float, value: float) -> None:
    found = at(quantile, **given)
    assert found == value
    assert isinstance(found, int) is isinstance(given.get("q", 1), int)


def test_weighted_values_take_their_share_of_the_quantiles() -> None:
    given = {"values": ["a", "b", "c"], "probabilities": [0.2, 0.5, 0.3]}
    assert [at(quantile, **given) for quantile in (0.0, 0.19, 0.21, 0.69, 0.71, 1.0)] == list("aabbcc")


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"values": [3, 1]}, (3, 1)),
        ({"min": 2, "max": 4}, (2, 3, 4)),
        # W&B's grid over q_uniform goes from min in steps of q and leaves out max.
        ({"distribution": "q_uniform", "min": 0.1, "max": 0.5, "q": 0.1}, (0.1, 0.2, 0.3, 0.4)),
        ({"distribution": "q_uniform", "min": 1, "max": 4, "q": 1}, (1, 2, 3)),
    ],
)
def test_a_grid_has_the_points_that_w_and_b_gives_it(given: dict[str, Any], values: tuple[Any, ...]) -> None:
    parameter = read_parameter("x", given).on_grid()
    assert parameter.drawn == CategoricalDistribution(values) and parameter.grid == values
    assert [parameter.value(value) for value in values] == list(values)


def test_a_law_without_end_has_no_grid() -> None:
    with pytest.raises(ValueError, match=r"parameters\.x: a grid needs values, int_uniform or q_uniform"):
        read_parameter("x", {"min": 0.0, "max": 1.0}).on_grid()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "5 is no description"),
        ({}, "give value:, values:, or min: and max:"),
        ({"parameters": {"y": {"value": 1}}}, r"nested parameters; write each as one dotted name, x\.<key>"),
        ({"distribution": "lognormal"}, r"x\.distribution: 'lognormal' is not known; did you mean log_normal\?"),
        ({"min": 1.0, "max": "1e-4"}, r"x\.max: '1e-4' is not a number; YAML takes 1e-4 for a text, write 1\.0e-4"),
        ({"min": 2, "max": 2}, "min 2 is not below max 2"),
        ({"distribution": "uniform", "min": 2}, r"x\.max: None is not a number"),
        ({"distribution": "log_uniform_values", "min": 0, "max": 1}, r"x\.min: 0 has no logarithm"),
        ({"distribution": "int_uniform", "min": 0.5, "max": 2}, "needs whole numbers"),
        ({"values": []}, "give a list of values"),
        ({"values": [[1, 2]]}, r"\[1, 2\]; give numbers, texts, true, false or null"),
        ({"values": [1, 2], "probabilities": [0.5, 0.6]}, "one for each value, together 1"),
        ({"values": [1, 2], "probabilities": 0.3}, "probabilities: 0.3; give one for each value"),
        ({"values": [1, 2], "probabilities": ["a", "b"]}, "give one for each value"),
        ({"distribution": ["uniform"], "min": 0.0, "max": 1.0}, r"\['uniform'\] is not known; did you mean uniform"),
        ({"distribution": "log_uniform", "min": 1, "max": 5000}, "log_uniform_values takes the ends themselves"),
        ({"distribution": "inv_log_uniform", "min": -5000, "max": 1}, "inv_log_uniform_values takes the ends"),
        ({"values": [1, 2], "min": 1}, r"x\.min: categorical has no such setting; it has values"),
        ({"distribution": "q_normal", "q": 0}, r"x\.q: 0; give more than 0"),
    ],
)
def test_a_description_that_cannot_be_is_refused_by_its_setting(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_parameter("x", given)
