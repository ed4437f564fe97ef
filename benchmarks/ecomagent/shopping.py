"""The episodes of an evaluation, in its folder: played and kept as they end.

Episodes lie in ``predictions.jsonl`` (``predictions-2.jsonl`` and so on for further trials), the seconds of their turns
in ``turns.jsonl`` beside it (null where that file was lost). While an episode is played, its messages can be read in
``playing/``.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.config import EcomAgentConfig
from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.players import FoundPlayer
from benchmarks.ecomagent.playing import Errand, Player, deal, play
from benchmarks.ecomagent.tasks import Task
from benchmarks.ecomagent.tools import Toolbox
from benchmarks.progress import progress
from benchmarks.results import Predictions, naming, to_line
from models.runtime import this_process

SETS = ("predictions", "predictions-*", "turns", "turns-*")
PLAYING = "playing"
LONGEST_NAME = 80  # characters of a task's id in the name of a file
Record = dict[str, Any]


@dataclass
class Shopping:
    """Plays the episodes of an evaluation.

    Attributes:
        subject: who shops, with what is known of it once it is loaded.
        played, seconds: what this run itself played, and in how long.
    """

    config: EcomAgentConfig
    tasks: Sequence[Task]
    catalogue: Catalogue
    player: FoundPlayer
    folder: Path
    say: Console
    subject: dict[str, Any] = field(default_factory=dict)
    played: int = 0
    seconds: float = 0.0

    def play_all(self) -> None:
        """Play what has not been played; each process its share of the tasks, each trial into files of its own."""
        state = this_process()
        self.subject = {"name": self.player.name, **self.player.facts}
        (self.folder / PLAYING).mkdir(exist_ok=True)
        player = None
        for trial in range(1, self.config.trials + 1):
            errands = [Errand(task, trial) for task in self.tasks]
            done = self._recover(trial)
            lanes = deal(errands[state.process_index :: state.num_processes], self.config.lanes, done)
            if any(lanes):
                if done:
                    self.say.print(f"going on: {len(done)} of {len(errands)} episodes are there")
                player = player or self.player.open()
                self.subject = {"name": player.name, **player.facts}
                self._play(player, lanes, trial, proven=bool(done or self.played))
            state.wait_for_everyone()
            if state.is_main_process:
                for kept in self._files(trial):
                    kept.merge([task.id for task in self.tasks])
            state.wait_for_everyone()
        if state.is_main_process:
            shutil.rmtree(self.folder / PLAYING)

    def records(self) -> list[tuple[Task, Record | None, int]]:
        """(task, prediction with the seconds that it took, trial) of every episode."""
        found: list[tuple[Task, Record | None, int]] = []
        for trial in range(1, self.config.trials + 1):
            predictions, turns = self._files(trial)
            spent = {line["id"]: line["seconds"] for line in turns.read()}
            seconds = {name: None if each is None else sum(each) for name, each in spent.items()}
            records = {record["id"]: {**record, "seconds": seconds[record["id"]]} for record in predictions.read()}
            found += [(task, records[task.id], trial) for task in self.tasks]
        return found

    def _files(self, trial: int) -> tuple[Predictions, Predictions]:
        """Where the episodes of a trial go, and how long their turns took."""
        ending = "" if trial == 1 else f"-{trial}"
        return Predictions(self.folder, f"predictions{ending}"), Predictions(self.folder, f"turns{ending}")

    def _recover(self, trial: int) -> set[str]:
        """Ids of the episodes that an earlier run ended, without those that ended with an error if they are retried."""
        predictions, turns = self._files(trial)
        if this_process().is_main_process:
            retried = crashed(predictions) if self.config.retry_errors else set()
            kept = [[task.id] for task in self.tasks if task.id not in retried]
            for part in (predictions, turns):
                part.recover(kept)
                part.path.unlink(missing_ok=True)
                kept = [[name] for name in sorted(predictions.recovered())]
            lost = sorted(predictions.recovered() - turns.recovered())
            turns.append(0, [{"id": name, "seconds": None} for name in lost])
        this_process().wait_for_everyone()
        return predictions.recovered()

    def _play(self, player: Player, lanes: list[list[Errand]], trial: int, proven: bool) -> None:
        predictions, turns = self._files(trial)
        process = this_process().process_index
        started = time.perf_counter()
        before = self.played
        with progress(self.say, "episodes", sum(map(len, lanes))) as update:

            def ended(episode: Episode) -> None:
                # The seconds first: an episode that has its prediction is not played again.
                turns.append(process, [{"id": episode.task.id, "seconds": [round(s, 4) for s in episode.turn_seconds]}])
                predictions.append(process, [episode.record(player.name)])
                self._live(episode.task, trial).unlink(missing_ok=True)
                self.played += 1
                update(self.played - before)

            play(player, lanes, self._start, ended, proven)
        self.seconds += time.perf_counter() - started

    def _start(self, errand: Errand) -> Episode:
        toolbox = Toolbox(self.catalogue, errand.task, self.config.mode)
        path = self._live(errand.task, errand.trial)
        path.unlink(missing_ok=True)

        def write(message: Mapping[str, Any]) -> None:
            with naming(path), path.open("a", encoding="utf-8") as file:
                file.write(to_line(message))

        return Episode(errand.task, toolbox, errand.trial, self.config.max_steps, write)

    def _live(self, task: Task, trial: int) -> Path:
        """The file in which an episode can be followed while it is played."""
        name = re.sub(r"[^\w.-]", "_", task.id)
        if name != task.id or len(name) > LONGEST_NAME:  # another id may look the same
            name = f"{name[:LONGEST_NAME]}-{hashlib.sha256(task.id.encode()).hexdigest()[:8]}"
        return self.folder / PLAYING / f"{name}.{trial}.jsonl"


def crashed(predictions: Predictions) -> set[str]:
    """Ids of the episodes that ended with an error."""
    return {record["id"] for record in predictions.whole() if record.get("error")}
