"""Scores in 16 bits whose verdicts are float32's: what lies near the decision is scored again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from models.scoring import Scoring

# Rows of the first batch, that of the longest prompts, on which the drift of 16-bit margins is measured.
PROBES = 8
# Other rows may drift further than the probes did.
SAFETY = 3.0


class Rescoring:
    """A set of prompts, scored in 16 bits, and in float32 where the margin is no further from the decision than 16-bit
    margins were measured to drift.

    Args:
        fast: the set in 16 bits; its batches are those of this.
        exact: gives the same set in float32, when it is first needed.
        decision: the margin from which on the verdict is yes.

    Attributes:
        rescored: numbers of the rows whose margins are float32's because they were near.
    """

    def __init__(self, fast: Scoring, exact: Callable[[], Scoring], decision: float) -> None:
        self.fast = fast
        self.batches = fast.batches
        self.decision = decision
        self.rescored: set[int] = set()
        self._make_exact = exact
        self._exact: Scoring | None = None
        self._drift: float | None = None
        self._first: NDArray[np.float64] | None = None

    @property
    def exact(self) -> Scoring:
        if self._exact is None:
            self._exact = self._make_exact()
        return self._exact

    @property
    def drift(self) -> float:
        """How far a 16-bit margin may be from float32's: three times the largest distance on the probes.

        It is measured on the same rows whichever batch comes first here, so that it is the same in every process.
        """
        if self._drift is None:
            first = self.batches[0]
            places = sorted({round(place) for place in np.linspace(0, len(first) - 1, min(PROBES, len(first)))})
            fast = self._first if self._first is not None else self.fast.margins(first)
            exact = self.exact.margins([first[place] for place in places])
            self._drift = SAFETY * float(np.abs(fast[places] - exact).max())
        return self._drift

    def margins(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """logit(yes) - logit(no) of a batch, [rows]."""
        found = self.fast.margins(rows)
        if list(rows) == self.batches[0]:
            self._first = found.copy()
        near = np.flatnonzero(np.abs(found - self.decision) <= self.drift)
        if len(near):
            again = [rows[place] for place in near.tolist()]
            found[near] = self.exact.margins(again)
            self.rescored.update(again)
        return found
