"""An evaluation from configuration to results: read, find who is examined, judge, measure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers.utils import logging as transformers_logging

from benchmarks.ecomscript import judging
from benchmarks.ecomscript.answering import TEXTS, Respondent
from benchmarks.ecomscript.asking import Asking
from benchmarks.ecomscript.config import EcomScriptConfig
from benchmarks.ecomscript.fewshot import draw_shots
from benchmarks.ecomscript.judging import Examiner
from benchmarks.ecomscript.methods import (
    Subject,
    asking_of,
    build_scorer,
    find_subject,
    judgment_of,
    settings_facts,
)
from benchmarks.ecomscript.report import write_report
from benchmarks.ecomscript.scorer import JudgeScorer, Scorer
from benchmarks.ecomscript.summary import measure, measure_answers, measure_baselines, table
from benchmarks.results import SETS, EvaluationFolder, publishable, to_json
from models.precision import compute_dtype, flops_per_token, peak_memory, rate
from models.runtime import this_process, use_threads, versions
from recipes.base import Judgment
from recipes.intents.beside import by_product, read_beside, with_known
from recipes.intents.judgment import IntentRecord
from recipes.metrics import best_threshold
from recipes.reading import fingerprint, read_records


@dataclass(frozen=True)
class Material:
    """The records of an evaluation: judged, to choose the threshold on, to learn from, and solved examples; and the
    purchase intents to show beside products."""

    data: list[Any]
    validation: list[Any]
    train: list[Any]
    examples: tuple[Any, ...]
    known: list[IntentRecord]

    def counted(self) -> tuple[list[Any], str]:
        """Where the majority class is counted: never on the judged records if there are others."""
        if self.train:
            return self.train, "the training records"
        if self.validation:
            return self.validation, "the validation records"
        return self.data, "the judged records themselves"


def evaluate(config: EcomScriptConfig) -> dict[str, Any]:
    """Examine a checkpoint, as one of any number of processes; the results, the same in each.

    Raises ValueError or FileNotFoundError in words: faults in the data or the settings, or a folder in use.
    """
    state = this_process()
    threads = use_threads(config.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    judgment = judgment_of(config)
    with state.main_process_first():
        material = read_material(judgment, config)
        subject = find_subject(config, judgment, state.device)
        asking = asking_of(config, subject, judgment, material.examples) if subject.found else None
    folder = open_folder(config, identity_of(config, judgment, subject, material, asking), subject)
    say = Console(stderr=True, highlight=False, soft_wrap=True, quiet=not state.is_main_process)
    view = {"resamples": config.resamples, "bins": config.bins, "train": fingerprint(material.train)}
    results: dict[str, Any] | None = folder.results()
    if results is not None and results.get("view") == view:
        say.print(f"{folder.path} is finished; give --overwrite to judge again")
    else:
        found = (
            ask(config, subject, asking, material, folder, say)
            if asking
            else judge(config, judgment, subject, material, folder, say)
        )
        made = results_of(config, judgment, subject, material, folder, found)
        earlier = results["cost"] if results is not None and not made["cost"]["records"] else None
        made |= {"cost": earlier or {**made["cost"], "threads": threads}, "versions": versions(), "view": view}
        if state.is_main_process:
            folder.write_results(made)
        state.wait_for_everyone()
        results = json.loads(to_json(made))
    if state.is_main_process:
        write_report(folder.path, material.data)
        Console(highlight=False).print(table(results))
        say.print(f"{folder.path}: results.json, predictions.jsonl, report.html")
    return results


def read_material(judgment: Judgment[Any], config: EcomScriptConfig) -> Material:
    """All records that the evaluation needs.

    Raises ValueError where validation or training records share a group with those that are judged.
    """
    data = read_records(judgment, config.data)[: config.limit]
    judged = {record.group_key for record in data}
    validation = read_records(judgment, config.validation) if config.validation else []
    train = read_records(judgment, config.train) if config.train else []
    for reference, records in ((config.validation, validation), (config.train, train)):
        if shared := sorted({record.group_key for record in records} & judged):
            raise ValueError(
                f"{reference}: {len(shared)} groups are also in {config.data}, first {shared[0]!r}; nothing may be "
                "chosen or learned on what is judged: split by group"
            )
    examples: tuple[Any, ...] = ()
    if config.shots:
        where = config.shots_from or "sample:train"
        examples = draw_shots(read_records(judgment, where), config.shots, config.seed, [*data, *validation], where)
    known = read_beside(judgment, config.intents, [*data, *validation]) if config.intents else []
    return Material(data, validation, train, examples, known)


def identity_of(
    config: EcomScriptConfig, judgment: Judgment[Any], subject: Subject, material: Material, asking: Asking | None
) -> dict[str, Any]:
    """Everything that fixes the predictions; no path among it."""
    return {
        "benchmark": "ecomscript",
        "judgment": judgment.name,
        "template": judgment.template_version,
        "method": subject.method,
        "subject": subject.facts,
        "data": fingerprint(material.data),
        "validation": fingerprint(material.validation) if material.validation else None,
        "train": fingerprint(material.train) if subject.method == "bag_of_words" else None,
        "shots": {"count": len(material.examples), "records": fingerprint(material.examples)},
        "seed": config.seed,
        "settings": settings_facts(subject, config),
        **({"asking": asking.facts()} if asking else {}),
        **({"intents": fingerprint(material.known)} if material.known else {}),
    }


def open_folder(config: EcomScriptConfig, identity: dict[str, Any], subject: Subject) -> EvaluationFolder:
    """The folder of this evaluation; every process refuses together what holds another one."""
    state = this_process()
    default = Path("results") / "ecomscript" / config.judgment / f"{subject.name}-{subject.method}-{config.shots}shot"
    folder = EvaluationFolder(Path(config.out) if config.out else default, identity, (*SETS, *TEXTS))
    folder.refuse_other(config.overwrite)
    state.wait_for_everyone()
    if state.is_main_process:
        if config.overwrite:
            folder.clear()
        folder.open()
    state.wait_for_everyone()
    return folder


@dataclass(frozen=True)
class Examined:
    """Prediction lines; what did not fit (id -> tokens); what this run itself did, and in how long; and what else there
    is to say of the one who was examined."""

    lines: list[dict[str, Any]]
    refused: dict[str, int]
    judged: int
    seconds: float
    facts: dict[str, Any]
    max_length: int | None
    speed: dict[str, float | None]


def judge(
    config: EcomScriptConfig,
    judgment: Judgment[Any],
    subject: Subject,
    material: Material,
    folder: EvaluationFolder,
    say: Console,
) -> Examined:
    """Load who gives margins, and let it judge every record."""
    scorer = build_scorer(subject, config, judgment, material.train, material.examples, this_process().device)
    examiner = Examiner(judgment, scorer, folder.path, config.token_budget, config.drop_too_long, say)
    known = by_product(material.known)
    threshold = choose_threshold(examiner, with_known(material.validation, known))
    found = examiner.examine("predictions", with_known(material.data, known), threshold["value"])
    told = {"threshold": threshold, "temperature": scorer.temperature}
    return Examined(
        found.lines, found.fitted.refused, found.judged, found.seconds, told, scorer.max_length, speed(scorer, found)
    )


def speed(scorer: Scorer, found: judging.Examined) -> dict[str, float | None]:
    """How fast records were judged: ``computed_share`` is tokens computed over tokens of the prompts (fewer where
    prompts share), ``mfu`` the share of the machine's own matrix product, both of this process."""
    if not found.judged or not found.seconds:
        return {}
    rates = {"records_per_second": found.judged / found.seconds, "tokens_per_second": found.tokens / found.seconds}
    if found.computed and found.own and isinstance(scorer, JudgeScorer):
        model = scorer.judge.model
        achieved = flops_per_token(model) * found.computed / found.seconds
        rates["computed_share"] = found.computed / found.own
        rates["mfu"] = achieved / (rate(compute_dtype(model), model.device) * 1e9)
    return {name: float(f"{value:.4g}") for name, value in {**rates, "peak_memory_gib": peak_memory()}.items()}


