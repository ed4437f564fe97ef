"""The numbers that a setting may have, said beside its type: ``batch_size: Annotated[int, Limits(1)] = 32``."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Limits:
    """Numbers from ``least`` to ``most``, and between ``above`` and ``below``, which are not allowed themselves.
    Infinity and NaN never are."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def allow(self, value: float) -> bool:
        return self.least <= value <= self.most and self.above < value < self.below

    def __repr__(self) -> str:
        """What ``--help`` and a refusal say: "1 or more", "above 0", "0 or more and below 1"."""
        ends = {
            f"{self.least} or more": self.least,
            f"above {self.above}": self.above,
            f"at most {self.most}": self.most,
            f"below {self.below}": self.below,
        }
        return " and ".join(words for words, end in ends.items() if math.isfinite(end))


SEEDS = Limits(0, 2**32 - 1)  # what numpy's generator takes
THREADS = Limits(1, 1024)  # far above that, OpenMP ends the process without a word
