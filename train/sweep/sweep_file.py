"""A W&B sweep file: what to run, over which parameters, and what is to become largest or smallest."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from train.sweep.parameters import Parameter, read_parameter

METHODS = ("grid", "random", "bayes")
KEYS = ("program", "command", "method", "metric", "parameters", "early_terminate", "run_cap")
ONLY_FOR_THE_SERVER = ("name", "description", "project", "entity")
STOPPING = ("type", "min_iter", "max_iter", "s", "eta", "strict")
ETA = 3  # W&B's default


@dataclass(frozen=True)
class Hyperband:
    """When a trial is looked at, counted in evaluations: first after ``first``, then after ``eta`` times as many.

    ``last`` is the number of evaluations of a whole run, None where the file does not say.
    """

    first: int
    last: int | None
    eta: int


@dataclass(frozen=True)
class SweepFile:
    """A sweep file, understood.

    Attributes:
        program: the script to run, from the current folder.
        command: its words, with W&B's macros; None is W&B's default.
        metric: the name under which training logs what is optimised.
        most_trials: the file's ``run_cap``.
        text: the file as it was read, to tell whether it is still the same.
    """

    path: Path
    program: str
    command: tuple[str, ...] | None
    method: str
    metric: str
    maximize: bool
    parameters: tuple[Parameter, ...]
    hyperband: Hyperband | None
    most_trials: int | None
    text: Mapping[str, Any]

    @property
    def grid_size(self) -> int:
        """The number of points of a grid."""
        size = 1
        for parameter in self.parameters:
            size *= len(parameter.grid) if parameter.drawn is not None and parameter.grid else 1
        return size

    def args(self, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Values as W&B's agent hands them to a command."""
        return {name: {"value": value} for name, value in values.items()}


def read_sweep(path: Path, known: Collection[str]) -> SweepFile:
    """The sweep of a file.

    Args:
        known: the keys that the program takes; a parameter is one of them.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no sweep, or asks for what cannot be done here; names the key.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; configs/sweeps/ has some")
    try:
        text = yaml.safe_load(path.read_text(encoding="utf-8"))
        return _understood(path, _as_kept(text), known)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise ValueError(f"{path}: {error}") from error


def _as_kept(text: Any) -> Any:
    """What YAML holds as a study keeps it, in JSON: numbers that are keys become texts. Raises ValueError for dates and
    the like."""
    try:
        return json.loads(json.dumps(text))
    except TypeError as error:
        raise ValueError(f"a date or another value that is neither number nor text ({error}); quote it") from error


def _understood(path: Path, text: Any, known: Collection[str]) -> SweepFile:
    if not isinstance(text, Mapping):
        raise ValueError("this is no sweep; give program:, method:, metric: and parameters:")
    _refuse_unknown("", text, (*KEYS, *ONLY_FOR_THE_SERVER))
    program = text.get("program")
    if not isinstance(program, str) or not Path(program).is_file():
        raise ValueError(f"program: {program!r} is no file here; start from the repository's root")
    method = text.get("method")
    if method not in METHODS:
        raise ValueError(f"method: {method!r}; give one of {', '.join(METHODS)}")
    metric, goal = _metric(text.get("metric"))
    command = text.get("command")
    if command is not None and not (isinstance(command, list) and all(isinstance(word, str | int) for word in command)):
        raise ValueError("command: give a list of words, each an item of its own")
    given = text.get("parameters")
    if not isinstance(given, Mapping) or not given:
        raise ValueError("parameters: give at least one")
    _refuse_unknown("parameters.", given, known)
    parameters = tuple(read_parameter(name, one) for name, one in given.items())
    if method == "grid":
        parameters = tuple(parameter.on_grid() for parameter in parameters)
    return SweepFile(
        path,
        program,
        None if command is None else tuple(map(str, command)),
        method,
        metric,
        goal == "maximize",
        parameters,
        _hyperband(text.get("early_terminate")),
        _most_trials(text.get("run_cap")),
        deepcopy(text),
    )


def _refuse_unknown(prefix: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            near = get_close_matches(str(key), known, n=1, cutoff=0.5)
            hint = f"; did you mean {prefix}{near[0]}?" if near else ""
            raise ValueError(f"{prefix}{key}: unknown key{hint}")


def _metric(given: Any) -> tuple[str, str]:
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        raise ValueError("metric: give name: (what training logs, eval_macro_f1 for instance) and goal:")
    goal = given.get("goal", "minimize")
    if goal not in ("minimize", "maximize"):
        raise ValueError(f"metric.goal: {goal!r}; give minimize or maximize")
    return given["name"], goal


def _most_trials(given: Any) -> int | None:
    if given is not None and not _whole(given, 1):
        raise ValueError(f"run_cap: {given!r}; give a whole number of trials from 1 on")
    count: int | None = given
    return count


def _whole(given: Any, least: int) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= least


def _hyperband(given: Any) -> Hyperband | None:
    """``early_terminate``: bands at min_iter times powers of eta, or at max_iter divided by s powers of eta."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or given.get("type") != "hyperband":
        raise ValueError("early_terminate.type: W&B knows hyperband alone")
    _refuse_unknown("early_terminate.", given, STOPPING)
    eta = given.get("eta", ETA)
    if not _whole(eta, 2):
        raise ValueError(f"early_terminate.eta: {eta!r}; give a whole number from 2 on")
    first, last = given.get("min_iter"), given.get("max_iter")
    if (first is None) == (last is None):
        raise ValueError("early_terminate: give min_iter, or max_iter and s, in evaluations")
    if first is None:
        first = _smallest_band(last, given.get("s"), eta)
    if not _whole(first, 1):
        raise ValueError(f"early_terminate.min_iter: {first!r}; give a number of evaluations")
    return Hyperband(first, last, eta)


def _smallest_band(last: Any, bands: Any, eta: int) -> int:
    """``last`` divided by eta as many times as there are bands, but not to less than one evaluation."""
    if not _whole(last, eta) or not _whole(bands, 1):
        raise ValueError(f"early_terminate: give max_iter (from {eta} on) and s (from 1 on) as whole numbers")
    return int(max(last / eta**k for k in range(1, bands + 1) if k == bands or last / eta ** (k + 1) < 1))


def swept(parameters: Sequence[Parameter]) -> list[str]:
    """Names of the parameters that vary."""
    return [parameter.name for parameter in parameters if parameter.drawn is not None]
