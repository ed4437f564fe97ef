"""An evaluation from configuration to results: ask, grade, measure.

A folder belongs to one model, one way of answering and one set of questions (``evaluation.json``). Answers and votes
are kept as they come; judges, rules of voting, calibration and retrieval can be added later, and what is there is not
asked again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers.utils import logging as transformers_logging

from benchmarks.completions import Completions, Cost, Crew, Line
from benchmarks.ecomqa import rag
from benchmarks.ecomqa.answering import fit
from benchmarks.ecomqa.baselines import baselines
from benchmarks.ecomqa.config import EcomQAConfig
from benchmarks.ecomqa.data import questions_fingerprint
from benchmarks.ecomqa.graded import Answer, graded, read_answers, rules_decide
from benchmarks.ecomqa.grading import VotingRules
from benchmarks.ecomqa.metrics import compare_runs, percent
from benchmarks.ecomqa.panel import Vote, digest, votes_on
from benchmarks.ecomqa.prepare import Plan, prepare
from benchmarks.ecomqa.report import write_report
from benchmarks.ecomqa.summary import calibrated, endings, grading, summarise, table
from benchmarks.ecomqa.thoughts import sort_traces
from benchmarks.ecomqa.variants import CONFIDENCE, PLAIN, RAG, Variant, plain, with_confidence, with_passages
from benchmarks.ecomqa.wording import in_words
from benchmarks.results import RESULTS, EvaluationFolder, publishable, to_json, to_line, write_text
from models.folder import sole_writer
from models.runtime import this_process, use_threads, versions

# What every results.json of an evaluation holds.
FORM = {
    *("benchmark", "subject", "data", "settings", "view", "judges", "cost", "versions"),
    *("average", "all", "sub_concepts", "answers", "grading"),
}
SETS = ("answers*", "votes-*", "behaviour*", "predictions*")


def evaluate(config: EcomQAConfig) -> dict[str, Any]:
    """Examine a model, as one of any number of processes; the results, the same in each.

    Raises ValueError or FileNotFoundError in words: faults in the data or the settings, or a folder in use.
    """
    state = this_process()
    threads = use_threads(config.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    with state.main_process_first():
        plan = prepare(config, state.device)
    path = Path(config.out) if config.out else Path("results") / "ecomqa" / plan.subject.name.replace("/", "--")
    with sole_writer(path) if state.is_main_process else nullcontext():
        return _examined(plan, open_folder(plan, path), threads)


def open_folder(plan: Plan, path: Path) -> EvaluationFolder:
    """The folder of this evaluation; every process refuses together what holds another one."""
    state, config = this_process(), plan.config
    identity = {
        "benchmark": "ecomqa",
        "subject": plan.subject.facts,
        "settings": asdict(plan.settings),
        "data": questions_fingerprint(plan.questions),
        "shots": config.shots,
        "too_long": config.too_long,
    }
    folder = EvaluationFolder(path, identity, SETS)
    folder.refuse_other(config.overwrite)
    state.wait_for_everyone()
    if state.is_main_process:
        if config.overwrite:
            folder.clear()
        folder.open()
    state.wait_for_everyone()
    return folder


def _examined(plan: Plan, folder: EvaluationFolder, threads: int) -> dict[str, Any]:
    """The results in the folder, where they are what the configuration asks for, or new ones; told and reported."""
    state = this_process()
    say = Console(
        stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True, quiet=not state.is_main_process
    )
    results = _known(folder.results())
    if results is not None and results.get("view") == json.loads(to_json(plan.view)):
        say.print(f"{folder.path} is finished; give --overwrite to ask again")
    else:
        if results is None and (folder.path / RESULTS).is_file():
            say.print(f"{folder.path}: {RESULTS} or a file that it was made of has changed; it is made again")
        made = Examination(plan, Completions(folder.path, Crew(), say)).results()
        if results is not None:
            made["cost"] = {**results["cost"], **{name: cost for name, cost in made["cost"].items() if cost["texts"]}}
        made |= {"threads": threads, "processes": state.num_processes, "device": state.device.type}
        made |= {"versions": versions(), "view": plan.view}
        if state.is_main_process:
            folder.write_results(made)
        state.wait_for_everyone()
        results = json.loads(to_json(made))
    assert results is not None
    if state.is_main_process:
        console = Console(highlight=False, markup=False, emoji=False)
        console.width = max(console.width, 100)
        console.print(table(results))
        for told in in_words(results):
            console.print(told, markup=False, soft_wrap=True)
        write_report(folder.path)
        say.print(f"{folder.path}: report.html, report.md, scores.csv, results.json, predictions.jsonl")
    return results


def _known(results: dict[str, Any] | None) -> dict[str, Any] | None:
    """Results in the form that this version writes; those of another form count as not made yet."""
    return results if results is not None and results.keys() >= FORM else None


@dataclass
class Examination:
    """One run: answers and votes through ``store``, and what is made of them."""

    plan: Plan
    store: Completions
    cost: dict[str, Cost] = field(default_factory=lambda: {"answers": Cost(), "votes": Cost()})

    def results(self) -> dict[str, Any]:
        """``results.json``, with ``predictions.jsonl`` (of the plain questions) and ``predictions-NAME.jsonl`` (of the
        other variants) written beside it."""
        plan, config = self.plan, self.plan.config
        lines = self.graded(plain(plan))
        judges = [member.name for member in plan.panel]
        made: dict[str, Any] = {
            "benchmark": "ecomqa",
            "subject": {"name": plan.subject.name, **plan.subject.facts},
            "data": {
                "reference": publishable(config.data),
                "fingerprint": questions_fingerprint(plan.questions),
                "repeated": config.repeated,
            },
            **summarise(lines, baselines(plan.questions), judges),
            "judges": [
                {"name": member.name, **member.facts, "self": self._self(member.found.facts)} for member in plan.panel
            ],
            "settings": {**asdict(plan.settings), "shots": config.shots, "too_long": config.too_long},
        }
        if config.confidence.ask:
            own = self.graded(with_confidence(plan))
            made[CONFIDENCE] = {
                "calibration": calibrated(own, config.confidence.bins),
                "answers": endings(own),
                "grading": grading(own, judges),
            }
        if config.rag.corpus:
            variant = with_passages(plan, self.store.crew.open(plan.subject))
            own = self.graded(variant)
            made[RAG] = {
                "gain": {task: asdict(gain) for task, gain in rag.compare(lines, own).items()},
                "settings": {**plan.view["rag"], "corpus": publishable(config.rag.corpus)},
                "answers": endings(own),
                "grading": grading(own, judges),
            }
        if config.behaviour:
            made["thinking"] = self._thinking(lines)
        if plan.other is not None:
            made["comparison"] = self._comparison(lines)
        made["cost"] = {name: asdict(cost) for name, cost in self.cost.items()}
        return made

    def graded(self, variant: Variant) -> list[Line]:
        """The graded lines of a variant, also written to its predictions' file."""
        plan, config = self.plan, self.plan.config
        answers = self._answers(variant)
        votes = self._votes(variant, answers)
        rules = VotingRules(config.grading.split, config.grading.unparsed)
        lines = graded(answers, votes, plan.rules, rules, variant.notes)
        name = "predictions" if variant.name == PLAIN else f"predictions-{variant.name}"
        if this_process().is_main_process:
            write_text(self.store.folder / f"{name}.jsonl", "".join(map(to_line, lines)))
        return lines

    def _answers(self, variant: Variant) -> list[Answer]:
        plan, config = self.plan, self.plan.config
        name = "answers"
        if variant.name != PLAIN:
            name = f"answers-{variant.name}-{digest(questions_fingerprint(variant.questions))}"
        lines, cost = self.store.complete(
            name,
            [question.id for question in variant.questions],
            plan.subject,
            plan.settings,
            lambda generator: fit(variant.questions, config.shots, generator, plan.settings, config.too_long),
        )
        self.cost["answers"] += cost
        return read_answers(variant.questions, lines, confident=variant.name == CONFIDENCE)

    def _votes(self, variant: Variant, answers: Sequence[Answer]) -> list[dict[str, Vote]]:
        """Each judge's votes on the answers that it is asked about."""
        plan = self.plan
        asked = [answer for answer in answers if answer.text]
        if plan.config.grading.panel == "open":
            asked = [answer for answer in asked if not rules_decide(answer, plan.rules, panel=True)]
        questions = [answer.question for answer in asked]
        texts = {answer.question.id: answer.text for answer in asked}
        votes = []
        for member in plan.panel:
            cast, cost = votes_on(member, variant.name, questions, texts, self.store)
            votes.append(cast)
            self.cost["votes"] += cost
        return votes

    def _self(self, facts: dict[str, Any]) -> bool:
        """Whether a judge is the model that it judges."""
        return facts == self.plan.subject.facts

    def _thinking(self, lines: Sequence[Line]) -> dict[str, Any]:
        sorted_lines, summary, costs = sort_traces(lines, self.plan.panel, self.plan.subject.name, self.store)
        for cost in costs:
            self.cost["votes"] += cost
        if "message" in summary:
            self.store.say.print(summary["message"])
        elif this_process().is_main_process:
            write_text(self.store.folder / "behaviour.jsonl", "".join(map(to_line, sorted_lines)))
        return summary

    def _comparison(self, lines: Sequence[Line]) -> dict[str, Any]:
        """This run against the one in another folder."""
        plan, other = self.plan, self.plan.other
        assert other is not None
        found = compare_runs(lines, other.lines, plan.config.resamples, plan.config.seed)
        return {"with": other.name, **asdict(found), "difference": percent(found.difference)}
