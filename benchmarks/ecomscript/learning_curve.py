"""Accuracy against the number of training records: a judge is taught and examined at every size, by the commands that
a person would give, so that each run resumes by itself."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console

from benchmarks.results import RESULTS, Predictions, publishable, to_json, write_text
from recipes.base import Record
from recipes.intervals import Interval, interval_of, resampled
from recipes.judgments import get_judgment
from recipes.reading import fingerprint, read_records

ROOT = Path(__file__).resolve().parents[2]
PLAN, CURVE, PAGE = "plan.json", "curve.json", "curve.html"


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


def draw_curve(config: CurveConfig, say: Console) -> dict[str, Any]:
    """Teach, examine and measure; what curve.json holds. What is there already is not done again.

    Raises ValueError for data or settings that make no curve, and RuntimeError where a command fails.
    """
    records: list[Record] = read_records(get_judgment(config.judgment), config.train)
    test: list[Record] = read_records(get_judgment(config.judgment), config.test)
    _check(config, records, test)
    open_folder(config, {"train": fingerprint(records), "test": fingerprint(test)})
    points = []
    for size in sorted(set(config.sizes)):
        folders = []
        for seed in config.seeds:
            folder = config.out / "results" / name_of(size, seed)
            if not (folder / RESULTS).is_file():
                say.print(f"{size} records, seed {seed}")
                teach_and_examine(config, size, seed, subset(records, size, seed))
            folders.append(folder)
        points.append(measure(size, folders, config))
    curve = {"judgment": config.judgment, "test": publishable(config.test), "points": points}
    write_text(config.out / CURVE, to_json(curve))
    return curve


def _check(config: CurveConfig, records: Sequence[Record], test: Sequence[Record]) -> None:
    if not config.sizes or not config.seeds:
        raise ValueError("sizes, seeds: give at least one of each")
    if min(config.sizes) < 2 or max(config.sizes) > len(records):
        raise ValueError(f"sizes: {config.train} has {len(records)} records; give sizes from 2 to {len(records)}")
    if shared := sorted({record.group_key for record in records} & {record.group_key for record in test}):
        raise ValueError(f"{config.test}: {len(shared)} groups are also in {config.train}, first {shared[0]!r}")


def open_folder(config: CurveConfig, data: Mapping[str, str]) -> None:
    """Make the folder. Raises ValueError where it holds a curve of other data or settings."""
    plan = {"judgment": config.judgment, "data": dict(data), "flags": list(config.flags)}
    path = config.out / PLAN
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
        for name, wanted in plan.items():
            if found.get(name) != wanted:
                raise ValueError(
                    f"{config.out} holds a curve with {name} {json.dumps(found.get(name))}, this one has "
                    f"{json.dumps(wanted)}; give another --out"
                )
    config.out.mkdir(parents=True, exist_ok=True)
    write_text(path, to_json(plan))


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


def teach_and_examine(config: CurveConfig, size: int, seed: int, records: Sequence[Record]) -> None:
    """One point of one seed, by the commands. Raises RuntimeError where one fails."""
    name = name_of(size, seed)
    data = config.out / "data" / f"{name}.jsonl"
    data.parent.mkdir(exist_ok=True)
    lines = (json.dumps(one.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False) for one in records)
    write_text(data, "".join(line + "\n" for line in lines))
    run = config.out / "runs" / config.judgment / name
    where = [f"--data.train={data}", f"--seed={seed}", f"--run.folder={config.out / 'runs'}", f"--run.name={name}"]
    command(config, f"train/{config.judgment}.py", *config.flags, *where)
    checkpoint = str(yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["checkpoint"])
    local = [f"--checkpoint={checkpoint}"] if os.path.isdir(checkpoint) else []  # an adapter cannot name a folder
    asked = [f"--judgment={config.judgment}", f"--data={config.test}", f"--adapter={run / 'adapter'}"]
    out = f"--out={config.out / 'results' / name}"
    command(config, "scripts/evaluate.py", "ecomscript", *asked, *local, out)


def command(config: CurveConfig, program: str, *words: str) -> None:
    """Run a program of the repository under ``accelerate launch``, its output shown as it comes."""
    launch = [sys.executable, "-m", "accelerate.commands.launch", *config.launch]
    done = subprocess.run([*launch, str(ROOT / program), *words], stdout=sys.stderr)
    if done.returncode:
        raise RuntimeError(
            f"{program} ended with status {done.returncode} (see above); once that is mended, the same command goes on"
        )


def measure(size: int, folders: Sequence[Path], config: CurveConfig) -> dict[str, Any]:
    """The means over seeds at one size, with 95 % intervals in which both groups and seeds are drawn again, and the
    accuracy of each seed."""
    runs = [_measured(Predictions(folder).read(), config.resamples) for folder in folders]
    groups = len({line["group"] for line in Predictions(folders[0]).read()})
    results = json.loads((folders[0] / RESULTS).read_text(encoding="utf-8"))
    names = ("accuracy", "macro_f1", "auc")
    return {
        "size": size,
        "seeds": [float(run["accuracy"][0]) for run in runs],
        "metrics": {name: asdict(over_seeds(np.stack([run[name] for run in runs]), groups)) for name in names},
        "majority": results["baselines"]["majority"]["metrics"]["accuracy"]["value"],
    }


def _measured(lines: Sequence[Mapping[str, Any]], resamples: int) -> dict[str, Any]:
    columns = {key: [line[key] for line in lines] for key in ("label", "margin", "verdict", "group")}
    return resampled(columns["label"], columns["margin"], columns["verdict"], columns["group"], resamples, 0)


def over_seeds(values: np.ndarray, groups: int) -> Interval:
    """The mean over seeds with its interval.

    Args:
        values: a measure of each seed's judge, [seeds, 1 + resamples], every seed's on the same draws of groups.
    """
    seeds, drawn = values.shape[0], values.shape[1] - 1
    chosen = np.random.default_rng(1).integers(seeds, size=(seeds, drawn))
    means = np.take_along_axis(values[:, 1:], chosen, axis=0).mean(axis=0)
    return interval_of(np.concatenate([[values[:, 0].mean()], means]), groups)
