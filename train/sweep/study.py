"""A sweep's trials in Optuna's hands: what is drawn next, what has ended, and what a killed sweep goes on with.

A trial belongs to a run (a folder of training) by its user attribute ``run``, with which it is queued before anything
is drawn: wherever a sweep is killed, no trial is without one. A trial that has not ended is asked again with the same
run, which then goes on from its last checkpoint, and with the same values if it had them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock, Timeout
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import BasePruner, HyperbandPruner, NopPruner
from optuna.samplers import BaseSampler, GridSampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from train.sweep.journal import open_journal
from train.sweep.parameters import Parameter, Scalar
from train.sweep.sweep_file import Hyperband, SweepFile

STORAGE = "study.journal"
RUN, VALUES, ERROR = "run", "values", "error"
# What may change between two calls: none of it changes what a trial is.
FREE_KEYS = ("name", "description", "project", "entity", "run_cap")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """The folder for this process alone. Raises ValueError where another one sweeps in it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise ValueError(f"{folder}: another sweep is running in it; wait for it, or give another --out") from None


def open_study(sweep: SweepFile, folder: Path, seed: int, retry_failed: bool = False) -> Study:
    """The study in the folder, begun or gone on with: trials without an end are queued again, and failed ones if asked.

    Raises ValueError where it is of another sweep file or seed, or its journal is spoilt.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=open_journal(folder / STORAGE),
        study_name="sweep",
        direction="maximize" if sweep.maximize else "minimize",
        sampler=RandomSampler(seed),
        pruner=pruner(sweep.hyperband),
        load_if_exists=True,
    )
    asked = {"seed": seed, **{key: value for key, value in sweep.text.items() if key not in FREE_KEYS}}
    there = study.user_attrs.get("sweep")
    if there is None:
        study.set_user_attr("sweep", asked)
    elif odd := [key for key in {**there, **asked} if there.get(key) != asked.get(key)]:
        raise ValueError(f"{folder} holds a sweep with another {odd[0]}; give another --out")
    _ask_again(study, retry_failed)
    return study


def pruner(hyperband: Hyperband | None) -> BasePruner:
    """Optuna's Hyperband over evaluations.

    W&B looks at every trial in every band. Optuna follows the paper (Li et al. 2018): each trial is in a bracket, and
    all but the first bracket leave out the first bands, so that late starters are not all judged early.
    """
    if hyperband is None:
        return NopPruner()
    return HyperbandPruner(hyperband.first, hyperband.last or "auto", hyperband.eta)


def sampler(sweep: SweepFile, seed: int, drawn: int) -> BaseSampler:
    """What draws a trial. ``drawn`` is the number of those before it, so that a sweep that was killed draws on as if
    it had not been."""
    if sweep.method == "grid":
        return GridSampler({one.name: one.grid for one in sweep.parameters if one.drawn is not None and one.grid}, seed)
    if sweep.method == "random":
        return RandomSampler(seed + drawn)
    return TPESampler(seed=seed + drawn)


def draw(trial: Trial, parameters: Sequence[Parameter]) -> dict[str, Scalar]:
    """The parameters' values in a trial, in the file's order."""
    return {one.name: one.value(_drawn(trial, one)) for one in parameters}


def _drawn(trial: Trial, parameter: Parameter) -> Any:
    name, law = parameter.name, parameter.drawn
    if isinstance(law, CategoricalDistribution):
        return trial.suggest_categorical(name, law.choices)
    if isinstance(law, IntDistribution):
        return trial.suggest_int(name, law.low, law.high)
    if isinstance(law, FloatDistribution):
        return trial.suggest_float(name, law.low, law.high, log=law.log)
    return None


def _ask_again(study: Study, failed: bool) -> None:
    """Queue every trial again that has not ended, and the failed ones if asked. Those of a killed sweep still say
    running."""
    for lost in trials(study):
        if lost.state == TrialState.WAITING or (_has_ended(lost) and not (failed and lost.state == TrialState.FAIL)):
            continue
        drawn = VALUES in lost.user_attrs  # whole; a part of it would leave the sampler out of step
        study.add_trial(
            optuna.create_trial(
                state=TrialState.WAITING,
                params=lost.params if drawn else {},
                distributions=lost.distributions if drawn else {},
                user_attrs={key: lost.user_attrs[key] for key in (RUN, VALUES) if key in lost.user_attrs},
                # GridSampler knows its points by these.
                system_attrs={k: value for k, value in lost.system_attrs.items() if k in ("grid_id", "search_space")},
            )
        )
    for lost in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(lost.number, state=TrialState.FAIL)


def next_up(study: Study) -> int:
    """The place among `trials`, from 0 on, of the one that is tried next: the first that is queued, or a new one."""
    if not waiting(study):
        run = f"trial-{len(trials(study)) + 1:03d}"
        study.add_trial(optuna.create_trial(state=TrialState.WAITING, user_attrs={RUN: run}))
    run = waiting(study)[0].user_attrs[RUN]
    return [one.user_attrs[RUN] for one in trials(study)].index(run)


def trials(study: Study) -> list[FrozenTrial]:
    """One trial for each run, in the order in which they were drawn; of a continued one the last."""
    return list({one.user_attrs[RUN]: one for one in study.get_trials(deepcopy=False)}.values())


def ended(study: Study) -> list[FrozenTrial]:
    """The trials that came to an end of their own: finished, stopped early, or failed."""
    return [one for one in trials(study) if _has_ended(one)]


def _has_ended(trial: FrozenTrial) -> bool:
    """Optuna takes what was interrupted for failed, too; a training that failed has left its reason."""
    return trial.state.is_finished() and (trial.state != TrialState.FAIL or ERROR in trial.user_attrs)


def waiting(study: Study) -> list[FrozenTrial]:
    """The trials that are queued to be tried again."""
    return study.get_trials(deepcopy=False, states=(TrialState.WAITING,))


def best(study: Study) -> FrozenTrial | None:
    """The finished trial with the best value; the first among equals."""
    finished = [one for one in ended(study) if one.state == TrialState.COMPLETE and one.value is not None]
    if not finished:
        return None
    sign = -1 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1
    return min(finished, key=lambda one: sign * (one.value or 0.0))
