"""Judges taught and examined by the commands that a person would give, so that each run resumes by itself, and measured
together over seeds."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.ecomscript.finished import read_run
from benchmarks.results import as_object, to_json, write_text
from models.folder import sole_writer
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
        settings: what the flags come to, with the contents of the files that they name (train.settings).
    """

    judgment: str
    test: str
    out: Path
    flags: Sequence[str] = ()
    launch: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def launch_words(text: str) -> list[str]:
    """The type of the flag that takes what ``accelerate launch`` is given."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}; write it as for a shell") from None


@contextmanager
def open_folder(course: Course, data: Mapping[str, str], what: str) -> Iterator[None]:
    """The course's folder, for this process alone. Raises ValueError where another process is at work in it, or where
    it holds ``what`` of other data or settings, naming the first difference.

    Args:
        data: the fingerprint of the records of each name.
    """
    records = {f"{name} records": digest for name, digest in data.items()}
    plan = json.loads(to_json({"judgment": course.judgment, **records, **course.settings}))
    path = course.out / PLAN
    with sole_writer(course.out):
        found = _read_plan(path) if path.is_file() else plan
        odd = [name for name in dict.fromkeys([*plan, *found]) if plan.get(name) != found.get(name)]
        if odd:
            there, here = json.dumps(found.get(odd[0])), json.dumps(plan.get(odd[0]))
            more = f" (and {len(odd) - 1} more differences)" if len(odd) > 1 else ""
            raise ValueError(
                f"{course.out} holds {what} with {odd[0]} {there}, this one has {here}{more}; give another --out"
            )
        course.out.mkdir(parents=True, exist_ok=True)
        write_text(path, to_json(plan))
        yield


def _read_plan(path: Path) -> dict[str, Any]:
    found = as_object(path.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise ValueError(
            f"{path} was cut or spoilt; remove it if judgment, data and settings are those that its folder was "
            "begun with, or give another --out"
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
    checkpoint = _checkpoint_of(run)
    local = [f"--checkpoint={checkpoint}"] if os.path.isdir(checkpoint) else []  # an adapter cannot name a folder
    asked = [f"--judgment={course.judgment}", f"--data={course.test}", f"--adapter={run / 'adapter'}"]
    command(course, "scripts/evaluate.py", "ecomscript", *asked, *local, f"--out={results}")
    return results


def _checkpoint_of(run: Path) -> str:
    path = run / "config.yaml"
    try:
        return str(yaml.safe_load(path.read_text(encoding="utf-8"))["checkpoint"])
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError) as error:
        raise RuntimeError(
            f"{path} cannot be read as a run's configuration ({type(error).__name__}); remove {run}, and the same "
            "command teaches its judge anew"
        ) from error


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
