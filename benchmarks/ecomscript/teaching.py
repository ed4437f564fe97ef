"""Judges taught and examined by the commands that a person would give, so that each run resumes by itself, and measured
together over seeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.ecomscript.finished import read_run
from benchmarks.results import as_object, to_json, write_text
from recipes.intervals import Floats, Interval, interval_of, resampled

ROOT = Path(__file__).resolve().parents[2]
PLAN = "plan.json"
LAST_WORDS = 2000  # bytes of a failed command's output in which its reason is looked for


@dataclass(frozen=True)
class Course:
    """What judges have in common that are taught and examined side by side.

    Attributes:
        test: the records that they are examined on.
        out: the folder of their runs and results.
        flags: what the training command is given, such as ``--config FILE``.
        launch: what ``accelerate launch`` is given.
    """

    judgment: str
    test: str
    out: Path
    flags: Sequence[str] = ()
    launch: Sequence[str] = ()


def open_folder(course: Course, data: Mapping[str, str], what: str) -> None:
    """Make the course's folder. Raises ValueError where it holds ``what`` of other data or settings."""
    plan = {"judgment": course.judgment, "data": dict(data), "flags": list(course.flags)}
    path = course.out / PLAN
    if path.is_file():
        found = _read_plan(path)
        for name, wanted in plan.items():
            if found.get(name) != wanted:
                raise ValueError(
                    f"{course.out} holds {what} with {name} {json.dumps(found.get(name))}, this one has "
                    f"{json.dumps(wanted)}; give another --out"
                )
    course.out.mkdir(parents=True, exist_ok=True)
    write_text(path, to_json(plan))


def _read_plan(path: Path) -> dict[str, Any]:
    found = as_object(path.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise ValueError(
            f"{path} was cut or spoilt; remove it if judgment, data and flags are those that its folder was begun "
            "with, or give another --out"
        )
    return found


def teach_and_examine(course: Course, name: str, *words: str) -> Path:
    """One judge: its results' folder. ``words`` are what sets it apart for the training command.

    What is finished is not done again, unless it was cut or spoilt since. Raises RuntimeError where a command fails.
    """
    results = course.out / "results" / name
    if _is_finished(results):
        return results
    run = course.out / "runs" / course.judgment / name
    where = [f"--run.folder={course.out / 'runs'}", f"--run.name={name}"]
    command(course, f"train/{course.judgment}.py", *course.flags, *words, *where)
    checkpoint = str(yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["checkpoint"])
    local = [f"--checkpoint={checkpoint}"] if os.path.isdir(checkpoint) else []  # an adapter cannot name a folder
    asked = [f"--judgment={course.judgment}", f"--data={course.test}", f"--adapter={run / 'adapter'}"]
    command(course, "scripts/evaluate.py", "ecomscript", *asked, *local, f"--out={results}")
    return results


def _is_finished(results: Path) -> bool:
    try:
        read_run(results)
    except (FileNotFoundError, ValueError):
        return False
    return True


def command(course: Course, program: str, *words: str) -> None:
    """Run a program of the repository under ``accelerate launch``, its output shown as it comes.

    Raises RuntimeError with the last line that it wrote, where it fails.
    """
    launch = [sys.executable, "-m", "accelerate.commands.launch", *course.launch, str(ROOT / program), *words]
    said = b""
    with subprocess.Popen(launch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        while part := os.read(process.stdout.fileno(), 4096):
            sys.stderr.write(part.decode(errors="replace"))
            sys.stderr.flush()
            said = (said + part)[-LAST_WORDS:]
    if process.returncode:
        lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
        raise RuntimeError(
            f"{program} ended with status {process.returncode} (see above): {lines[-1] if lines else 'it said nothing'}"
        )


def measured(results: Path, resamples: int) -> dict[str, Floats]:
    """Accuracy, macro-F1 and AUC of a judge on the test records and on each draw of their groups, [1 + resamples]. The
    draws are the same for every judge of the same records."""
    lines = read_run(results).lines.values()
    columns: dict[str, list[Any]] = {
        key: [line[key] for line in lines] for key in ("label", "margin", "verdict", "group")
    }
    return resampled(columns["label"], columns["margin"], columns["verdict"], columns["group"], resamples, 0)


def groups_in(results: Path) -> int:
    return len({line["group"] for line in read_run(results).lines.values()})


def over_seeds(values: np.ndarray, groups: int) -> Interval:
    """The mean over seeds with its 95 % interval, in which both groups and seeds are drawn again.

    Args:
        values: a measure of each seed's judge, [seeds, 1 + resamples], every seed's on the same draws of groups.
    """
    seeds, drawn = values.shape[0], values.shape[1] - 1
    chosen = np.random.default_rng(1).integers(seeds, size=(seeds, drawn))
    means = np.take_along_axis(values[:, 1:], chosen, axis=0).mean(axis=0)
    return interval_of(np.concatenate([[values[:, 0].mean()], means]), groups)
