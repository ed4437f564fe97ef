"""An evaluation from configuration to results: play every episode, grade what was recommended, measure.

A folder belongs to one agent, one catalogue, one set of tasks and one set of rules (``evaluation.json``). Episodes are
kept as they end, in ``predictions.jsonl`` (``predictions-2.jsonl`` and so on for further trials), and are not played
again; while one is played, its messages can be read in ``playing/``. Judges, trials and measures can be added later.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from transformers.utils import logging as transformers_logging

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.config import EcomAgentConfig
from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.evaluations import EVALUATED, markdown, table, write_evaluations
from benchmarks.ecomagent.grading.agreement import agreement
from benchmarks.ecomagent.grading.grade import grade_all
from benchmarks.ecomagent.grading.judge import facts as judge_facts
from benchmarks.ecomagent.metrics import Outcome, Resampling, measure
from benchmarks.ecomagent.players import FoundPlayer, find_player, load_settings
from benchmarks.ecomagent.playing import Errand, deal, play
from benchmarks.ecomagent.report import write_report
from benchmarks.ecomagent.samples import open_catalogue, tasks_file
from benchmarks.ecomagent.tasks import Task, read_tasks, task_line
from benchmarks.ecomagent.tools import Toolbox
from benchmarks.results import REPORT, EvaluationFolder, Predictions, publishable, to_json, to_line, write_text
from models.generation import Found, find_generator
from models.runtime import this_process, use_threads, versions

SETS = ("predictions", "predictions-*", "turns", "turns-*")
COLUMNS = (TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
PLAYING, SUMMARY = "playing", "predictions_evaluation_summary.md"


def evaluate(config: EcomAgentConfig) -> dict[str, Any]:
    """Let an agent shop, as one of any number of processes; the results, the same in each.

    Raises ValueError or FileNotFoundError in words: faults in the tasks or the settings, or a folder in use.
    """
    state = this_process()
    threads = use_threads(config.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    with state.main_process_first():
        material = prepare(config)
    folder = open_folder(material)
    say = Console(stderr=True, highlight=False, soft_wrap=True, quiet=not state.is_main_process)
    results: dict[str, Any] | None = folder.results()
    again = bool(results and results["runtime_error_count"] and config.retry_errors)
    if results is not None and results["view"] == json.loads(to_json(material.view)) and not again:
        say.print(f"{folder.path} is finished; give --overwrite to play again")
    else:
        shopping = Shopping(material, folder.path, say)
        shopping.play_all()
        made = shopping.results() | {"threads": threads, "processes": state.num_processes, "device": state.device.type}
        made |= {"versions": versions(), "view": material.view}
        if state.is_main_process:
            folder.write_results(made)
            write_text(folder.path / SUMMARY, markdown(made))
        state.wait_for_everyone()
        results = json.loads(to_json(made))
    assert results is not None
    if state.is_main_process:
        Console(highlight=False).print(table(results))
        write_report(folder.path)
        say.print(f"{folder.path}: {REPORT}, results.json, predictions.jsonl, {EVALUATED}, {SUMMARY}")
    return results


@dataclass(frozen=True)
class Material:
    """What an evaluation is made of, nothing of it loaded yet."""

    config: EcomAgentConfig
    tasks: list[Task]
    catalogue: Catalogue
    player: FoundPlayer
    judge: Found | None

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that fixes the episodes; no path among it."""
        lines = "".join(map(task_line, self.tasks)).encode()
        return {
            "benchmark": "ecomagent",
            "subject": {"name": self.player.name, **self.player.facts},
            "tasks": hashlib.sha256(lines).hexdigest(),
            "catalogue": self.catalogue.fingerprint(),
            "mode": self.config.mode,
            "max_steps": self.config.max_steps,
        }

    @property
    def view(self) -> dict[str, Any]:
        """What is made of the episodes: how many trials, who judges, how intervals are drawn."""
        judge = None if self.judge is None else judge_facts(self.judge)
        names = ("trials", "judge_scope", "resamples", "seed")
        return {"judge": judge, **{name: getattr(self.config, name) for name in names}}


