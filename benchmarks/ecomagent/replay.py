"""Playing recorded episodes again without their model: `python -m benchmarks.ecomagent.replay FOLDER`.

The agent's turns are given; everything else (what tools answer, notes of the loop, how the episode ends) must come out
the same as in the folder of the evaluation. The command ends with 1 where something does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.ecomagent.episodes import MAX_STEPS, Episode
from benchmarks.ecomagent.replies import Reply, ToolCall
from benchmarks.ecomagent.samples import SAMPLE, open_catalogue, tasks_file
from benchmarks.ecomagent.tasks import Task, read_tasks
from benchmarks.ecomagent.tools import Toolbox
from benchmarks.results import IDENTITY


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


def replay_all(folder: Path, tasks: str = SAMPLE, catalogue: str = SAMPLE) -> tuple[int, list[str]]:
    """(episodes played again, what came out otherwise) of an evaluation's folder, all trials.

    Raises FileNotFoundError where the folder holds no finished evaluation, ValueError where a file of it is spoilt.
    """
    files = [*folder.glob("predictions.jsonl"), *sorted(folder.glob("predictions-*.jsonl"))]
    if not files or not (folder / IDENTITY).is_file():
        raise FileNotFoundError(f"{folder}: no predictions of a finished evaluation; give the folder of one")
    (rules,) = _objects(folder / IDENTITY, {"mode", "max_steps"}, lines=False)
    records = [record for path in files for record in _objects(path, {"id", "trajectory"})]
    by_id, shop = {task.id: task for task in read_tasks(tasks_file(tasks))}, open_catalogue(catalogue)
    faults = []
    for record in records:
        try:
            if (task := by_id.get(record["id"])) is None:
                raise ValueError(f"{record['id']}: no such task in {tasks}; give the tasks that were played")
            replay(record, task, Toolbox(shop, task, rules["mode"]), rules["max_steps"])
        except ValueError as error:
            faults.append(str(error))
    return len(records), faults


def _objects(path: Path, fields: set[str], lines: bool = True) -> list[dict[str, Any]]:
    """The objects of a file, one a line or one in all. Raises ValueError where one is cut or lacks a field."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = []
    for number, part in enumerate(text.splitlines() if lines else [text], 1):
        try:
            value = json.loads(part)
        except ValueError:
            value = None
        if not isinstance(value, dict) or not fields <= value.keys():
            raise ValueError(f"{path}:{number}: cut or spoilt; give the evaluation's command again")
        found.append(value)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the results' folder")
    parser.add_argument("--tasks", default=SAMPLE, help="the tasks that were played (%(default)s)")
    parser.add_argument("--catalogue", default=SAMPLE, help="the catalogue they were played in (%(default)s)")
    chosen = parser.parse_args(arguments)
    try:
        count, faults = replay_all(chosen.folder, chosen.tasks, chosen.catalogue)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join([*faults, f"{count} episodes, {count - len(faults)} came out the same"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
