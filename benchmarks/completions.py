"""Texts of a generator, kept on disk as they come: a killed run goes on, any number of processes share the work.

A set of texts has a name and lies in ``<name>.jsonl`` of an evaluation's folder, one line a text:
``{"id", "text", "tokens", "prompt_tokens", "finish"}`` (see models.generation.Completion) and what else the caller
has to say of it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.progress import progress
from benchmarks.results import Predictions
from models.generation import Chat, Completion, Found, Generator, SamplingSettings
from models.runtime import this_process

Line = dict[str, Any]


@dataclass
class Cost:
    """What this run itself had written (over all processes it is the same file, not the same cost)."""

    texts: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    seconds: float = 0.0

    def add(self, completion: Completion) -> None:
        self.texts += 1
        self.tokens += completion.tokens
        self.prompt_tokens += completion.prompt_tokens

    def __iadd__(self, other: Cost) -> Cost:
        self.texts += other.texts
        self.tokens += other.tokens
        self.prompt_tokens += other.prompt_tokens
        self.seconds += other.seconds
        return self


@dataclass
class Crew:
    """Generators that are loaded when they are first needed, one at a time: several large ones do not fit together."""

    _key: tuple[Any, ...] | None = None
    _generator: Generator | None = field(default=None, repr=False)

    def open(self, found: Found) -> Generator:
        """The generator, loaded; the one before it is let go, unless it is the same."""
        key = (found.name, str(sorted(found.facts.items(), key=str)))
        if self._generator is None or self._key != key:
            self._generator = None
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self._generator, self._key = found.open(), key
        return self._generator


@dataclass(frozen=True)
class Work:
    """What is to be written: a chat for each id, lines for ids that are settled without a text, and what else is to be
    said in an id's line."""

    chats: Mapping[str, Chat]
    settled: Mapping[str, Line] = field(default_factory=dict)
    notes: Mapping[str, Line] = field(default_factory=dict)


class Completions:
    """The sets of texts in one folder."""

    def __init__(self, folder: Path, crew: Crew, say: Console) -> None:
        self.folder, self.crew, self.say = folder, crew, say

    def complete(
        self,
        name: str,
        ids: Sequence[str],
        found: Found,
        settings: SamplingSettings,
        prepare: Callable[[Generator], Work],
    ) -> tuple[dict[str, Line], Cost]:
        """The lines of a set, by id in the order of ``ids``: those that are there, and the rest written now.

        Args:
            prepare: makes the work; called, and the generator loaded, only where lines are missing.
        """
        state, predictions = this_process(), Predictions(self.folder, name)
        if (lines := _whole(predictions)) and list(lines) == list(ids):
            return lines, Cost()
        # Every process has looked before the main one touches the files.
        state.wait_for_everyone()
        generator = self.crew.open(found)
        work = prepare(generator)
        cost = self._write(predictions, name, generator, settings, work)
        if state.is_main_process:
            predictions.merge(ids)
        state.wait_for_everyone()
        return {line["id"]: line for line in predictions.read()}, cost

    def _write(
        self, predictions: Predictions, name: str, generator: Generator, settings: SamplingSettings, work: Work
    ) -> Cost:
        """Write what is missing: whole batches are kept from an earlier run, the others dealt to the processes."""
        state, ids, chats = this_process(), list(work.chats), list(work.chats.values())
        plan = generator.plan(chats, settings)
        if state.is_main_process:
            predictions.recover([[ids[row] for row in batch] for batch in plan])
            predictions.append(state.process_index, [{"id": one, **line} for one, line in work.settled.items()])
        state.wait_for_everyone()
        done = predictions.recovered()
        pending = [batch for batch in plan if ids[batch[0]] not in done]
        if done and pending:
            self.say.print(f"going on: {len(done)} of {len(ids)} {name} are there")
        own = pending[state.process_index :: state.num_processes]
        cost, started = Cost(), time.perf_counter()
        with progress(self.say, name, sum(map(len, own))) as update:
            for row, completion in generator.generate(chats, settings, own):
                note = work.notes.get(ids[row], {})
                predictions.append(state.process_index, [{"id": ids[row], **asdict(completion), **note}])
                cost.add(completion)
                update(cost.texts)
        state.wait_for_everyone()
        cost.seconds = time.perf_counter() - started
        return cost


def _whole(predictions: Predictions) -> dict[str, Line]:
    """The lines of a finished file by id; none where it is not there, or was cut or spoilt since: what is left of such
    a file is gone on from."""
    try:
        return {line["id"]: line for line in predictions.read()}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
