"""How models change places between two tables of results: rank shifts and rank correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from scipy.stats import kendalltau, rankdata, spearmanr

from benchmarks.ecomqa.published import published_accuracy
from recipes.csv_files import csv_rows
from recipes.faults import Fault

PUBLISHED = "published"
# The table that a report writes beside itself, and that is looked for in a folder of results.
SCORES = "scores.csv"


@dataclass(frozen=True)
class Shift:
    """A model's scores and ranks (1 is best; equal scores share the better rank) in two tables.

    ``shift`` counts places: positive where the model stands higher in the second table.
    """

    model: str
    first: float
    second: float
    first_rank: int
    second_rank: int

    @property
    def shift(self) -> int:
        return self.first_rank - self.second_rank


@dataclass(frozen=True)
class RankComparison:
    """Models of both tables, best of the first table first, and how alike their orders are.

    ``spearman`` is rho, ``kendall`` tau-b (both -1 to 1, None where a table has all scores equal), each with the
    two-sided p value of no association. ``alone`` are models that only one table has.
    """

    shifts: tuple[Shift, ...]
    spearman: float | None
    spearman_p: float | None
    kendall: float | None
    kendall_p: float | None
    alone: tuple[str, ...]


def compare_ranks(first: Mapping[str, float], second: Mapping[str, float]) -> RankComparison:
    """The models that two tables (model -> score, higher is better) share. Upper and lower case are the same.

    Raises ValueError unless they share two models.
    """
    there = {name.casefold(): score for name, score in second.items()}
    shared = [name for name in first if name.casefold() in there]
    here = {name.casefold() for name in first}
    alone = [name for name in first if name not in shared] + [name for name in second if name.casefold() not in here]
    if len(shared) < 2:
        raise ValueError(
            f"the two tables share {len(shared)} models; ranks need two. "
            f"One has {', '.join(list(first)[:5])} ..., the other {', '.join(list(second)[:5])} ..."
        )
    left, right = [first[name] for name in shared], [there[name.casefold()] for name in shared]
    ranks = [rankdata([-score for score in side], method="min").astype(int) for side in (left, right)]
    shifts = [Shift(name, left[k], right[k], int(ranks[0][k]), int(ranks[1][k])) for k, name in enumerate(shared)]
    shifts.sort(key=lambda one: (one.first_rank, one.second_rank))
    same = len(set(left)) == 1 or len(set(right)) == 1
    rho, tau = (None, None) if same else (spearmanr(left, right), kendalltau(left, right))
    return RankComparison(
        tuple(shifts),
        None if rho is None else float(rho.statistic),
        None if rho is None else _finite(rho.pvalue),
        None if tau is None else float(tau.statistic),
        None if tau is None else _finite(tau.pvalue),
        tuple(alone),
    )


def read_scores(reference: str, column: str = "average") -> dict[str, float]:
    """Model -> score, from ``published`` (the paper's main table), a CSV file with a column ``model``, or a folder in
    which reports have written their ``scores.csv``.

    Raises ValueError or FileNotFoundError, in words, for what is no such table.
    """
    if reference == PUBLISHED:
        return _column(published_accuracy(), column, PUBLISHED)
    path = Path(reference)
    if not path.exists():
        raise FileNotFoundError(f"{reference}: no such file; give a CSV file, a folder of results, or {PUBLISHED!r}")
    if path.is_file():
        return _read_csv(path, column)
    found: dict[str, float] = {}
    for file in sorted(path.rglob(SCORES)):
        found.update(_read_csv(file, column))
    if not found:
        raise FileNotFoundError(f"{reference}: no {SCORES} below this folder; write the reports of its results first")
    return found


def _read_csv(path: Path, column: str) -> dict[str, float]:
    found: dict[str, dict[str, float]] = {}
    for row in csv_rows(str(path)):
        if isinstance(row, Fault):
            raise ValueError(str(row))
        where, cells = f"{path}:{row.line}", dict(row.value)
        if "model" not in cells:
            raise ValueError(f"{path}: no column 'model'; give a CSV table with one row a model")
        model = cells.pop("model")
        if not model:
            raise ValueError(f"{where}: model: empty; give its name")
        if model in found:
            raise ValueError(f"{where}: model {model!r} has a row already; keep one")
        found[model] = {
            name: _number(text, f"{where}: {name}") if name == column else math.nan for name, text in cells.items()
        }
    if not found:
        raise ValueError(f"{path}: no rows; give a CSV table with a column 'model' and one row a model")
    return _column(found, column, str(path))


def _column(table: Mapping[str, Mapping[str, float]], column: str, where: str) -> dict[str, float]:
    for scores in table.values():
        if column not in scores:
            near = get_close_matches(column, scores, n=1, cutoff=0)
            hint = f"did you mean {near[0]!r}? There are {', '.join(scores)}" if near else "there are no scores"
            raise ValueError(f"{where}: no column {column!r}; {hint}")
    return {model: scores[column] for model, scores in table.items()}


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{where}: {text!r} is not a number; give the score")
    return value


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
