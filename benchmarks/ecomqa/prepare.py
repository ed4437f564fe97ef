"""From a configuration to what will be done: which questions, who answers, who judges. No weights are read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.completions import Line
from benchmarks.ecomqa.answering import stop_texts
from benchmarks.ecomqa.config import EcomQAConfig
from benchmarks.ecomqa.corpus import Passage, corpus_fingerprint, read_corpus
from benchmarks.ecomqa.data import SUB_CONCEPTS, Question, read_questions
from benchmarks.ecomqa.panel import RULES, Member, digest, make_panel, names_of
from benchmarks.results import EvaluationFolder, Predictions
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.generation import Found, SamplingSettings
from models.generators import VLLM, find_generator, is_served
from models.manifest import sha256


@dataclass(frozen=True)
class OtherRun:
    """A finished evaluation to compare with: who answered, its graded lines, and the digest of their file."""

    name: str
    lines: list[Line]
    digest: str


@dataclass(frozen=True)
class Plan:
    """What a configuration comes to.

    Attributes:
        subject: who answers, under ``settings``.
        panel: the model judges; ``rules``: whether rules are among the judges.
        passages: what is retrieved from; empty without retrieval.
        other: the run to compare with.
        view: what fixes the results beside the answers.
    """

    config: EcomQAConfig
    questions: list[Question]
    subject: Found
    settings: SamplingSettings
    panel: list[Member]
    rules: bool
    passages: list[Passage]
    other: OtherRun | None = None

    @property
    def view(self) -> dict[str, Any]:
        config = self.config
        return {
            "judges": {RULES: self.rules, "models": [digest(member.facts) for member in self.panel]},
            "grading": asdict(config.grading),
            "behaviour": config.behaviour,
            "confidence": asdict(config.confidence),
            "rag": {**asdict(config.rag), "corpus": self.passages and corpus_fingerprint(self.passages)},
            "compare": self.other and self.other.digest,
            "resamples": config.resamples,
        }


def prepare(config: EcomQAConfig, device: torch.device) -> Plan:
    """Read the questions and the corpus, and find everybody. Raises ValueError or FileNotFoundError in words."""

    def find(reference: str, adapter: str | None = None) -> Found:
        settings = LoadSettings(
            dtype=config.dtype, quantization=config.quantization, trust_remote_code=config.trust_remote_code
        )
        return find_generator(reference, adapter, settings, config.rows, device, config.concurrency, config.overwrite)

    subject = find(config.checkpoint or "", config.adapter)
    named = names_of(config.judges)
    if not named:
        raise ValueError("nobody grades: give --judges rules, or model judges")
    if named.count(RULES) > 1:
        raise ValueError(f"judges: {RULES} is named twice; name each judge once")
    judges, grading = [name for name in named if name != RULES], config.grading
    if grading.guided and (others := [name for name in judges if is_served(name) or name.startswith(VLLM)]):
        raise ValueError(f"grading.guided: {others[0]} votes in its own way; local checkpoints alone can be guided")
    panel = make_panel([find(name) for name in judges], grading.prompts, grading.max_tokens, grading.guided)
    if config.behaviour and not panel:
        raise ValueError("behaviour: thinking is sorted by model judges; name some with --judges")
    settings = SamplingSettings(
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        top_p=config.top_p,
        stop=stop_texts(config.stop, subject.facts),
        seed=config.seed,
        thinking=config.thinking,
    )
    questions = chosen(read_questions(config.data, config.repeated), config)
    other = other_run(config.compare, questions) if config.compare else None
    return Plan(config, questions, subject, settings, panel, RULES in named, _variants(config, questions), other)


def _variants(config: EcomQAConfig, questions: Sequence[Question]) -> list[Passage]:
    """The passages to retrieve from; what else the variants are asked to do is looked at, so that nobody answers the
    plain questions only to be told then. Raises ValueError or FileNotFoundError in words."""
    if config.confidence.ask:
        asked_of(questions, config.confidence.tasks, "confidence.tasks")
    if not config.rag.corpus:
        return []
    asked_of(questions, config.rag.tasks, "rag.tasks")
    if config.rag.method != "bm25":
        resolve(config.rag.encoder)
    return read_corpus(config.rag.corpus)


def other_run(reference: str, questions: Sequence[Question]) -> OtherRun:
    """The finished evaluation in another folder.

    Raises ValueError where there is none, or it holds none of the questions.
    """
    folder = Path(reference)
    results = EvaluationFolder(folder, {}).results()
    name = results and results.get("benchmark") == "ecomqa" and (results.get("subject") or {}).get("name")
    if not name:
        raise ValueError(f"compare: {folder} holds no finished evaluation of ecomqa; give the folder of one")
    predictions = Predictions(folder)
    lines = predictions.read()
    if {line["id"] for line in lines}.isdisjoint(question.id for question in questions):
        raise ValueError(f"compare: {folder} has other questions; give an evaluation of the same data")
    return OtherRun(name, lines, sha256(predictions.path))


def chosen(questions: Sequence[Question], config: EcomQAConfig) -> list[Question]:
    """The questions of the sub-concepts asked for, at most ``limit`` of each, in the order of the paper's table.

    Raises ValueError where none is left.
    """
    wanted = sub_concepts(config.tasks, "tasks") or list(SUB_CONCEPTS)
    found = [question for task in wanted for question in of_tasks(questions, [task])[: config.limit]]
    if not found:
        raise ValueError(f"{config.data}: no question of {', '.join(wanted)} is there; choose other --tasks")
    return found


def of_tasks(questions: Sequence[Question], tasks: Sequence[str]) -> list[Question]:
    """The questions of some sub-concepts."""
    return [question for question in questions if question.task in tasks]


def asked_of(questions: Sequence[Question], tasks: str, field: str) -> list[Question]:
    """The questions that a variant asks again. Raises ValueError where none is of a sub-concept named in ``field``."""
    found = of_tasks(questions, sub_concepts(tasks, field))
    if not found:
        raise ValueError(f"{field}: none of the questions is of {tasks}; choose among the sub-concepts asked")
    return found


def sub_concepts(text: str, field: str) -> list[str]:
    """Codes with commas between, each once. Raises ValueError for one that is not there."""
    names = [name.upper() for name in names_of(text)]
    if unknown := [name for name in names if name not in SUB_CONCEPTS]:
        raise ValueError(f"{field}: {unknown[0]!r} is no sub-concept; there are {', '.join(SUB_CONCEPTS)}")
    return list(dict.fromkeys(names))
