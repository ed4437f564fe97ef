"""What grading says of one requirement, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

By = Literal["code", "lexical", "judge"]


@dataclass(frozen=True)
class Verdict:
    """Whether a product meets a requirement.

    Attributes:
        reason: a sentence for people.
        evidence: the part of the product that decided, such as ``details.Color``, ``features[2]`` or ``reviews[1]``;
            None where nothing could be found to look at.
        by: ``code`` (computed, certain), ``lexical`` (words compared where meaning is asked for: an estimate that a
            judge may correct), ``judge`` (a language model).
    """

    satisfied: bool
    reason: str
    evidence: str | None = None
    by: By = "code"