def ask(
    config: EcomScriptConfig,
    subject: Subject,
    asking: Asking,
    material: Material,
    folder: EvaluationFolder,
    say: Console,
) -> Examined:
    """Ask who writes about every record."""
    assert subject.found is not None
    respondent = Respondent(subject.found, asking, folder.path, config.max_length, config.drop_too_long, say)
    found = respondent.examine(material.data)
    told = {"threshold": None, "temperature": None, "asking": asking.facts(), "answers": measure_answers(found.lines)}
    return Examined(found.lines, found.refused, found.cost.texts, found.cost.seconds, told, config.max_length, {})


def results_of(
    config: EcomScriptConfig,
    judgment: Judgment[Any],
    subject: Subject,
    material: Material,
    folder: EvaluationFolder,
    found: Examined,
) -> dict[str, Any]:
    """``results.json``, made of the predictions."""
    state = this_process()
    measured = measure(found.lines, config.resamples, config.bins, config.seed)
    return {
        "benchmark": "ecomscript",
        "judgment": judgment.name,
        "template": judgment.template_version,
        "subject": {"name": subject.name, "method": subject.method, **subject.facts},
        "data": {"reference": publishable(config.data), "fingerprint": folder.identity["data"]},
        **measured,
        **found.facts,
        "baselines": measure_baselines(found.lines, *material.counted(), config.resamples, config.seed),
        "shots": {**measured["shots"], "asked": config.shots, "ids": [example.id for example in material.examples]},
        "refused": {"count": len(found.refused), "tokens": found.refused},
        "settings": {**folder.identity["settings"], "seed": config.seed, "max_length": found.max_length},
        "cost": {
            "records": found.judged,
            "seconds": round(found.seconds, 2),
            **found.speed,
            "processes": state.num_processes,
            "device": state.device.type,
        },
    }


def choose_threshold(examiner: Examiner, validation: list[Any]) -> dict[str, Any]:
    """The threshold and where it comes from: best on the validation records if there are any, else the scorer's own."""
    scorer = examiner.scorer
    if not validation:
        return {"value": scorer.threshold, "from": scorer.threshold_from}
    seen = examiner.examine("validation", validation, scorer.threshold)
    best = best_threshold(seen.labels, seen.probabilities)
    return {"value": best, "from": f"best macro-F1 on {len(seen.lines)} validation records"}
