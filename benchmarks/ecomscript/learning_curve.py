"""Accuracy against the number of training records: a judge is taught and examined at every size, by the commands that
a person would give, so that each run resumes by itself."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.ecomscript.finished import read_run
from benchmarks.ecomscript.teaching import Course, groups_in, measured, open_folder, over_seeds, teach_and_examine
from benchmarks.results import publishable, to_json, write_text
from recipes.base import Record
from recipes.judgments import get_judgment
from recipes.reading import fingerprint, read_records

CURVE, PAGE = "curve.json", "curve.html"


@dataclass(frozen=True)
class CurveConfig:
    """What to teach and where.

    Attributes:
        sizes: numbers of training records; each smaller set is part of the larger ones of its seed.
        seeds: each draws its own sets and trains its own judges.
        train, test: where the records are; nothing is chosen on ``test``.
        out: the curve's folder; sizes and seeds can be added to it later.
        flags: what else the training command is given, such as ``--config FILE``.
        launch: what ``accelerate launch`` is given.
        settings: what the flags come to, see ``Course``.
    """

    judgment: str
    sizes: Sequence[int]
    out: Path
    seeds: Sequence[int] = (0,)
    train: str = "sample:train"
    test: str = "sample:test"
    flags: Sequence[str] = ()
    launch: Sequence[str] = ()
    resamples: int = 2000
    settings: Mapping[str, Any] = field(default_factory=dict)


def draw_curve(config: CurveConfig, say: Console) -> dict[str, Any]:
    """Teach, examine and measure; what curve.json holds. What is there already is not done again.

    Raises ValueError for data or settings that make no curve, and RuntimeError where a command fails.
    """
    records: list[Record] = read_records(get_judgment(config.judgment), config.train)
    test: list[Record] = read_records(get_judgment(config.judgment), config.test)
    _check(config, records, test)
    course = Course(config.judgment, config.test, config.out, config.flags, config.launch, config.settings)
    with open_folder(course, {"train": fingerprint(records), "test": fingerprint(test)}, "a curve"):
        curve = {
            "judgment": config.judgment,
            "test": publishable(config.test),
            "points": _points(course, config, records, say),
        }
        write_text(config.out / CURVE, to_json(curve))
    return curve


def _points(course: Course, config: CurveConfig, records: Sequence[Record], say: Console) -> list[dict[str, Any]]:
    points = []
    for size in sorted(set(config.sizes)):
        folders = []
        for seed in dict.fromkeys(config.seeds):  # one given twice would look like two that agree
            say.print(f"{size} records, seed {seed}")
            name = name_of(size, seed)
            data = subset_file(config, name, subset(records, size, seed))
            folders.append(teach_and_examine(course, name, f"--data.train={data}", f"--seed={seed}"))
        points.append(measure(size, folders, config))
    return points


def _check(config: CurveConfig, records: Sequence[Record], test: Sequence[Record]) -> None:
    if not config.sizes or not config.seeds:
        raise ValueError("sizes, seeds: give at least one of each")
    if min(config.sizes) < 2 or max(config.sizes) > len(records):
        raise ValueError(f"sizes: {config.train} has {len(records)} records; give sizes from 2 to {len(records)}")
    if shared := sorted({record.group_key for record in records} & {record.group_key for record in test}):
        raise ValueError(f"{config.test}: {len(shared)} groups are also in {config.train}, first {shared[0]!r}")


def name_of(size: int, seed: int) -> str:
    return f"{size}-seed{seed}"


def subset(records: Sequence[Record], size: int, seed: int) -> list[Record]:
    """The first ``size`` records with their groups in an order drawn by the seed: smaller sets are parts of larger
    ones, and a set holds whole groups but for its last.

    Raises ValueError where they bear one label only.
    """
    groups = list(dict.fromkeys(record.group_key for record in records))
    random.Random(seed).shuffle(groups)
    place = {group: number for number, group in enumerate(groups)}
    chosen = sorted(records, key=lambda record: place[record.group_key])[:size]
    if len({record.label for record in chosen}) < 2:
        raise ValueError(f"sizes: the first {size} records of seed {seed} bear one label only; begin with more")
    return chosen


def subset_file(config: CurveConfig, name: str, records: Sequence[Record]) -> Path:
    """The training records of one point of one seed, written where its run will read them."""
    data = config.out / "data" / f"{name}.jsonl"
    data.parent.mkdir(exist_ok=True)
    lines = (json.dumps(one.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False) for one in records)
    write_text(data, "".join(line + "\n" for line in lines))
    return data


def measure(size: int, folders: Sequence[Path], config: CurveConfig) -> dict[str, Any]:
    """The means over seeds at one size, with 95 % intervals in which both groups and seeds are drawn again, and the
    accuracy of each seed."""
    runs = [measured(folder, config.resamples) for folder in folders]
    groups = groups_in(folders[0])
    results = read_run(folders[0]).results
    names = ("accuracy", "macro_f1", "auc")
    return {
        "size": size,
        "seeds": [float(run["accuracy"][0]) for run in runs],
        "metrics": {name: asdict(over_seeds(np.stack([run[name] for run in runs]), groups)) for name in names},
        "majority": results["baselines"]["majority"]["metrics"]["accuracy"]["value"],
    }
