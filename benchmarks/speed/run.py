"""A speed comparison from configuration to tables and bench.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers.utils import logging as transformers_logging

from benchmarks.results import publishable, to_json, write_text
from benchmarks.speed import generation, growth, scoring, teaching
from benchmarks.speed.config import SpeedConfig
from benchmarks.speed.workload import Workload, make_pairs, make_workload
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import new_judge
from models.precision import cpu_name, products, rate
from models.runtime import use_threads, versions


def bench(config: SpeedConfig) -> dict[str, Any]:
    """Run the parts asked for; what each found is written as soon as it is there."""
    threads = use_threads(config.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    folder = Path(config.out)
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"machine": machine(threads), "versions": versions()}
    for part in config.parts:
        found[part] = PARTS[part](config, threads, folder, say)
        write_text(folder / "bench.json", to_json(found))
    say.print(f"{folder / 'bench.json'}")
    return found


def machine(threads: int) -> dict[str, Any]:
    """What the figures were measured on; rates in GFLOP/s of one matrix product."""
    return {
        "cpu": cpu_name(),
        "threads": threads,
        "float32": round(rate(torch.float32), 1),
        "bfloat16": round(rate(torch.bfloat16), 1),
        "choices": {"bfloat16": products().takes_bfloat16, "onednn": products().takes_onednn},
    }


def _scoring(config: SpeedConfig, threads: int, folder: Path, say: Console) -> list[dict[str, Any]]:
    field = scoring.contestants(threads, say, config.peers, config.alone)
    works = (
        make_workload(config.checkpoint, judgment, shots, config.records)
        for judgment in config.judgments
        for shots in config.shots
    )
    return [_compared(work, field, config, folder, say) for work in works]


def _encoders(config: SpeedConfig, threads: int, folder: Path, say: Console) -> list[dict[str, Any]]:
    field = scoring.encoder_contestants(threads, say, config.peers)
    made = []
    for judgment in config.judgments:
        work = make_pairs(config.encoder, judgment, config.records, (folder / f"encoder-{judgment}").absolute())
        made.append(_compared(work, field, config, folder, say))
    return made


def _compared(
    work: Workload, field: Sequence[scoring.Contestant], config: SpeedConfig, folder: Path, say: Console
) -> dict[str, Any]:
    found = scoring.compare(work, field, config.rounds, folder, say)
    found["ratios"] = scoring.ratios(found["tools"])
    shown = Console(highlight=False)
    shown.print(scoring.table(found))
    for name, ratio in found["ratios"].items():
        shown.print(f"  {name}: {ratio:.2f} times")
    return found


def _training(config: SpeedConfig, threads: int, folder: Path, say: Console) -> dict[str, Any]:
    found = teaching.compare_training(config.checkpoint, threads, config.rounds, folder.absolute(), say)
    for kind, tools in found.items():
        Console(highlight=False).print(teaching.table(kind, tools))
    return found


def _generation(config: SpeedConfig, threads: int, folder: Path, say: Console) -> list[dict[str, Any]]:
    made = []
    for reference in config.questions:
        questions = generation.read_chats(config.checkpoint, reference, config.limit, config.max_tokens)
        found = generation.compare(config.checkpoint, questions, config.max_tokens, config.rounds, say)
        made.append({**found, "questions": publishable(reference)})
        Console(highlight=False).print(generation.table(made[-1]))
    return made


def _growth(config: SpeedConfig, threads: int, folder: Path, say: Console) -> dict[str, Any]:
    judge = new_judge(resolve(config.checkpoint), "bench", "bench", ("No", "Yes"), LoadSettings(head="verbalizer"))
    found = growth.measure_growth(judge, say)
    for curve, lines in found.items():
        Console(highlight=False).print(growth.table(curve, lines))
    return found


PARTS = {
    "scoring": _scoring,
    "encoders": _encoders,
    "training": _training,
    "generation": _generation,
    "growth": _growth,
}
