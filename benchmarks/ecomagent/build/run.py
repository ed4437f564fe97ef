"""A construction from configuration to files: intent by intent, product by product, every drop told.

The folder gets ``tasks.jsonl`` (the valid tasks), ``failed.jsonl`` (tasks that were written and refused), and
``build.json`` (counts, drops by stage, settings, the digests of both files). Meanwhile ``progress.jsonl`` keeps what
became of every product, so that a killed construction goes on, and ends with the same bytes. A finished one of which a
file was lost or changed is built anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.ecomagent.build import judging, llm, sampling
from benchmarks.ecomagent.build.assemble import Assembler, Dropped, Settings, Shop
from benchmarks.ecomagent.build.config import EcomAgentBuildConfig
from benchmarks.ecomagent.build.intents import INTENTS, Intent
from benchmarks.ecomagent.build.judging import JudgeGate
from benchmarks.ecomagent.build.llm import LanguageModel
from benchmarks.ecomagent.build.template import Templates
from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.samples import SAMPLE, open_catalogue
from benchmarks.ecomagent.tasks import Task, task_line, write_tasks
from benchmarks.ecomagent.validator import validate
from benchmarks.results import EvaluationFolder, naming, to_json, to_line, write_text
from models.backbone import LoadSettings
from models.folder import sole_writer
from models.generation import Found
from models.generators import find_generator
from models.manifest import sha256
from models.runtime import this_process, versions

TASKS, FAILED, SUMMARY, PROGRESS = "tasks.jsonl", "failed.jsonl", "build.json", "progress.jsonl"
TEMPLATES_VERSION = "1"
BATCH = 10  # products looked at for a task that is wanted, before an intent is given up


def build(config: EcomAgentBuildConfig) -> dict[str, Any]:
    """Build tasks; returns what ``build.json`` says.

    Raises ValueError or FileNotFoundError in words; ValueError too where a task does not pass the independent
    validator, which would be a fault of the construction.
    """
    _refuse_what_cannot_be(config)
    catalogue = open_catalogue(config.catalogue)
    writer, judge = (_found(config, reference) for reference in (config.generator, config.judge))
    named = Path(config.catalogue).stem if config.catalogue != SAMPLE else SAMPLE
    default = Path("results") / "ecomagent-tasks" / f"{named}-{writer.name if writer else 'templates'}"
    path = Path(config.out) if config.out else default
    with sole_writer(path):
        return _built(config, catalogue, writer, judge, _folder(config, catalogue, writer, judge, path))


def _refuse_what_cannot_be(config: EcomAgentBuildConfig) -> None:
    if this_process().num_processes > 1:
        raise ValueError("a construction runs in one process; start it with python, not with accelerate launch")
    if not config.intents:
        raise ValueError("intents: empty; give at least one")
    if unknown := [name for name in config.intents if name not in INTENTS]:
        raise ValueError(f"intents: {', '.join(unknown)} is no intent; there are {', '.join(INTENTS)}")
    if twice := [name for name, count in Counter(config.intents).items() if count > 1]:
        raise ValueError(f"intents: {', '.join(twice)} more than once; give each once, and more --tasks for more of it")
    if config.max_features <= config.min_features:
        raise ValueError(
            f"max_features: {config.max_features} given; give more than min_features, {config.min_features}"
        )


def _built(
    config: EcomAgentBuildConfig,
    catalogue: Catalogue,
    writer: Found | None,
    judge: Found | None,
    folder: EvaluationFolder,
) -> dict[str, Any]:
    """What ``build.json`` of the folder says, once the construction is finished."""
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    if (finished := _finished(folder.path)) is not None:
        say.print(f"{folder.path} is finished; give --overwrite to build again")
        return finished
    if (folder.path / SUMMARY).exists():
        say.print(f"{folder.path} was finished, but its files are not what they were; they are built anew")
    assembler = Assembler(
        Shop(catalogue, config.seed),
        Settings(config.seed, config.min_features, config.max_features),
        Templates() if writer is None else LanguageModel(writer.open()),
        None if judge is None else JudgeGate(judge.open()),
    )
    made = _Construction(config, assembler, folder.path / PROGRESS)
    for name in config.intents:
        made.intent(INTENTS[name])
        say.print(
            f"{name}: {made.counts[name]['tasks']} of {config.tasks} tasks, {made.counts[name]['looked_at']} products"
        )
    if not made.tasks:
        raise ValueError(f"no task came of {config.catalogue}: {_looked_at(made)}; give a larger catalogue")
    write_tasks(folder.path / TASKS, made.tasks)
    write_text(folder.path / FAILED, "".join(task_line(task) for task in made.failed))
    if faults := validate(folder.path / TASKS, catalogue.path):
        raise ValueError(f"{len(faults)} faults in {folder.path / TASKS}, the first: {faults[0]}")
    summary = _summary(folder, made)
    write_text(folder.path / SUMMARY, to_json(summary))
    (folder.path / PROGRESS).unlink(missing_ok=True)
    say.print(f"{folder.path}: {len(made.tasks)} tasks, all valid: {TASKS}, {FAILED}, {SUMMARY}")
    return summary


def _finished(path: Path) -> dict[str, Any] | None:
    """What ``build.json`` says, if the construction has ended and its files are still what they were then."""
    try:
        summary: dict[str, Any] = json.loads((path / SUMMARY).read_text(encoding="utf-8"))
        whole = all(sha256(path / name) == summary["files"][name] for name in (TASKS, FAILED))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return summary if whole else None


def _found(config: EcomAgentBuildConfig, reference: str | None) -> Found | None:
    if reference is None:
        return None
    settings = LoadSettings(
        dtype=config.dtype, quantization=config.quantization or "none", trust_remote_code=config.trust_remote_code
    )
    device = this_process().device
    return find_generator(reference, None, settings, config.rows, device, config.concurrency, config.overwrite)


def _folder(
    config: EcomAgentBuildConfig, catalogue: Catalogue, writer: Found | None, judge: Found | None, path: Path
) -> EvaluationFolder:
    """The folder of this construction, opened; refuses one that holds another."""
    identity = {
        "construction": "ecomagent",
        "catalogue": catalogue.fingerprint(),
        "writer": {"templates": TEMPLATES_VERSION}
        if writer is None
        else {**writer.facts, "prompt": llm.PROMPT_VERSION},
        "judge": None if judge is None else {**judge.facts, "prompt": judging.PROMPT_VERSION},
        "settings": {
            name: getattr(config, name) for name in ("intents", "tasks", "min_features", "max_features", "name", "seed")
        },
    }
    folder = EvaluationFolder(path, identity, (), "construction")
    folder.refuse_other(config.overwrite)
    if config.overwrite:
        folder.clear()
        for name in (TASKS, FAILED, SUMMARY, PROGRESS):
            (folder.path / name).unlink(missing_ok=True)
    folder.open()
    return folder


@dataclass
class _Construction:
    """Tasks made so far, and what became of every product."""

    config: EcomAgentBuildConfig
    assembler: Assembler
    progress: Path
    tasks: list[Task] = field(default_factory=list)
    failed: list[Task] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)
    targets: set[str] = field(default_factory=set)
    number: int = 0

    def __post_init__(self) -> None:
        self.before = list(_outcomes(self.progress))

    def intent(self, intent: Intent) -> None:
        """Look at products until there are as many tasks as are wanted, or too many dropped out."""
        counts = self.counts.setdefault(intent.name, Counter())
        most = int(max(BATCH * self.config.tasks, 200) * intent.share)
        for product_id in sampling.candidates(self.assembler.shop.catalogue, intent, self.config.seed):
            if counts["tasks"] >= self.config.tasks or counts["looked_at"] >= most:
                return
            if product_id in self.targets:
                continue
            counts["looked_at"] += 1
            self._take(intent, product_id, self._outcome(intent, product_id), counts)

    def _outcome(self, intent: Intent, product_id: str) -> Task | Dropped:
        """What becomes of a product: as it was found before, or found now and written down."""
        if self.before:
            return self.before.pop(0)
        name = f"{self.config.name}_{self.number + 1:04d}"
        outcome = self.assembler.make(name, intent, product_id, self.used)
        task = outcome.task if isinstance(outcome, Dropped) else outcome
        dropped = {"stage": outcome.stage, "reason": outcome.reason} if isinstance(outcome, Dropped) else None
        line = {
            "product": product_id,
            "dropped": dropped,
            "task": None if task is None else json.loads(task_line(task)),
        }
        with naming(self.progress), self.progress.open("a", encoding="utf-8") as file:
            file.write(to_line(line))
        return outcome

    def _take(self, intent: Intent, product_id: str, outcome: Task | Dropped, counts: Counter[str]) -> None:
        if isinstance(outcome, Dropped):
            counts[f"dropped: {outcome.stage}"] += 1
            if outcome.task is not None:  # it had a number, which stays a gap
                self.number += 1
                self.failed.append(outcome.task)
            return
        self.number += 1
        counts["tasks"] += 1
        self.tasks.append(outcome)
        self.targets.add(product_id)
        self.used.update(feature.field for feature in outcome.extracted_features or ())


def _outcomes(progress: Path) -> Iterator[Task | Dropped]:
    """What a killed construction wrote down; a line that was cut or spoilt, and what is behind it, is removed."""
    if not progress.is_file():
        return
    whole, outcomes = [], []
    for text in progress.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        try:
            outcomes.append(_outcome_in(text))
        except (ValueError, KeyError, TypeError):
            break
        whole.append(text)
    write_text(progress, "".join(whole))
    yield from outcomes


def _outcome_in(text: str) -> Task | Dropped:
    """What a line of the progress says. Raises ValueError, KeyError or TypeError where it is none."""
    if not text.endswith("\n"):
        raise ValueError("cut")
    line = json.loads(text)
    if line["dropped"] is None:
        return Task.model_validate(line["task"])
    task = None if line["task"] is None else Task.model_validate(line["task"])
    return Dropped(line["dropped"]["stage"], line["dropped"]["reason"], task)


def _looked_at(made: _Construction) -> str:
    """What became of all products that were looked at."""
    total = sum(made.counts.values(), Counter())
    told = [f"{count} {name}" for name, count in total.most_common() if name.startswith("dropped")]
    return f"{total['looked_at']} products were fit to be looked at" + (f", {', '.join(told)}" if told else "")


def _summary(folder: EvaluationFolder, made: _Construction) -> dict[str, Any]:
    items = [item for task in made.tasks for item in task.rubrics]
    return {
        **folder.identity,
        "tasks": len(made.tasks),
        "failed": len(made.failed),
        "by_intent": {name: dict(sorted(counts.items())) for name, counts in made.counts.items()},
        "items": {
            "total": len(items),
            "by_source": dict(Counter(item.info_source for item in items)),
            "by_type": dict(Counter(item.type for item in items)),
            "implicit": sum(len(task.implicit_rubric_ids) for task in made.tasks),
        },
        "files": {name: sha256(folder.path / name) for name in (TASKS, FAILED)},
        "versions": versions(),
    }
