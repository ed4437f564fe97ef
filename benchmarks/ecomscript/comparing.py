"""Two evaluations over the same records, side by side: on all of them, in slices, and where they differ."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.ecomscript.finished import Prediction, Run
from benchmarks.paired import Difference, Discordance, Said, adjusted, differences, discordance
from recipes.base import Record
from recipes.judgments import get_judgment
from recipes.reading import fingerprint, read_records
from reporting.predictions import meta_of
from reporting.slices import Slicing, slicings


@dataclass(frozen=True)
class Compared:
    """Two judges on some records. ``adjusted`` is McNemar's p value among all those of its slicing (Holm)."""

    value: str
    count: int
    measures: Mapping[str, Difference]
    only: Discordance
    adjusted: float


@dataclass(frozen=True)
class Comparison:
    """Two runs compared.

    Attributes:
        left_out: records that only one of the runs judged (the other refused them as too long).
        slices: by slicing name, a row for each value.
        pairs: (record id, first's prediction, second's), in the order of the data.
        records: the records themselves by id, where they were at hand.
    """

    first: Run
    second: Run
    whole: Compared
    left_out: int
    groupings: Sequence[Slicing]
    slices: Mapping[str, Sequence[Compared]]
    pairs: Sequence[tuple[str, Prediction, Prediction]]
    records: Mapping[str, Record]


def compare_runs(first: Run, second: Run, data: str | None = None, resamples: int = 2000, seed: int = 0) -> Comparison:
    """Compare two runs, the second with the first.

    Args:
        data: where the records are; None takes what the runs name, if it can be found. Without records there are no
            texts, and slices only by what predictions themselves tell.

    Raises ValueError where the runs, or the records, are not of the same data.
    """
    if first.fingerprint != second.fingerprint:
        raise ValueError(
            "these runs judged different data and cannot be compared:\n"
            + "\n".join(
                f"  {run.folder}: {run.results['data']['reference']} {run.fingerprint}" for run in (first, second)
            )
        )
    first, second = _told_apart(first, second)
    records = read_compared(first, data)
    pairs = [(name, line, second.lines[name]) for name, line in first.lines.items() if name in second.lines]
    if not pairs:
        raise ValueError(f"{first.folder} and {second.folder} have no prediction of the same record")
    own = [line for _, line, _ in pairs]
    groupings = slicings(own, [meta_of(line, records.get(name)) for name, line, _ in pairs])
    slices = {one.key: _slices(one, pairs, resamples, seed) for one in groupings}
    return Comparison(
        first,
        second,
        _compared("all", pairs, resamples, seed),
        len(first.lines.keys() ^ second.lines.keys()),
        groupings,
        slices,
        pairs,
        records,
    )


def _told_apart(first: Run, second: Run) -> tuple[Run, Run]:
    """The runs by names of their own: one model judged in two ways is called by its folders."""
    if first.name != second.name:
        return first, second
    names = [run.folder.resolve().name for run in (first, second)]
    if names[0] == names[1]:
        names = [f"{first.name} (first)", f"{second.name} (second)"]
    return replace(first, name=names[0]), replace(second, name=names[1])


def read_compared(run: Run, data: str | None) -> dict[str, Record]:
    """The run's records by id; empty where nothing says where they are. Raises ValueError for others than its own."""
    reference = data or str(run.results["data"]["reference"])
    if data is None and not reference.startswith("sample:") and not os.path.exists(reference):
        return {}
    records: list[Record] = read_records(get_judgment(run.results["judgment"]), reference)
    records = records[: run.results["n"] + run.results["refused"]["count"]]  # the run may have been limited to so many
    found = fingerprint(records)
    if found == run.fingerprint:
        return {record.id: record for record in records}
    if data is None:  # a file of the same name that holds something else
        return {}
    raise ValueError(f"{data} ({found}) is not what {run.folder} judged ({run.fingerprint}); give its records")


def _slices(
    slicing: Slicing, pairs: Sequence[tuple[str, Prediction, Prediction]], resamples: int, seed: int
) -> list[Compared]:
    """A row for each value, in the slicing's own order or the largest difference of accuracy first."""
    values = slicing.order or tuple(dict.fromkeys(slicing.values))
    found = []
    for value in values:
        inside = [pair for pair, own in zip(pairs, slicing.values, strict=True) if own == value]
        found.append(_compared(value, inside, resamples, seed))
    fair = adjusted([one.only.p for one in found])
    found = [Compared(o.value, o.count, o.measures, o.only, p) for o, p in zip(found, fair, strict=True)]
    if slicing.order:
        return found
    return sorted(found, key=lambda one: (-abs(one.measures["accuracy"].difference.value or 0.0), one.value))


def _compared(value: str, pairs: Sequence[tuple[str, Prediction, Prediction]], resamples: int, seed: int) -> Compared:
    labels = [line["label"] for _, line, _ in pairs]
    first, second = [line for _, line, _ in pairs], [line for _, _, line in pairs]
    groups = [line["group"] for line in first]
    measures = differences(labels, _said(first, labels), _said(second, labels), groups, resamples, seed)
    only = discordance([right(line) for line in first], [right(line) for line in second])
    return Compared(value, len(pairs), measures, only, only.p)


def _said(lines: Sequence[Prediction], labels: Sequence[int]) -> Said:
    """Margins and verdicts; an answer that said neither yes nor no counts as the wrong one."""
    margins = [line.get("margin") for line in lines]
    verdicts = [
        line["verdict"] if line["verdict"] in (0, 1) else 1 - label for line, label in zip(lines, labels, strict=True)
    ]
    return Said(None if None in margins else margins, verdicts)  # type: ignore[arg-type]


def right(line: Prediction) -> bool:
    return bool(line["label"] == line["verdict"])
