"""The loop of a sweep: draw, train, watch, record, until enough trials have ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.samplers import GridSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from rich.console import Console

from train.runs import METRICS_FILE
from train.sweep.outcome import write_best, write_trials
from train.sweep.pictures import draw_pictures
from train.sweep.study import (
    ERROR,
    RUN,
    VALUES,
    alone,
    best,
    draw,
    ended,
    next_up,
    open_study,
    sampler,
    trials,
    waiting,
)
from train.sweep.sweep_file import SweepFile
from train.sweep.table import Watcher
from train.sweep.trial import Process, command_of, complaint, environment, in_use, measured

POLL = 0.5  # seconds between looks at a running trial
FIRST_FAILURES = 3  # where so many come before anything else, the sweep itself is at fault


class Interrupted(KeyboardInterrupt):
    """The sweep was asked to stop, by Ctrl-C or a signal: commands end as they do for Ctrl-C."""


class TrialFailed(Exception):
    """A trial that ended without a value; the text says why."""


@dataclass(frozen=True)
class Sweep:
    """A sweep of a file in a folder.

    ``asked_to_stop`` is looked at while a trial trains, and nowhere else: the study is never left half written.
    """

    file: SweepFile
    folder: Path
    seed: int = 0
    asked_to_stop: Callable[[], bool] = lambda: False

    @property
    def runs(self) -> Path:
        """The folder that trials are told to write their runs to."""
        return self.folder / "trials"

    def run_of(self, name: str) -> Path:
        """The run folder of a trial: training puts it under its judgment, which its program is called after."""
        return self.runs / Path(self.file.program).stem / name


def run_sweep(sweep: Sweep, count: int | None, console: Console, retry_failed: bool = False) -> Study:
    """Run trials until ``count`` have ended, those of earlier calls among them; then write what they tell.

    Args:
        count: None takes the file's run_cap, or the whole of a grid.
        retry_failed: give trials that failed in earlier calls another try.

    Raises:
        ValueError: there is no end to the sweep, its folder holds another one, or its first trials all failed.
        Interrupted: it was asked to stop; the trial that was under way will be gone on with.
    """
    wanted = _wanted(sweep.file, count)
    with alone(sweep.folder):
        study = open_study(sweep.file, sweep.folder, sweep.seed, retry_failed)
        before = len(ended(study))
        with Watcher(console, sweep.file, study, wanted) as watcher:
            while len(ended(study)) < wanted and (waiting(study) or not _exhausted(sweep, study)):
                _refuse_hopeless(ended(study)[before:])
                place = next_up(study)
                study.sampler = sampler(sweep.file, sweep.seed, place)
                study.optimize(lambda trial: _objective(sweep, trial, watcher), 1, catch=TrialFailed)
                write_trials(sweep.file, ended(study), sweep.folder)
                watcher.ended(trials(study)[place])
        made = [write_trials(sweep.file, ended(study), sweep.folder)]  # also where nothing was left to be done
        found = best(study)
        if found is None:
            raise ValueError(f"no trial of {len(ended(study))} came to its end; {made[0]} says why")
        made += [write_best(sweep.file, found, sweep.run_of(found.user_attrs[RUN]), sweep.folder)]
        pictures = draw_pictures(sweep.file, ended(study), sweep.folder)
        console.print(f"wrote {', '.join(map(str, [*made, *pictures]))}")
        if not pictures:
            console.print("no pictures: they need two finished trials of different value")
    return study


def _wanted(file: SweepFile, count: int | None) -> int:
    """How many trials to end with."""
    if count is None:
        count = file.most_trials or (file.grid_size if file.method == "grid" else None)
    if count is None:
        raise ValueError(f"{file.path}: method {file.method} goes on for ever; give --trials N, or run_cap in the file")
    return min(count, file.grid_size) if file.method == "grid" else count


def _exhausted(sweep: Sweep, study: Study) -> bool:
    """Whether every point of a grid has had its trial."""
    whole = sampler(sweep.file, sweep.seed, 0)
    return isinstance(whole, GridSampler) and whole.is_exhausted(study)


def _refuse_hopeless(new: Sequence[FrozenTrial]) -> None:
    """Raises ValueError where nothing but failures has come of this call's first trials."""
    if len(new) == FIRST_FAILURES and all(one.state == TrialState.FAIL for one in new):
        raise ValueError(f"the first {FIRST_FAILURES} trials failed, the last with: {new[-1].user_attrs[ERROR]}")


def _objective(sweep: Sweep, trial: Trial, watcher: Watcher) -> float:
    """Train with what is drawn; the best value of the metric in the run."""
    values = draw(trial, sweep.file.parameters)
    trial.set_user_attr(VALUES, values)
    try:
        return _train(sweep, trial, trial.user_attrs[RUN], values, watcher)
    except TrialFailed as error:
        trial.set_user_attr(ERROR, str(error))
        raise


def _refuse_to_go_on(sweep: Sweep) -> None:
    if sweep.asked_to_stop():
        raise Interrupted


def _too_low(file: SweepFile, trial: Trial, step: int) -> bool:
    """Whether Hyperband stops the trial here; what has come to its last evaluation has nothing left to be spared."""
    at_its_end = file.hyperband is not None and file.hyperband.last is not None and step >= file.hyperband.last
    return not at_its_end and trial.should_prune()


def _train(sweep: Sweep, trial: Trial, run: str, values: dict[str, Any], watcher: Watcher) -> float:
    file, metrics = sweep.file, sweep.run_of(run) / METRICS_FILE
    args = file.args({**values, "run.folder": str(sweep.runs), "run.name": run})
    sweep.runs.mkdir(exist_ok=True)
    log = sweep.runs / f"{run}.log"
    if in_use(log):
        watcher.tell(f"{run} is still training for an earlier call of this sweep; waiting for its end ({log})")
    while in_use(log):
        _refuse_to_go_on(sweep)
        time.sleep(POLL)
    found: list[float] = []
    reported = 0
    with Process(command_of(file.command, file.program, args), log, environment(sweep.folder.name)) as process:
        status = None
        while status is None:
            _refuse_to_go_on(sweep)
            status = process.wait(POLL)
            found = measured(metrics, file.metric)  # a run that goes on from a checkpoint may have fewer for a while
            for step in range(reported + 1, len(found) + 1):
                trial.report(found[step - 1], reported := step)
                if status is None and _too_low(file, trial, step):
                    raise optuna.TrialPruned
            watcher.watch(found)
    if status != 0:
        raise TrialFailed(f"{complaint(log)} (exit status {status}; {log})")
    finite = [value for value in found if math.isfinite(value)]
    if not finite:
        raise TrialFailed(f"training logged no {file.metric} ({metrics})")
    return max(finite) if file.maximize else min(finite)