def prepare(config: EcomAgentConfig) -> Material:
    """Tasks, catalogue and players, found and checked.

    Raises ValueError where a task's target is not in the catalogue: nobody could recommend it.
    """
    catalogue = open_catalogue(config.catalogue)
    tasks = limited(read_tasks(tasks_file(config.tasks)), config.limit)
    missing = [task for task in tasks if catalogue.product(task.target_id) is None]
    if missing:
        raise ValueError(
            f"{config.tasks}: the targets of {len(missing)} of {len(tasks)} tasks are not in {config.catalogue}, first "
            f"{missing[0].target_id} of {missing[0].id}; give the catalogue that the tasks were made from"
        )
    device = this_process().device
    judge = None
    if config.judge is not None:
        judge = find_generator(config.judge, None, load_settings(config), None, device, config.lanes)
    return Material(config, tasks, catalogue, find_player(config, device), judge)


def limited(tasks: Sequence[Task], limit: int | None) -> list[Task]:
    """The first ``limit`` tasks of each intent, in order."""
    seen: dict[str, int] = {}
    kept = []
    for task in tasks:
        seen[task.intent_category] = seen.get(task.intent_category, 0) + 1
        if limit is None or seen[task.intent_category] <= limit:
            kept.append(task)
    return kept


def open_folder(material: Material) -> EvaluationFolder:
    """The folder of this evaluation; every process refuses together what holds another one."""
    state, config = this_process(), material.config
    default = Path("results") / "ecomagent" / material.player.name
    folder = EvaluationFolder(Path(config.out) if config.out else default, material.identity, SETS)
    folder.refuse_other(config.overwrite)
    state.wait_for_everyone()
    if state.is_main_process:
        if config.overwrite:
            folder.clear()
            for name in (EVALUATED, SUMMARY):
                (folder.path / name).unlink(missing_ok=True)
        folder.open()
        shutil.rmtree(folder.path / PLAYING, ignore_errors=True)
        (folder.path / PLAYING).mkdir()
    state.wait_for_everyone()
    return folder


