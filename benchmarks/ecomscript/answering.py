"""Examining a language model by what it writes: texts kept as they come, answers read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.completions import Completions, Cost, Crew, Line, Work
from benchmarks.ecomscript.answers import read_answer, vote
from benchmarks.ecomscript.asking import Asking, next_turn
from benchmarks.ecomscript.judging import fitting, kind_of
from benchmarks.results import Predictions, to_line, write_text
from models.generation import Found, Generator
from models.runtime import this_process
from recipes.fitting import Fitted

TEXTS = ("answers", "critiques", "revisions")  # names of the sets of texts
TOO_LONG = "too_long"  # how a text "ends" that was not asked for


@dataclass(frozen=True)
class Answered:
    """Prediction lines in the order of the data; records that did not fit (id -> tokens); what this run had written."""

    lines: list[Line]
    refused: dict[str, int]
    cost: Cost


@dataclass(frozen=True)
class Respondent:
    """Asks ``found`` about records and keeps texts and predictions in ``folder``."""

    found: Found
    asking: Asking
    folder: Path
    max_length: int | None
    drop_too_long: bool
    say: Console

    def examine(self, records: Sequence[Any]) -> Answered:
        """A prediction for every record that fits, going on where an earlier run was stopped.

        Raises ValueError where a record does not fit and may not be left out.
        """
        store, total = Completions(self.folder, Crew(), self.say), Cost()
        turns: list[dict[str, Line]] = []
        names = [self._name(record, sample) for record in records for sample in range(self.asking.samples)]
        for turn in self.asking.turns:
            prepare = partial(self._prepare, records, turns)
            said, cost = store.complete(turn, names, self.found, self.asking.settings, prepare)
            turns = [*turns, said]
            total += cost
            names = [name for name in names if said[name]["finish"] != TOO_LONG]
        kept = set(names)
        lines = [self._line(record, turns) for record in records if self._name(record, 0) in kept]
        if this_process().is_main_process:
            write_text(Predictions(self.folder).path, "".join(map(to_line, lines)))
        this_process().wait_for_everyone()
        first = {record.id: turns[0][self._name(record, 0)] for record in records}
        return Answered(
            lines, {one: line["prompt_tokens"] for one, line in first.items() if line["finish"] == TOO_LONG}, total
        )

    def _name(self, record: Any, sample: int) -> str:
        """What the text of a record's sample is called."""
        return f"{record.id}#{sample + 1}" if self.asking.samples > 1 else record.id

    def _prepare(self, records: Sequence[Any], turns: Sequence[dict[str, Line]], generator: Generator) -> Work:
        """The chats of the turn behind those that have been answered."""
        samples = range(self.asking.samples)
        fitted = self._fit(records, generator)
        chats = {
            self._name(one, sample): self.asking.first(one, sample) for one in fitted.records for sample in samples
        }
        for answered, turn in zip(turns, self.asking.turns[1:], strict=False):
            chats = {name: next_turn(chat, answered[name]["text"], turn) for name, chat in chats.items()}
        if turns:
            return Work(chats)
        settled = {
            self._name(record, sample): {"text": "", "tokens": 0, "prompt_tokens": tokens, "finish": TOO_LONG}
            for record in records
            if (tokens := fitted.refused.get(record.id)) is not None
            for sample in samples
        }
        notes = {
            self._name(record, sample): {"shortened": True}
            for record in fitted.records
            if record.id in fitted.shortened
            for sample in samples
        }
        return Work(chats, settled, notes)

    def _fit(self, records: Sequence[Any], generator: Generator) -> Fitted[Any]:
        """The records as they fit; those of a server, which alone counts its tokens, as they are."""
        asking = self.asking
        own = None if generator.context is None else generator.context - asking.reserve
        limit = min((one for one in (own, self.max_length) if one is not None), default=None)

        def lengths(some: Sequence[Any]) -> list[int]:
            return generator.prompt_tokens([asking.first(record) for record in some]) or []

        if limit is None or (records and not lengths(records[:1])):
            return Fitted(list(records), [0] * len(records), {}, {})
        return fitting(
            "predictions", asking.judgment, records, lengths, limit, len(asking.examples), self.drop_too_long
        )

    def _line(self, record: Any, turns: Sequence[Mapping[str, Line]]) -> Line:
        """A prediction: what was said, and the verdict that is scored. What was not read is scored as wrong."""
        names = [self._name(record, sample) for sample in range(self.asking.samples)]
        texts = [turns[-1][name]["text"] for name in names]
        answers = [read_answer(text) for text in texts]
        said = vote(answers)
        unread = None if said is not None else "unparsed" if answers.count(None) == len(answers) else "undecided"
        return {
            "id": record.id,
            "group": record.group_key,
            "label": record.label,
            "p_yes": None,
            "margin": None,
            "said": said,
            "unread": unread,
            "verdict": 1 - record.label if said is None else said,
            "answers": answers,
            "texts": texts,
            "cut": any(turns[-1][name]["finish"] == "length" for name in names),
            "tokens": turns[0][names[0]]["prompt_tokens"],
            "written": sum(turn[name]["tokens"] for turn in turns for name in names),
            "shots": len(self.asking.examples),
            "shortened": bool(turns[0][names[0]].get("shortened")),
            **kind_of(record),
        }
