"""Texts of a generator, kept on disk as they come: a killed run goes on, any number of processes share the work.

A set of texts has a name and lies in ``<name>.jsonl`` of an evaluation's folder, one line a text:
``{"id", "text", "tokens", "prompt_tokens", "finish"}`` (see models.generation.Completion), ``asked`` where the chat
that it answers may change under the same id (see `fingerprint`), and what else the caller has to say of it.
"""

from __future__ import annotations

import gc
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.progress import progress
from benchmarks.results import Predictions
from models.generation import Chat, Completion, Found, Generator, SamplingSettings, as_completion
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
    """What is to be written.

    Attributes:
        chats: a chat for each id.
        settled: lines of ids that are settled without a text.
        notes: what else is to be said in an id's line.
        otherwise: what is done instead with ids whose chat a server finds too long, which it alone can tell; None
            refuses the run.
        remedy: what to do where it is refused.
    """

    chats: Mapping[str, Chat]
    settled: Mapping[str, Line] = field(default_factory=dict)
    notes: Mapping[str, Line] = field(default_factory=dict)
    otherwise: Work | None = None
    remedy: str = "serve the model with a longer context, or have it write less"


class Completions:
    """The sets of texts in one folder."""

    def __init__(self, folder: Path, crew: Crew, say: Console) -> None:
        self.folder, self.crew, self.say = folder, crew, say

    def replies(
        self, name: str, chats: Mapping[str, Chat], found: Found, settings: SamplingSettings
    ) -> tuple[dict[str, Line], Cost]:
        """The lines of a set whose chats (by id) are made of what others wrote. A text stays as long as its chat does,
        and is asked for again where that is another."""
        asked = {one: fingerprint(chat) for one, chat in chats.items()}
        work = Work(chats, notes={one: {"asked": mark} for one, mark in asked.items()})
        return self.complete(name, list(chats), found, settings, lambda _: work, asked)

    def complete(
        self,
        name: str,
        ids: Sequence[str],
        found: Found,
        settings: SamplingSettings,
        prepare: Callable[[Generator], Work],
        asked: Mapping[str, str] | None = None,
    ) -> tuple[dict[str, Line], Cost]:
        """The lines of a set, by id in the order of ``ids``: those that are there, and the rest written now.

        Args:
            prepare: makes the work; called, and the generator loaded, only where lines are missing.
            asked: the fingerprint of each chat, of which a line must be; None where ids say enough.

        Raises ValueError where a chat is too long for the generator and the work has nothing else for it.
        """
        state, predictions, wanted = this_process(), Predictions(self.folder, name), set(ids)

        def usable(line: Line) -> bool:
            if line["id"] not in wanted or as_completion(line) is None:
                return False
            return asked is None or line.get("asked") == asked[line["id"]]

        lines, spoilt = _whole(predictions, usable)
        if lines and not spoilt and list(lines) == list(ids):
            return lines, Cost()
        if spoilt:
            self.say.print(f"{name}: {spoilt} lines are spoilt or answer something else, and are not used")
        # Every process has looked before the main one touches the files.
        state.wait_for_everyone()
        generator = self.crew.open(found)
        work = prepare(generator)
        cost = self._write(predictions, name, generator, settings, work, usable)
        if state.is_main_process:
            predictions.merge(ids)
        state.wait_for_everyone()
        return {line["id"]: line for line in predictions.read()}, cost

    def _write(
        self,
        predictions: Predictions,
        name: str,
        generator: Generator,
        settings: SamplingSettings,
        work: Work,
        usable: Callable[[Line], bool],
    ) -> Cost:
        """Write what is missing: whole batches are kept from an earlier run, the others dealt to the processes."""
        state, ids, chats = this_process(), list(work.chats), list(work.chats.values())
        plan = generator.plan(chats, settings)
        if state.is_main_process:
            predictions.recover([[ids[row] for row in batch] for batch in plan], usable)
            _settle(predictions, work.settled)
        state.wait_for_everyone()
        done = predictions.recovered()
        pending = [batch for batch in plan if ids[batch[0]] not in done]
        if done and pending:
            self.say.print(f"going on: {len(done)} of {len(ids)} {name} are there")
        own = pending[state.process_index :: state.num_processes]
        started, recalled = time.perf_counter(), recalled_by(generator)
        with progress(self.say, name, sum(map(len, own))) as update:
            cost = _Writer(predictions, name, generator, settings, update).write(work, own)
        if known := recalled_by(generator) - recalled:
            self.say.print(f"{name}: {known} of {cost.texts} come from the cache of served answers (docs/ecomqa.md)")
        state.wait_for_everyone()
        cost.seconds = time.perf_counter() - started
        return cost


@dataclass
class _Writer:
    """Writes texts into a set. ``update`` is told how many there are so far."""

    predictions: Predictions
    name: str
    generator: Generator
    settings: SamplingSettings
    update: Callable[[int], None]
    cost: Cost = field(default_factory=Cost)

    def write(self, work: Work, batches: Sequence[Sequence[int]]) -> Cost:
        """Write batches of the work's chats; those that a server finds too long as the work says. Raises ValueError
        where it says nothing."""
        over = self._ask(work, batches)
        while over and work.otherwise is not None:
            instead = work.otherwise
            _settle(self.predictions, {one: instead.settled[one] for one in over if one in instead.settled})
            rest = {one: instead.chats[one] for one in over if one in instead.chats}
            work = replace(instead, chats=rest)
            over = self._ask(work, self.generator.plan(list(rest.values()), self.settings))
        return self.cost

    def _ask(self, work: Work, batches: Sequence[Sequence[int]]) -> list[str]:
        """The ids of those chats of some batches that were too long; the others are written."""
        ids, process, over = list(work.chats), this_process().process_index, []
        for row, completion in self.generator.generate(list(work.chats.values()), self.settings, batches):
            one = ids[row]
            if completion.finish != "too_long":
                self.predictions.append(process, [{"id": one, **asdict(completion), **work.notes.get(one, {})}])
                self.cost.add(completion)
                self.update(self.cost.texts)
            elif work.otherwise is not None:
                over.append(one)
            else:
                raise ValueError(
                    f"{self.name}: {one} is too long for {self.generator.name} together with "
                    f"{self.settings.max_tokens} tokens for the answer; {work.remedy}"
                )
        return over


def fingerprint(chat: Chat) -> str:
    """A short digest of what a chat says."""
    turns = json.dumps([asdict(message) for message in chat.messages], ensure_ascii=True)
    return hashlib.sha256(turns.encode()).hexdigest()[:16]


def _settle(predictions: Predictions, settled: Mapping[str, Line]) -> None:
    predictions.append(this_process().process_index, [{"id": one, **line} for one, line in settled.items()])


def recalled_by(generator: Generator | None) -> int:
    """How many answers a generator has had from a cache so far; none where it has no such thing."""
    return int(getattr(generator, "recalled", 0))


def _whole(predictions: Predictions, usable: Callable[[Line], bool]) -> tuple[dict[str, Line], int]:
    """The usable lines of a finished file by id, and how many others it has; none where it is not there."""
    try:
        lines = predictions.read()
    except (FileNotFoundError, ValueError):  # a line was cut, say: what is left of such a file is gone on from
        return {}, 0
    kept = {line["id"]: line for line in lines if isinstance(line.get("id"), str) and usable(line)}
    return kept, len(lines) - len(kept)
