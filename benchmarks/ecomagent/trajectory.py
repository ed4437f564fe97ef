"""What a trajectory tells: the calls that were made, what came back, and which hidden wishes the agent got to know.

A trajectory is the list of messages of an episode in the form of OpenAI's chat completions, as predictions keep it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.ecomagent.tasks import RubricItem, Task


@dataclass(frozen=True)
class Call:
    """A tool call and its result. ``arguments`` is None where they were no JSON object; ``message`` counts from 0."""

    name: str
    arguments: dict[str, Any] | None
    result: Any
    message: int


def calls(trajectory: Sequence[Mapping[str, Any]]) -> list[Call]:
    """Every executed call of a trajectory, in order; calls that were dropped (all but the first of a turn) are not."""
    asked: dict[str, tuple[str, Any, int]] = {}
    found: list[Call] = []
    for number, message in enumerate(trajectory):
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            asked[str(call.get("id"))] = (str(function.get("name")), function.get("arguments"), number)
        if message.get("role") == "tool" and (key := str(message.get("tool_call_id"))) in asked:
            name, arguments, place = asked.pop(key)
            found.append(Call(name, _object(arguments), _value(message.get("content")), place))
    return found


@dataclass(frozen=True)
class Told:
    """What an agent got to know beside the query: the profile, and the scripted answers (slot ids)."""

    profile: bool
    slots: frozenset[str]

    def knows(self, task: Task, item: RubricItem) -> bool:
        """Whether the agent was told of a requirement; what the query says it was always told."""
        if item.info_source == "query":
            return True
        if item.info_source == "persona":
            return self.profile
        slots = task.clarification_script.clarification_slots
        return any(item.id in slot.linked_rubric_ids and slot.slot_id in self.slots for slot in slots)


def told(task: Task, trajectory: Sequence[Mapping[str, Any]]) -> Told:
    """What the trajectory shows that the agent was told."""
    made = calls(trajectory)
    profile = any(call.name == "get_user_profile" and not _failed(call.result) for call in made)
    answers = {
        call.result.get("user_response") for call in made if call.name == "ask_user" and isinstance(call.result, dict)
    }
    slots = task.clarification_script.clarification_slots
    return Told(profile, frozenset(slot.slot_id for slot in slots if slot.user_response in answers))


def _failed(result: Any) -> bool:
    return isinstance(result, dict) and bool(result.get("error"))


def _object(arguments: Any) -> dict[str, Any] | None:
    value = _value(arguments)
    return value if isinstance(value, dict) else None


def _value(text: Any) -> Any:
    """JSON text as its value; what is none stays as it is."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text
