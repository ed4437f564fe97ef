"""Predictions that were made elsewhere, in the published form, to be graded as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.ecomagent.shopping import Record
from benchmarks.ecomagent.tasks import Task, refuse_no_file
from recipes.base import Text
from recipes.faults import DataFaults, Fault, explain
from recipes.rows import file_rows

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Function(Part):
    name: str = Field(description="the tool's name")


class Call(Part):
    function: Function = Field(description="an object with name and arguments")


class Message(Part):
    """A message of OpenAI's chat completions; what it says may have any form."""

    role: str = Field(description="system, user, assistant or tool")
    tool_calls: tuple[Call, ...] | None = Field(default=None, description="a list of calls, or null")


class Prediction(Part):
    """What grading and measuring read of a prediction. Everything but the first two may be missing."""

    id: Text = Field(description="the id of its task")
    predicted_product_id: Text | None = Field(description="a product id, or null where none was recommended")
    trajectory: tuple[Message, ...] | None = Field(default=None, description="a list of messages")
    total_tool_calls: Amount | None = Field(default=None, description="a number, 0 or more")
    ask_user_calls: Amount | None = Field(default=None, description="a number, 0 or more")
    get_profile_calls: Amount | None = Field(default=None, description="a number, 0 or more")
    input_tokens: Amount | None = Field(default=None, description="a number, 0 or more")
    output_tokens: Amount | None = Field(default=None, description="a number, 0 or more")
    seconds: Amount | None = Field(default=None, description="a number, 0 or more")
    turns: Amount | None = Field(default=None, description="a number, 0 or more")
    reasoning: str | None = Field(default=None, description="text")
    error: str | None = Field(default=None, description="what the episode broke down with, or null")


@dataclass
class GivenPredictions:
    """The episodes of an evaluation that were played elsewhere; tasks without a prediction count as missing."""

    tasks: Sequence[Task]
    made: Mapping[str, Record]
    subject: dict[str, Any]
    played: int = 0
    seconds: float = 0.0

    def play_all(self) -> None:
        """Nothing is left to play."""

    def records(self) -> list[tuple[Task, Record | None, int]]:
        return [(task, self.made.get(task.id), 1) for task in self.tasks]


def read_predictions(path: str) -> tuple[str, dict[str, Record], str]:
    """(the model's name, predictions by task id, sha256 of the file) of a file of predictions.

    Raises as `refuse_no_file` does; DataFaults for lines that are none.
    """
    refuse_no_file(path, "predictions, one a line (.jsonl)")
    made: dict[str, Record] = {}
    faults: list[Fault] = []
    for row in file_rows(path):
        if isinstance(row, Fault):
            faults.append(row)
            continue
        try:
            name = Prediction.model_validate(dict(row.value)).id
        except ValidationError as error:
            told = (explain(one, Prediction) for one in error.errors(include_url=False))
            faults += [Fault(path, row.line, field, message) for field, message in told]
            continue
        if made.setdefault(name, dict(row.value)) != row.value:
            faults.append(Fault(path, row.line, "id", f"{name!r} is predicted twice; keep one of the two"))
    if faults or not made:
        raise DataFaults(faults or [Fault(path, None, "", "no predictions; give at least one")])
    model = str(next(iter(made.values())).get("model") or Path(path).stem)
    return model, made, hashlib.sha256(Path(path).read_bytes()).hexdigest()
