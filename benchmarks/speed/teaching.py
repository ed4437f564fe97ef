"""Training beside transformers' Trainer with PEFT: records a second, and the loss after as many records.

Both teach the same backbone with LoRA of rank 32 on every linear layer, batches of 16, the same learning rate, on the
sample's step-product records, as texts of two kinds: with the instruction (the label words' way here, a new
classification head there), and without it (a new classification head in both, so that losses can be compared).
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.progress import doing
from benchmarks.speed.child import run_child
from benchmarks.speed.scoring import PEERS
from models.backbone import load_tokenizer
from models.checkpoint import resolve
from models.encoding import Encoder
from recipes.judgments import get_judgment
from recipes.reading import read_records

BATCH, STEPS, LEARNING_RATE = 16, 16, 5e-4
HEADS = {"with the instruction": "verbalizer", "without it": "classification"}
JUDGMENT = "step_product"
OURS = "ecomjudge"


@dataclass(frozen=True)
class Lesson:
    """One training run: what to teach whom, and the empty folder that is this run's own."""

    checkpoint: str
    head: str
    texts: Path
    threads: int
    seed: int
    folder: Path


def compare_training(
    kind: str, checkpoint: str, threads: int, rounds: int, folder: Path, say: Console
) -> dict[str, Any]:
    """Every tool teaches in turn, ``rounds`` times, each round with a seed of its own. A tool that fails is told of and
    left out, but for ours: its ChildProcessError is raised.

    Args:
        kind: of texts, one of ``HEADS``.
    """
    found, head = resolve(checkpoint), HEADS[kind]
    name_or_path = found.path if found.local else checkpoint  # commands run in the repository's root
    texts = write_texts(checkpoint, head, folder / f"texts-{head}.json")
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in TOOLS}
    failed: dict[str, str] = {}
    for seed in range(rounds):
        for name, run in TOOLS.items():
            if name in failed:
                continue
            turn = f"training {kind}, round {seed + 1} of {rounds}: {name}"
            with doing(say, turn), tempfile.TemporaryDirectory(dir=folder) as own:
                try:
                    runs[name].append(run(Lesson(name_or_path, head, texts, threads, seed, Path(own))))
                except ChildProcessError as error:
                    if name == OURS:
                        raise
                    failed[name] = str(error)
                    say.print(str(error), style="red", markup=False)
    return {"failed": failed, "tools": {name: summary(made) for name, made in runs.items() if name not in failed}}


def write_texts(checkpoint: str, head: str, path: Path) -> Path:
    """The training records as the texts that our judge reads, with their labels, for the peer."""
    judgment = get_judgment(JUDGMENT)
    model = resolve(checkpoint)
    encoder = Encoder(load_tokenizer(model), head, bidirectional=False)  # type: ignore[arg-type]
    style = "instruction" if head == "verbalizer" else "plain"
    records: list[Any] = read_records(judgment, "sample:train")[: BATCH * STEPS]
    train = [[encoder.text(judgment.render(record, style)), record.label] for record in records]  # type: ignore[arg-type]
    path.write_text(json.dumps({"model": model.path, "train": train}, ensure_ascii=False), encoding="utf-8")
    lines = [record.model_dump_json(exclude_none=True) + "\n" for record in records]
    path.with_suffix(".jsonl").write_text("".join(lines), encoding="utf-8")
    few: list[Any] = read_records(judgment, "sample:validation")[:8]
    path.with_suffix(".validation.jsonl").write_text(
        "".join(record.model_dump_json(exclude_none=True) + "\n" for record in few), encoding="utf-8"
    )
    return path


def ours(lesson: Lesson) -> dict[str, Any]:
    """Our training command, as a user gives it."""
    texts, name = lesson.texts, "bench"
    settings = {
        "checkpoint": lesson.checkpoint,
        "model.head": lesson.head,
        "lora.dropout": 0.0,
        "data.train": texts.with_suffix(".jsonl"),
        "data.validation": texts.with_suffix(".validation.jsonl"),
        "optim.batch_size": BATCH,
        "optim.micro_batch_size": BATCH,
        "optim.max_steps": STEPS,
        "optim.learning_rate": LEARNING_RATE,
        "optim.schedule": "constant",
        "optim.warmup": 0.0,
        "evaluation.every": 1.0,
        "tracking.wandb": "disabled",
        "tracking.log_every": 1,
        "run.folder": lesson.folder,
        "run.name": name,
        "seed": lesson.seed,
        "threads": lesson.threads,
    }
    flags = [f"--{key}={value}" for key, value in settings.items()]
    command = [sys.executable, f"train/{JUDGMENT}.py", "--config", f"configs/{JUDGMENT}/smollm2-135m.yaml", *flags]
    run_child(OURS, command)
    metrics = lesson.folder / JUDGMENT / name / "metrics.jsonl"
    trained = [line for line in map(json.loads, metrics.read_text(encoding="utf-8").splitlines()) if "loss" in line]
    later = trained[len(trained) // 2 :]
    return {
        "records_per_second": len(later) / sum(1 / line["records_per_second"] for line in later),
        "losses": [line["loss"] for line in trained],
        "mfu": statistics.median(line["mfu"] for line in later),
        "shared_share": statistics.median(line["shared_share"] for line in later),
        "peak_memory_gib": trained[-1]["peak_memory_gib"],
    }


def peer(lesson: Lesson, best: bool) -> dict[str, Any]:
    """transformers' Trainer with PEFT, in our own environment: the same versions."""
    out = lesson.folder / "trainer.json"
    flags = {"--threads": lesson.threads, "--steps": STEPS, "--batch": BATCH, "--seed": lesson.seed}
    words = [str(word) for flag in {**flags, "--learning_rate": LEARNING_RATE}.items() for word in flag]
    script = [sys.executable, str(PEERS / "trainer_peft.py"), str(lesson.texts), str(out), *words]
    run_child("Trainer + PEFT", [*script, "--best"] if best else script)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


TOOLS: dict[str, Callable[[Lesson], dict[str, Any]]] = {
    OURS: ours,
    "Trainer + PEFT as documented": partial(peer, best=False),
    "Trainer + PEFT at its best": partial(peer, best=True),
}


def summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Median rate, and the mean loss of the last quarter of the updates in each round."""
    quarter = max(1, len(runs[0]["losses"]) // 4)
    last = [statistics.fmean(run["losses"][-quarter:]) for run in runs]
    return {
        "records_per_second": statistics.median(run["records_per_second"] for run in runs),
        "all_rates": [run["records_per_second"] for run in runs],
        "last_losses": last,
        **{key: runs[0][key] for key in ("mfu", "shared_share", "peak_memory_gib") if key in runs[0]},
    }


def table(kind: str, tools: Mapping[str, Mapping[str, Any]]) -> Table:
    """Rates, memory and last losses of every tool on one kind of text."""
    shown = Table("tool", "records/s", "ours over it", "peak GiB", "MFU", "last losses", title=f"training {kind}")
    mine = tools[OURS]["records_per_second"]
    for name, tool in tools.items():
        shown.add_row(
            name,
            f"{tool['records_per_second']:.2f}",
            f"{mine / tool['records_per_second']:.2f}",
            f"{tool['peak_memory_gib']:.2f}",
            f"{tool['mfu']:.2f}" if "mfu" in tool else "-",
            ", ".join(f"{loss:.3f}" for loss in tool["last_losses"]),
        )
    return shown
