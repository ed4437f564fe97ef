"""Which numbers limits allow, and what they say of themselves."""

from __future__ import annotations

import math

import pytest

from models.limits import SEEDS, Limits


@pytest.mark.parametrize(
    ("limits", "allowed", "refused", "words"),
    [
        (Limits(1), [1, 10**400, 1.5], [0, -1, 0.999], "1 or more"),
        (Limits(above=0), [1e-30, 5], [0, -1e-30], "above 0"),
        (Limits(0, below=1), [0, 0.999], [1, -0.1], "0 or more and below 1"),
        (Limits(0, 1), [0, 1, True], [1.001, -1], "0 or more and at most 1"),
        (SEEDS, [0, 4294967295], [-1, 4294967296], "0 or more and at most 4294967295"),
    ],
)
def test_limits(limits: Limits, allowed: list[float], refused: list[float], words: str) -> None:
    assert all(map(limits.allow, allowed))
    assert not any(map(limits.allow, [*refused, math.nan, math.inf, -math.inf]))
    assert str(limits) == words
