"""Script verification: is this script (ordered steps) a plausible and feasible way to reach the goal?

Task 1 of EcomScriptBench (ACL 2025). How an item reads is not published; the text here is this project's choice.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from recipes.base import Judgment, Record, Text, numbered


class ScriptRecord(Record):
    """``script``: the steps in order."""

    script: Annotated[tuple[Text, ...], Field(min_length=1, description="the steps in order")]


class ScriptVerify(Judgment[ScriptRecord]):
    name = "script_verify"
    record = ScriptRecord
    template_version = "script_verify-1"
    instruction = (
        "You check plans. Given a goal and a script of ordered steps, say whether following the script is a plausible "
        "and feasible way to reach the goal. Answer No if an essential step is missing, if steps are in an impossible "
        "order, if a step does not belong or defeats the goal, or if the script reaches another goal."
    )
    question = "Is this script a feasible way to reach the goal? Answer Yes or No."

    def parts(self, record: ScriptRecord) -> tuple[str, ...]:
        return f"Goal: {record.goal}\n", f"Script:\n{numbered(record.script)}"


SCRIPT_VERIFY = ScriptVerify()
