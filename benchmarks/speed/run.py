"""A speed comparison from configuration to tables and bench.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers.utils import logging as transformers_logging

from benchmarks.ecomqa.data import read_questions
from benchmarks.results import publishable, to_json, write_text
from benchmarks.speed import generation, growth, scoring, teaching
from benchmarks.speed.config import SpeedConfig
from benchmarks.speed.environments import install
from benchmarks.speed.workload import Workload, make_pairs, make_workload
from models.backbone import LoadSettings, is_encoder, load_config
from models.checkpoint import resolve
from models.judge import new_judge
from models.precision import cpu_name, products, rate
from models.runtime import use_threads, versions
from recipes.judgments import get_judgment


def bench(config: SpeedConfig) -> dict[str, Any]:
    """Run the parts asked for; what each found, even of a part, is written as soon as it is there.

    Raises ValueError for settings that compare nothing or cannot be measured, before anything is.
    """
    threads = use_threads(config.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    refuse(config)
    folder = begin(config.out)
    say.print(f"figures go to {folder / 'bench.json'}", markup=False)
    found: dict[str, Any] = {"machine": machine(threads), "versions": versions()}
    for part in config.parts:
        for so_far in PARTS[part](config, threads, folder, say):
            found[part] = so_far
            write_text(folder / "bench.json", to_json(found))
    return found


def refuse(config: SpeedConfig) -> None:
    """Raises ValueError for what would fail, or compare nothing, only hours later."""
    for name in ("parts", "judgments", "shots", "questions"):
        if not getattr(config, name):
            raise ValueError(f"--{name} is empty; give one or more")
    if min(config.shots) < 0:
        raise ValueError(f"--shots: {min(config.shots)} given; give 0 or more")
    for judgment in config.judgments:
        get_judgment(judgment)
    if "generation" in config.parts:
        for reference in config.questions:
            read_questions(reference)
    if "encoders" in config.parts and not is_encoder(load_config(resolve(config.encoder))):
        raise ValueError(f"--encoder {config.encoder} is none; give an encoder, minilm for instance")
    if set(config.parts) - {"encoders"} and is_encoder(load_config(resolve(config.checkpoint))):
        raise ValueError(
            f"--checkpoint {config.checkpoint} is an encoder; give a decoder, smollm2-135m for instance, "
            f"or compare it by --parts '[encoders]' --encoder {config.checkpoint}"
        )


def begin(out: str | None) -> Path:
    """The folder of this bench alone, by its absolute path, because tools run in another one; its bench.json, still
    empty, keeps others out. Raises ValueError where it has one already."""
    folder = Path(out or f"results/speed/{datetime.now():%Y-%m-%dT%H-%M-%S}").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        (folder / "bench.json").touch(exist_ok=False)
    except FileExistsError:
        raise ValueError(f"{folder} has the bench.json of another bench; give another --out, or none") from None
    return folder


def machine(threads: int) -> dict[str, Any]:
    """What the figures were measured on; rates in GFLOP/s of one matrix product."""
    return {
        "cpu": cpu_name(),
        "threads": threads,
        "float32": round(rate(torch.float32), 1),
        "bfloat16": round(rate(torch.bfloat16), 1),
        "choices": {"bfloat16": products().takes_bfloat16, "onednn": products().takes_onednn},
    }


def _scoring(config: SpeedConfig, threads: int, folder: Path, say: Console) -> Iterator[list[dict[str, Any]]]:
    peers, absent = install([peer for peer in ("harness", "vllm") if peer in config.peers], say)
    field = scoring.chosen(scoring.contestants(threads, peers, config.alone), config.tools, config.alone)
    made = []
    for judgment in config.judgments:
        for shots in config.shots:
            work = make_workload(config.checkpoint, judgment, shots, config.records)
            made.append(_compared(work, field, absent, config, folder, say))
            yield made


def _encoders(config: SpeedConfig, threads: int, folder: Path, say: Console) -> Iterator[list[dict[str, Any]]]:
    peers, absent = install([peer for peer in ("cross-encoder",) if peer in config.peers], say)
    field = scoring.chosen(scoring.encoder_contestants(threads, peers), config.tools, config.alone)
    made = []
    for judgment in config.judgments:
        work = make_pairs(config.encoder, judgment, config.records, folder / f"encoder-{judgment}")
        made.append(_compared(work, field, absent, config, folder, say))
        yield made


def _compared(
    work: Workload,
    field: Sequence[scoring.Contestant],
    absent: Mapping[str, str],
    config: SpeedConfig,
    folder: Path,
    say: Console,
) -> dict[str, Any]:
    """``absent``: peers that could not be installed, and why."""
    found = scoring.compare(work, field, config.rounds, folder, say)
    found["failed"] |= absent
    found["ratios"] = scoring.ratios(found["tools"])
    shown = Console(highlight=False)
    shown.print(scoring.table(found))
    for name, ratio in found["ratios"].items():
        shown.print(f"  {name}: {ratio:.2f} times")
    return found


def _training(config: SpeedConfig, threads: int, folder: Path, say: Console) -> Iterator[dict[str, Any]]:
    made = {}
    for kind in teaching.HEADS:
        made[kind] = teaching.compare_training(kind, config.checkpoint, threads, config.rounds, folder, say)
        Console(highlight=False).print(teaching.table(kind, made[kind]["tools"]))
        yield made


def _generation(config: SpeedConfig, threads: int, folder: Path, say: Console) -> Iterator[list[dict[str, Any]]]:
    made = []
    for reference in config.questions:
        questions = generation.read_chats(config.checkpoint, reference, config.limit, config.max_tokens)
        found = generation.compare(config.checkpoint, questions, config.max_tokens, config.rounds, say)
        made.append({**found, "questions": publishable(reference)})
        Console(highlight=False).print(generation.table(made[-1]))
        yield made


def _growth(config: SpeedConfig, threads: int, folder: Path, say: Console) -> Iterator[dict[str, Any]]:
    judge = new_judge(resolve(config.checkpoint), "bench", "bench", ("No", "Yes"), LoadSettings(head="verbalizer"))
    found = growth.measure_growth(judge, say)
    for curve, lines in found.items():
        Console(highlight=False).print(growth.table(curve, lines))
    yield found


PARTS = {
    "scoring": _scoring,
    "encoders": _encoders,
    "training": _training,
    "generation": _generation,
    "growth": _growth,
}