@dataclass
class Shopping:
    """The episodes of an evaluation, in its folder."""

    material: Material
    folder: Path
    say: Console
    subject: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    played: int = 0

    def play_all(self) -> None:
        """Play what has not been played; each process its share of the tasks, each trial into a file of its own."""
        state = this_process()
        self.subject = self.material.identity["subject"]
        player = None
        for trial in range(1, self.material.config.trials + 1):
            errands = [Errand(task, trial) for task in self.material.tasks]
            done = self._recover(trial)
            mine = errands[state.process_index :: state.num_processes]
            lanes = deal(mine, self.material.config.lanes, done)
            if any(lanes):
                if done:
                    self.say.print(f"going on: {len(done)} of {len(errands)} episodes are there")
                player = player or self.material.player.open()
                self.subject = {"name": player.name, **player.facts}
                self._play(player, lanes, trial)
            state.wait_for_everyone()
            if state.is_main_process:
                self._merge(trial)
            state.wait_for_everyone()
        if state.is_main_process:
            shutil.rmtree(self.folder / PLAYING, ignore_errors=True)

    def _files(self, trial: int) -> tuple[Predictions, Predictions]:
        """Where the episodes of a trial go, and how long their turns took."""
        ending = "" if trial == 1 else f"-{trial}"
        return Predictions(self.folder, f"predictions{ending}"), Predictions(self.folder, f"turns{ending}")

    def _recover(self, trial: int) -> set[str]:
        """Ids of the episodes that an earlier run ended, without those that ended with an error if they are retried."""
        predictions, turns = self._files(trial)
        if this_process().is_main_process:
            retried = crashed(predictions) if self.material.config.retry_errors else set()
            kept = [[task.id] for task in self.material.tasks if task.id not in retried]
            for part in (predictions, turns):
                part.recover(kept)
                part.path.unlink(missing_ok=True)
                kept = [[name] for name in sorted(predictions.recovered())]
        this_process().wait_for_everyone()
        return predictions.recovered()

    def _merge(self, trial: int) -> None:
        for kept in self._files(trial):
            kept.merge([task.id for task in self.material.tasks])

    def _play(self, player: Any, lanes: list[list[Errand]], trial: int) -> None:
        predictions, turns = self._files(trial)
        process = this_process().process_index
        started = time.perf_counter()
        columns = (
            TextColumn("episodes"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.say, disable=self.say.quiet) as progress:
            bar = progress.add_task("episodes", total=sum(map(len, lanes)))

            def ended(episode: Episode) -> None:
                turns.append(process, [{"id": episode.task.id, "seconds": [round(s, 4) for s in episode.turn_seconds]}])
                predictions.append(process, [episode.record(player.name)])
                self._live(episode.task, trial).unlink(missing_ok=True)
                self.played += 1
                progress.advance(bar)

            play(player, lanes, self._start, ended)
        self.seconds += time.perf_counter() - started

    def _start(self, errand: Errand) -> Episode:
        toolbox = Toolbox(self.material.catalogue, errand.task, self.material.config.mode)
        path = self._live(errand.task, errand.trial)
        path.unlink(missing_ok=True)

        def write(message: Mapping[str, Any]) -> None:
            with path.open("a", encoding="utf-8") as file:
                file.write(to_line(message))

        return Episode(errand.task, toolbox, errand.trial, self.material.config.max_steps, write)

    def _live(self, task: Task, trial: int) -> Path:
        """The file in which an episode can be followed while it is played."""
        name = re.sub(r"[^\w.-]", "_", task.id)
        return self.folder / PLAYING / f"{name}.{trial}.jsonl"

    def results(self) -> dict[str, Any]:
        """``results.json``: every episode graded, all measures, what it cost."""
        config, tasks = self.material.config, self.material.tasks
        records: list[dict[str, Any]] = []
        for trial in range(1, config.trials + 1):
            predictions, turns = self._files(trial)
            seconds = {line["id"]: sum(line["seconds"]) for line in turns.read()}
            records += [{**record, "seconds": seconds.get(record["id"])} for record in predictions.read()]
        judge = None if self.material.judge is None else self.material.judge.open()
        predicted = [record["predicted_product_id"] for record in records]
        every = [task for _ in range(config.trials) for task in tasks]
        grades = grade_all(self.material.catalogue, every, predicted, judge, config.judge_scope)
        outcomes = [
            Outcome(grade, record, record.get("trial", 1)) for grade, record in zip(grades, records, strict=True)
        ]
        if this_process().is_main_process:
            write_evaluations(self.folder / EVALUATED, outcomes, None if judge is None else judge.name)
        data = {"tasks": publishable(config.tasks), "catalogue": publishable(config.catalogue)}
        identity = {name: value for name, value in self.material.identity.items() if name != "subject"}
        return {
            **identity,
            "subject": self.subject,
            "data": {**data, "tasks_fingerprint": identity["tasks"]},
            "model": self.subject["name"],
            "judge_model": None if judge is None else judge.name,
            **measure(outcomes, Resampling(config.resamples, config.seed)),
            "agreement": agreement(grades),
            "run": {"episodes": self.played, "seconds": round(self.seconds, 2), "lanes": config.lanes},
        }


def crashed(predictions: Predictions) -> set[str]:
    """Ids of the episodes that ended with an error."""
    files = [*predictions.parts.glob("*.jsonl"), *([predictions.path] if predictions.path.is_file() else [])]
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return {record["id"] for record in map(json.loads, lines) if record.get("error")}
