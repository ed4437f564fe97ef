"""Records for a run: read, split, made to fit the judge's length, encoded."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.judge import Judge
from recipes.base import Judgment, Record
from recipes.fitting import Fitted, fit
from recipes.reading import fingerprint, read_records
from recipes.splits import split_by_group
from train.batching import EncodedDataset
from train.config import DataConfig


@dataclass(frozen=True)
class Split:
    """Records of one split as given, and as they fit (``fitted.records`` are those that are used)."""

    name: str
    given: list[Any]
    fitted: Fitted[Any]
    dataset: EncodedDataset

    def facts(self) -> dict[str, Any]:
        """What a person wants to know of it before training: counts, balance, lengths in tokens, what was cut."""
        lengths = sorted(self.fitted.lengths)
        return {
            "records": len(self.given),
            "yes": sum(record.label for record in self.given),
            "groups": len({record.group_key for record in self.given}),
            "tokens": {
                "mean": round(statistics.fmean(lengths), 1),
                "median": lengths[len(lengths) // 2],
                "p95": lengths[int(0.95 * (len(lengths) - 1))],
                "max": lengths[-1],
                "total": sum(lengths),
            },
            "shortened": len(self.fitted.shortened),
            "left_out": len(self.fitted.refused),
        }


@dataclass(frozen=True)
class RunData:
    """The splits of a run, still as records."""

    train: list[Any]
    validation: list[Any]
    test: list[Any] = field(default_factory=list)

    @property
    def fingerprints(self) -> dict[str, str]:
        """sha256 of each split's records: two runs with the same ones saw the same data."""
        return {name: fingerprint(records) for name, records in vars(self).items() if records}


def read_run_data(judgment: Judgment[Any], config: DataConfig, seed: int) -> RunData:
    """The records of a run. Raises recipes.reading.DataFaults, or ValueError where splits share a group."""
    train: list[Record] = read_records(judgment, config.train)
    if config.validation is None:
        parts = split_by_group(
            train, {"train": 1 - config.validation_share, "validation": config.validation_share}, seed
        )
        train, validation = parts["train"], parts["validation"]
    else:
        validation = read_records(judgment, config.validation)
    test = read_records(judgment, config.test) if config.test else []
    _refuse_leaks(config, train, validation, test)
    return RunData(train, validation, test)


def _refuse_leaks(config: DataConfig, train: Sequence[Record], *others: Sequence[Record]) -> None:
    seen = {record.group_key for record in train}
    for reference, records in zip((config.validation, config.test), others, strict=True):
        shared = sorted({record.group_key for record in records} & seen)
        if shared:
            raise ValueError(
                f"{reference}: {len(shared)} groups are also in {config.train}, first {shared[0]!r}; a group must "
                "not cross a split: split by group (scripts/import_data.py does), or give groups"
            )


def prepare(
    name: str, judgment: Judgment[Any], records: Sequence[Any], judge: Judge, drop_too_long: bool = False
) -> Split:
    """Fit and encode records for a judge.

    Raises ValueError naming the records that cannot fit, unless they may be dropped.
    """
    prompts = prompts_of(judgment, judge)
    fitted = fit(judgment, records, lambda some: judge.encoder.lengths(prompts(some)), judge.max_length)
    if fitted.refused and not drop_too_long:
        worst = sorted(fitted.refused.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{record} ({tokens} tokens)" for record, tokens in worst[:5])
        raise ValueError(
            f"{name}: {len(worst)} records do not fit {judge.max_length} tokens even with their product text gone: "
            f"{listed}{' ...' if len(worst) > 5 else ''}; raise data.max_length or set data.drop_too_long"
        )
    if not fitted.records:
        raise ValueError(f"{name}: no record is left after fitting {judge.max_length} tokens")
    labels = [record.label for record in fitted.records]
    return Split(name, list(records), fitted, EncodedDataset(judge.encoder.encode(prompts(fitted.records)), labels))


def prompts_of(judgment: Judgment[Any], judge: Judge) -> Callable[[Sequence[Any]], list[Any]]:
    """How records become prompts for this judge: the one road that training and examination share."""
    return lambda records: [judgment.render(record, judge.style) for record in records]
