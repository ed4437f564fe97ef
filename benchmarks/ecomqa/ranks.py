"""How models change places between two tables of results: rank shifts and rank correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from statistics import fmean

from scipy.stats import kendalltau, rankdata, spearmanr

from benchmarks.ecomqa.data import SUB_CONCEPTS
from benchmarks.ecomqa.published import published_accuracy
from recipes.csv_files import csv_rows
from recipes.faults import Fault

PUBLISHED = "published"
# The table that a report writes beside itself, and that is looked for in a folder of results.
SCORES = "scores.csv"
# The column that is worked out anew: printed averages may be over different sub-concepts.
AVERAGE = "average"
Scores = dict[str, dict[str, float]]  # model -> column -> score


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
    two-sided p value of no association. ``alone`` are models that only one table has. ``over`` are the sub-concepts
    whose mean was compared; none where no average was.
    """

    shifts: tuple[Shift, ...]
    spearman: float | None
    spearman_p: float | None
    kendall: float | None
    kendall_p: float | None
    alone: tuple[str, ...]
    over: tuple[str, ...] = ()

    def measures(self, columns: tuple[str, str]) -> str:
        """What was compared, in words; an average with the sub-concepts that it is the mean of."""
        plural = "" if len(self.over) == 1 else "s"
        mean = f"mean of {len(self.over)} sub-concept{plural}: {', '.join(self.over)}"
        return " and ".join(dict.fromkeys(mean if column == AVERAGE else column for column in columns))


def compare_tables(first: Scores, second: Scores, columns: tuple[str, str]) -> RankComparison:
    """Compare a column of each of two tables (see `read_scores`).

    An average is the unweighted mean over the sub-concepts that all shared models have in each table whose average is
    compared: models are held against each other on the same sub-concepts.

    Raises ValueError unless they share two models and, for averages, a sub-concept.
    """
    pairs, alone = _pairs(first, second)
    sides = ([first[name] for name, _ in pairs], [second[name] for _, name in pairs])
    averaged = [row for side, column in zip(sides, columns, strict=True) if column == AVERAGE for row in side]
    over = tuple(task for task in SUB_CONCEPTS if averaged and all(task in row for row in averaged))
    if averaged and not over:
        raise ValueError(
            f"no sub-concept has a score for each of the {len(pairs)} models that both tables hold, so that their "
            f"averages cannot be compared; give tables with the same sub-concepts ({', '.join(SUB_CONCEPTS)})"
        )
    scores = [
        {
            pair[0]: fmean(row[name] for name in (over if column == AVERAGE else (column,)))
            for pair, row in zip(pairs, side, strict=True)
        }
        for side, column in zip(sides, columns, strict=True)
    ]
    return replace(compare_ranks(*scores), alone=alone, over=over)


def _pairs(first: Mapping[str, object], second: Mapping[str, object]) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """Names of the same models in two tables, and the names that only one has. Upper and lower case are the same, and
    white space.

    Raises ValueError unless there are two pairs.
    """
    there = {_key(name): name for name in second}
    here = {_key(name) for name in first}
    pairs = [(name, there[_key(name)]) for name in first if _key(name) in there]
    if len(pairs) < 2:
        raise ValueError(
            f"the two tables share {len(pairs)} models; ranks need two. Models pair by equal names, but for upper and "
            f"lower case: the first table has {_few(first)}, the second {_few(second)}; make the names equal in one of "
            "them (column model)"
        )
    alone = [name for name in first if _key(name) not in there]
    return pairs, (*alone, *(name for name in second if _key(name) not in here))


def _key(name: str) -> str:
    """What two names of one model share: upper and lower case, and white space around and between words, are none."""
    return " ".join(name.casefold().split())


def _few(names: Mapping[str, object]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(list(names)[:5]) + more


def compare_ranks(first: Mapping[str, float], second: Mapping[str, float]) -> RankComparison:
    """The models that two tables (model -> score, higher is better) share. Upper and lower case are the same.

    Raises ValueError unless they share two models.
    """
    pairs, alone = _pairs(first, second)
    shared, left, right = [a for a, _ in pairs], [first[a] for a, _ in pairs], [second[b] for _, b in pairs]
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
        alone,
    )


def read_scores(reference: str, column: str = AVERAGE) -> Scores:
    """The column of each model, or in place of the average the sub-concepts that the model has, from ``published`` (the
    paper's main table), a CSV file with a column ``model``, or a folder in which reports have written ``scores.csv``.

    Raises ValueError or FileNotFoundError, in words, for what is no such table.
    """
    if reference == PUBLISHED:
        return _wanted(published_accuracy(), column, PUBLISHED)
    path = Path(reference)
    if not path.exists():
        raise FileNotFoundError(f"{reference}: no such file; give a CSV file, a folder of results, or {PUBLISHED!r}")
    if path.is_file():
        return _read_csv(path, column)
    found: Scores = {}
    files: dict[str, tuple[str, Path]] = {}
    for file in sorted(path.rglob(SCORES)):
        for model, scores in _read_csv(file, column).items():
            if _key(model) in files:
                other, there = files[_key(model)]
                name = "" if other == model else f" ({other!r})"
                raise ValueError(f"{file}: model {model!r} stands in {there} too{name}; give a folder with one of them")
            found[model], files[_key(model)] = scores, (model, file)
    if not found:
        raise FileNotFoundError(f"{reference}: no {SCORES} below this folder; write the reports of its results first")
    return found


def _read_csv(path: Path, column: str) -> Scores:
    found: Scores = {}
    seen: set[str] = set()
    for row in csv_rows(str(path)):
        if isinstance(row, Fault):
            raise ValueError(str(replace(row, line=row.line and row.line + 1)))
        where, cells = f"{path}:{row.line + 1}", dict(row.value)  # as spreadsheets count, the header is row 1
        if "model" not in cells:
            raise ValueError(f"{path}: no column 'model'; give a CSV table with one row a model")
        model = (cells.pop("model") or "").strip()
        if not model:
            raise ValueError(f"{where}: model: empty; give its name")
        if _key(model) in seen:
            raise ValueError(f"{where}: model {model!r} has a row already; keep one")
        seen.add(_key(model))
        # A sub-concept that was not asked is an empty cell.
        asked = {name: text for name, text in cells.items() if text or name not in SUB_CONCEPTS or name == column}
        found[model] = {
            name: _number(text, f"{where}: {name}") if name in _names(column) else math.nan
            for name, text in asked.items()
        }
    if not found:
        raise ValueError(f"{path}: no rows; give a CSV table with a column 'model' and one row a model")
    return _wanted(found, column, str(path))


def _names(column: str) -> tuple[str, ...]:
    """The columns that are read for one."""
    return tuple(SUB_CONCEPTS) if column == AVERAGE else (column,)


def _wanted(table: Mapping[str, Mapping[str, float]], column: str, where: str) -> Scores:
    for scores in table.values():
        if column != AVERAGE and column not in scores:
            near = get_close_matches(column, scores, n=1, cutoff=0)
            hint = f"did you mean {near[0]!r}? There are {', '.join(scores)}" if near else "there are no scores"
            raise ValueError(f"{where}: no column {column!r}; {hint}")
    names = _names(column)
    return {model: {name: scores[name] for name in names if name in scores} for model, scores in table.items()}


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
