"""Playing a recorded episode again without its model: the agent's turns are given, all else must come out the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.ecomagent.episodes import MAX_STEPS, Episode
from benchmarks.ecomagent.replies import Reply, ToolCall
from benchmarks.ecomagent.tasks import Task
from benchmarks.ecomagent.tools import Toolbox


def replay(record: Mapping[str, Any], task: Task, toolbox: Toolbox, max_steps: int = MAX_STEPS) -> Episode:
    """The episode of a prediction, played again with fresh tools.

    Raises ValueError where a message comes out otherwise: other tasks, another catalogue, or other tools.
    """
    episode = Episode(task, toolbox, int(record.get("trial", 1)), max_steps)
    for reply in replies_of(record["trajectory"]):
        if episode.done:
            break
        episode.take(reply)
    old, new = record["trajectory"], episode.trajectory
    for number, (was, now) in enumerate(zip(old, new, strict=False)):
        if was != now:
            raise ValueError(f"{task.id}: message {number} of the replay is another: {now!r} instead of {was!r}")
    if len(old) != len(new):
        raise ValueError(f"{task.id}: the replay has {len(new)} messages, the record {len(old)}")
    return episode


def replies_of(trajectory: Sequence[Mapping[str, Any]]) -> list[Reply]:
    """The agent's turns of a trajectory."""
    return [_reply(message) for message in trajectory if message["role"] == "assistant"]


def _reply(message: Mapping[str, Any]) -> Reply:
    written = [*(message.get("tool_calls") or ()), *(message.get("discarded_tool_calls") or ())]
    calls = [ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in written]
    return Reply(message["content"] or "", tuple(calls), str(message.get("reasoning_trace") or ""))
