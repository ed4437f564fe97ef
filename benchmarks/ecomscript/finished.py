"""A finished EcomScriptBench evaluation as others read it: whole, or told of in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from benchmarks.results import AGAIN, RESULTS, Predictions, read_results
from recipes.faults import field_path

Prediction = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """A finished evaluation: its name, results.json, and predictions by record id, in the order of the data."""

    name: str
    folder: Path
    results: Mapping[str, Any]
    lines: Mapping[str, Prediction]

    @property
    def fingerprint(self) -> str:
        return str(self.results["data"]["fingerprint"])


class _Subject(BaseModel):
    name: str
    method: str


class _Data(BaseModel):
    reference: str
    fingerprint: str


class _Refused(BaseModel):
    count: int


class _Results(BaseModel):
    """What is taken from results.json."""

    judgment: str
    subject: _Subject
    data: _Data
    n: int
    refused: _Refused


class _Line(BaseModel):
    """What is taken from a line of predictions.jsonl."""

    id: str
    group: str
    label: Literal[0, 1]
    verdict: int
    margin: float | None
    p_yes: float | None
    tokens: int
    shortened: bool


def read_run(folder: Path) -> Run:
    """The evaluation in a folder.

    Raises FileNotFoundError or ValueError where there is none, it is another benchmark's, or a file of it was cut or
    spoilt.
    """
    results = read_results(folder)
    benchmark = results.get("benchmark")
    if isinstance(benchmark, str) and benchmark != "ecomscript":
        raise ValueError(f"{folder} holds results of {benchmark}; runs of ecomscript are read here")
    _check(_Results, results, str(folder / RESULTS))
    predictions = Predictions(folder)
    lines = predictions.read()
    for number, line in enumerate(lines, 1):
        _check(_Line, line, f"{predictions.path}:{number}")
    found = {line["id"]: line for line in lines}
    if not len(found) == len(lines) == results["n"]:
        raise ValueError(f"{predictions.path}: {len(found)} predictions where {RESULTS} counts {results['n']}; {AGAIN}")
    return Run(results["subject"]["name"], folder, results, found)


def _check(model: type[BaseModel], found: Mapping[str, Any], where: str) -> None:
    try:
        model.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{where}: {field_path(first['loc'])}: {first['msg'].lower()}; {AGAIN}") from None
