"""An evaluation from configuration to results: play every episode, grade what was recommended, measure.

A folder belongs to one agent, one catalogue, one set of tasks and one set of rules (``evaluation.json``). Episodes that
lie in it are not played again (benchmarks.ecomagent.shopping); judges, trials and measures can be added later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers.utils import logging as transformers_logging

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.config import EcomAgentConfig
from benchmarks.ecomagent.evaluations import EVALUATED, markdown, table, write_evaluations
from benchmarks.ecomagent.given import GivenPredictions, read_predictions
from benchmarks.ecomagent.grading.agreement import agreement
from benchmarks.ecomagent.grading.grade import grade_all
from benchmarks.ecomagent.grading.judge import facts as judge_facts
from benchmarks.ecomagent.metrics import Outcome, Resampling, measure
from benchmarks.ecomagent.players import FoundPlayer, find_player, load_settings
from benchmarks.ecomagent.report import write_report
from benchmarks.ecomagent.samples import open_catalogue, tasks_file
from benchmarks.ecomagent.shopping import SETS, Record, Shopping
from benchmarks.ecomagent.tasks import Task, read_tasks, task_line
from benchmarks.results import REPORT, EvaluationFolder, publishable, to_json, write_text
from models.folder import sole_writer
from models.generation import Found
from models.generators import find_generator
from models.runtime import this_process, use_threads, versions

SUMMARY = "predictions_evaluation_summary.md"


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
    path = Path(config.out) if config.out else Path("results") / "ecomagent" / material.player.name.replace("/", "--")
    with sole_writer(path) if state.is_main_process else nullcontext():
        return _evaluated(material, open_folder(material, path), threads)


def _evaluated(material: Material, folder: EvaluationFolder, threads: int) -> dict[str, Any]:
    """The results in the folder, where they are what the configuration asks for, or new ones; told and reported."""
    state, config = this_process(), material.config
    say = Console(stderr=True, highlight=False, soft_wrap=True, quiet=not state.is_main_process)
    results: dict[str, Any] | None = folder.results()
    again = bool(results and results["runtime_error_count"] and config.retry_errors)
    if results is not None and results["view"] == json.loads(to_json(material.view)) and not again:
        say.print(f"{folder.path} is finished; give --overwrite to play again")
    else:
        made = play_and_measure(material, folder.path, say)
        if results is not None and not made["run"]["episodes"]:  # graded anew: who played, and how long, stays
            made |= {name: results[name] for name in ("subject", "run")}
        made |= {"threads": threads, "processes": state.num_processes, "device": state.device.type}
        made |= {"versions": versions(), "view": material.view}
        if state.is_main_process:
            folder.write_results(made)
            write_text(folder.path / SUMMARY, markdown(made))
        state.wait_for_everyone()
        results = json.loads(to_json(made))
    assert results is not None
    if state.is_main_process:
        Console(highlight=False).print(table(results))
        if crashed := results["runtime_error_count"]:
            first = results["runtime_error_examples"][0]
            remedy = ", --retry_errors plays them again" if material.given is None else ""
            why = f"first {first['id']}: {first['error_message']}"
            say.print(f"{crashed} episodes broke down, {why}; they count as wrong{remedy}")
        write_report(folder.path)
        say.print(f"{folder.path}: {REPORT}, results.json, {EVALUATED}, {SUMMARY}")
    return results


@dataclass(frozen=True)
class Material:
    """What an evaluation is made of, nothing of it loaded yet. ``given`` are predictions that were made elsewhere."""

    config: EcomAgentConfig
    tasks: list[Task]
    catalogue: Catalogue
    player: FoundPlayer
    judge: Found | None
    given: dict[str, Record] | None = field(default=None, repr=False)

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
        judge = find_generator(config.judge, None, load_settings(config), None, device, config.lanes, config.overwrite)
    if config.predictions is None:
        return Material(config, tasks, catalogue, find_player(config, device), judge)
    return _graded_only(config, tasks, catalogue, judge)


def _graded_only(config: EcomAgentConfig, tasks: list[Task], catalogue: Catalogue, judge: Found | None) -> Material:
    """Material whose predictions are given."""
    assert config.predictions is not None
    if config.agent or config.checkpoint or config.adapter or config.trials > 1:
        raise ValueError("predictions are graded as they are; leave agent, checkpoint, adapter and trials out")
    name, made, digest = read_predictions(config.predictions)
    if not any(task.id in made for task in tasks):
        raise ValueError(f"{config.predictions}: none of its predictions is for a task of {config.tasks}")

    def nobody() -> Any:
        raise AssertionError("given predictions are not played")

    return Material(config, tasks, catalogue, FoundPlayer(name, {"predictions": digest}, nobody), judge, made)


def limited(tasks: Sequence[Task], limit: int | None) -> list[Task]:
    """The first ``limit`` tasks of each intent, in order."""
    seen: dict[str, int] = {}
    kept = []
    for task in tasks:
        seen[task.intent_category] = seen.get(task.intent_category, 0) + 1
        if limit is None or seen[task.intent_category] <= limit:
            kept.append(task)
    return kept


def open_folder(material: Material, path: Path) -> EvaluationFolder:
    """The folder of this evaluation; every process refuses together what holds another one."""
    state, config = this_process(), material.config
    folder = EvaluationFolder(path, material.identity, (*SETS, Path(EVALUATED).stem))
    folder.refuse_other(config.overwrite)
    state.wait_for_everyone()
    if state.is_main_process:
        if config.overwrite:
            folder.clear()
            (folder.path / SUMMARY).unlink(missing_ok=True)
        folder.open()
    state.wait_for_everyone()
    return folder


def play_and_measure(material: Material, folder: Path, say: Console) -> dict[str, Any]:
    """``results.json``: every episode played and graded, all measures, what it cost."""
    config, identity = material.config, material.identity
    if material.given is None:
        source: Shopping | GivenPredictions = Shopping(
            config, material.tasks, material.catalogue, material.player, folder, say
        )
    else:
        source = GivenPredictions(material.tasks, material.given, identity["subject"])
    source.play_all()
    episodes = source.records()
    judge = None if material.judge is None else material.judge.open()
    predicted = [None if record is None else record["predicted_product_id"] for _, record, _ in episodes]
    grades = grade_all(material.catalogue, [task for task, _, _ in episodes], predicted, judge, config.judge_scope)
    outcomes = [Outcome(grade, record, trial) for grade, (_, record, trial) in zip(grades, episodes, strict=True)]
    judge_name = None if judge is None else judge.name
    if this_process().is_main_process:
        write_evaluations(folder / EVALUATED, outcomes, judge_name)
    data = {"tasks": publishable(config.tasks), "catalogue": publishable(config.catalogue)}
    return {
        **{name: value for name, value in identity.items() if name != "subject"},
        "subject": source.subject,
        "data": {**data, "tasks_fingerprint": identity["tasks"]},
        "model": source.subject["name"],
        "judge_model": judge_name,
        **measure(outcomes, Resampling(config.resamples, config.seed)),
        "agreement": agreement(grades),
        "run": {"episodes": source.played, "seconds": round(source.seconds, 2), "lanes": config.lanes},
    }
