"""Scores in 16 bits whose verdicts are float32's: what lies near the decision is scored again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from models.scoring import Scoring

# Rows of the first batches, those of the longest prompts, on which the drift of 16-bit margins is measured.
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
        self._probed: dict[int, NDArray[np.float64]] = {}  # fast margins of the first batches, by number

    @property
    def computed(self) -> int:
        """Tokens computed in 16 bits so far, padding included."""
        return self.fast.computed

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
            held = np.cumsum([len(rows) for rows in self.batches])
            first = range(int(np.searchsorted(held, PROBES)) + 1)[: len(self.batches)]
            rows = [row for number in first for row in self.batches[number]]
            self._probed = {number: self.fast.margins(self.batches[number]) for number in first}
            fast = np.concatenate(list(self._probed.values()))
            places = sorted({round(place) for place in np.linspace(0, len(rows) - 1, min(PROBES, len(rows)))})
            exact = self.exact.margins([rows[place] for place in places])
            self._drift = SAFETY * float(np.abs(fast[places] - exact).max())
        return self._drift

    def margins(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """logit(yes) - logit(no) of a batch, [rows]."""
        drift = self.drift
        number = next((known for known in self._probed if self.batches[known] == list(rows)), None)
        found = self.fast.margins(rows) if number is None else self._probed[number].copy()
        near = np.flatnonzero(np.abs(found - self.decision) <= drift)
        if len(near):
            again = [rows[place] for place in near.tolist()]
            found[near] = self.exact.margins(again)
            self.rescored.update(again)
        return found
