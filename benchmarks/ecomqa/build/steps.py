"""Steps that can be stopped at any time: what was done lies in files, a line each, and is not done again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import Predictions

# Items between two writes: what a kill can cost, and what a batch is planned over.
CHUNK = 64
Lines = Sequence[Mapping[str, Any]]


def run_step(
    folder: Path, name: str, ids: Sequence[str], work: Callable[[list[str]], Lines], chunk: int = CHUNK
) -> dict[str, dict[str, Any]]:
    """Id -> line of a step, in ``<folder>/<name>.jsonl``.

    Args:
        ids: what the step is done for.
        work: makes the lines (each with ``id``) of some of the ids; called for those that have none yet.
    """
    lines = Predictions(folder, name)
    lines.recover([[each] for each in ids])
    done = lines.recovered()
    todo = [each for each in ids if each not in done]
    for start in range(0, len(todo), chunk):
        lines.append(0, work(todo[start : start + chunk]))
    lines.merge(ids)
    return {line["id"]: line for line in lines.read()}
