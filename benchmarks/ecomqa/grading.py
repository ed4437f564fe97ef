"""From votes to a grade, and how far judges agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from statsmodels.stats.inter_rater import fleiss_kappa

from benchmarks.ecomqa.rules import Grade

GRADES: tuple[Grade, ...] = get_args(Grade)
Split = Literal["wrong", "not_attempted", "correct", "first"]
Unparsed = Literal["ignore", "wrong", "not_attempted"]
How = Literal["unanimous", "majority", "split", "no_vote"]


@dataclass(frozen=True)
class VotingRules:
    """What the paper leaves open.

    Attributes:
        split: the grade where no grade has more than half of the votes; ``first`` is that of the judge named first
            (of those that voted). An answer that judges cannot agree on is not credited by default.
        unparsed: what a vote that cannot be read counts as; by default the others decide alone. Where none can be
            read, ``split`` decides (``first`` then means wrong).
    """

    split: Split = "wrong"
    unparsed: Unparsed = "ignore"


@dataclass(frozen=True)
class Decision:
    """A grade and how it came about."""

    grade: Grade
    how: How


def decide(votes: Sequence[Grade | None], rules: VotingRules | None = None) -> Decision:
    """The grade of the majority: of more than half of the votes that count. None is a vote that could not be read."""
    rules = rules or VotingRules()
    counted = [vote for vote in (vote or _instead(rules) for vote in votes) if vote is not None]
    if not counted:
        return Decision("wrong" if rules.split == "first" else rules.split, "no_vote")
    (grade, most), *others = Counter(counted).most_common()
    if not others:
        return Decision(grade, "unanimous")
    if 2 * most > len(counted):
        return Decision(grade, "majority")
    return Decision(counted[0] if rules.split == "first" else rules.split, "split")


def _instead(rules: VotingRules) -> Grade | None:
    return None if rules.unparsed == "ignore" else rules.unparsed


def agreement(votes: Mapping[str, Sequence[Grade | None]]) -> dict[str, Any]:
    """Fleiss' kappa of the judges, over the questions on which all of them have a readable vote.

    Args:
        votes: the votes of each judge, in the order of the questions.

    ``kappa`` is None with fewer than two judges or where all give one grade throughout, when chance alone agrees too.
    """
    rows = [row for row in zip(*votes.values(), strict=True) if None not in row]
    table = [[row.count(grade) for grade in GRADES] for row in rows]
    kappa = math.nan
    if len(votes) > 1 and len({vote for row in rows for vote in row}) > 1:
        kappa = float(fleiss_kappa(table))
    return {
        "questions": len(rows),
        "unanimous": sum(len(set(row)) == 1 for row in rows),
        "kappa": None if math.isnan(kappa) else kappa,
    }


def concord(first: Sequence[Grade | None], second: Sequence[Grade | None]) -> dict[str, Any]:
    """How often two graders agree where both gave a grade, and how often each pair of grades occurs."""
    pairs = [(one, other) for one, other in zip(first, second, strict=True) if one is not None and other is not None]
    same = sum(one == other for one, other in pairs)
    counts = Counter(f"{one}/{other}" for one, other in pairs)
    return {
        "questions": len(pairs),
        "share": same / len(pairs) if pairs else None,
        "pairs": dict(sorted(counts.items())),
    }
