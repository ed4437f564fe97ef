"""Scoring beside the evaluator and the server that people use: in turn, several rounds, medians, and equal scores."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.progress import doing
from benchmarks.speed.child import run_child
from benchmarks.speed.workload import Workload

PEERS = Path(__file__).parent / "peers"
REFERENCE = "ecomjudge exact"  # whose margins all others are compared with


@dataclass(frozen=True)
class Contestant:
    """A tool in one setting: the command that scores a workload, ``{work}`` and ``{out}`` filled in.

    ``records`` says how many of the first records it scores; None is all. A tool that scores each record on its own is
    as fast on few of them.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    records: int | None = None

    def run(self, work: Path) -> dict[str, Any]:
        """Score once, into a file of this run's own: what another run says, one left over by a killed bench too, is
        never taken for it. Raises ChildProcessError with the end of what the tool said."""
        with tempfile.TemporaryDirectory(dir=work.parent) as own:
            out = Path(own).absolute() / "out.json"
            filled = [part.format(work=work, out=out) for part in self.command]
            run_child(self.name, filled, self.environment)
            if not out.is_file():
                raise ChildProcessError(f"{self.name} ended without figures")
            found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return found


def ours(threads: int) -> list[Contestant]:
    """Our engine in each precision."""
    command = (sys.executable, "-m", "benchmarks.speed.ours", "{work}", "{out}", "--threads", str(threads))
    return [Contestant(f"ecomjudge {dtype}", (*command, "--dtype", dtype)) for dtype in ("exact", "float32", "auto")]


def contestants(threads: int, peers: Mapping[str, Path], alone: int) -> list[Contestant]:
    """Ours in each precision, and those of the peers that are there (harness, vllm) for decoders.

    Args:
        peers: name -> its interpreter.
        alone: records for the harness, which shares nothing between them.
    """
    many = ("--threads", str(threads))
    found = ours(threads)
    if "harness" in peers:
        script = (str(peers["harness"]), str(PEERS / "lm_eval_scores.py"), "{work}", "{out}", *many)
        found += [
            Contestant("lm-eval float32, batch 1", script, records=alone),
            Contestant("lm-eval float32, batch 8", (*script, "--batch", "8"), records=alone),
            Contestant("lm-eval float32 through oneDNN, batch 1", (*script, "--onednn"), records=alone),
            Contestant("lm-eval bfloat16, batch 1", (*script, "--dtype", "bfloat16"), records=alone),
        ]
    if "vllm" in peers:
        bound = {"VLLM_CPU_OMP_THREADS_BIND": f"0-{threads - 1}", "VLLM_CPU_KVCACHE_SPACE": "2"}
        script = (str(peers["vllm"]), str(PEERS / "vllm_scores.py"), "{work}", "{out}", *many)
        found += [Contestant(f"vLLM {dtype}", (*script, "--dtype", dtype), bound) for dtype in ("float32", "bfloat16")]
    return found


def encoder_contestants(threads: int, peers: Mapping[str, Path]) -> list[Contestant]:
    """Ours in each precision, and sentence-transformers' CrossEncoder where it is there (cross-encoder)."""
    found = ours(threads)
    if "cross-encoder" in peers:
        program = (str(peers["cross-encoder"]), str(PEERS / "cross_encoder_scores.py"))
        script = (*program, "{work}", "{out}", "--threads", str(threads))
        found += [
            Contestant("CrossEncoder float32", script),
            Contestant("CrossEncoder bfloat16", (*script, "--dtype", "bfloat16")),
        ]
    return found


def chosen(field: Sequence[Contestant], tools: Sequence[str] | None, alone: int) -> list[Contestant]:
    """Those of ``field`` that ``tools`` names, or all; the one that all are compared with scores ``alone`` records
    where it is not named. Raises ValueError for a name that none has."""
    if tools is None:
        return list(field)
    names = [one.name for one in field]
    for tool in tools:
        if tool not in names:
            raise ValueError(f"--tools: {tool!r} is none of {', '.join(names)}")
    reference = [replace(one, records=alone) for one in field if one.name == REFERENCE and REFERENCE not in tools]
    return reference + [one for one in field if one.name in tools]


def compare(work: Workload, field: Sequence[Contestant], rounds: int, folder: Path, say: Console) -> dict[str, Any]:
    """Every contestant scores the workload in turn, ``rounds`` times. A tool that fails is told of and left out, but
    for the one that all are compared with: its ChildProcessError is raised."""
    kind = f"{work.shots}shot" if work.labels else "pairs"
    paths = {
        one.name: work.first(one.records or len(work.texts)).write(
            folder / f"{work.judgment}-{kind}-{one.records or 'all'}.json"
        )
        for one in field
    }
    runs: dict[str, list[dict[str, Any]]] = {one.name: [] for one in field}
    failed: dict[str, str] = {}
    for number in range(rounds):
        for one in field:
            if one.name in failed:
                continue
            with doing(say, f"{work.judgment}, {work.shots} shots, round {number + 1} of {rounds}: {one.name}"):
                try:
                    runs[one.name].append(one.run(paths[one.name]))
                except ChildProcessError as error:
                    if one.name == REFERENCE:
                        raise
                    failed[one.name] = str(error)
                    say.print(str(error), style="red", markup=False)
    reference = runs[REFERENCE][0]["margins"]
    return {
        "judgment": work.judgment,
        "model": Path(work.model).name,
        "shots": work.shots,
        "records": len(work.texts),
        "failed": failed,
        "tools": {name: summary(found, reference) for name, found in runs.items() if found and name not in failed},
    }


def summary(runs: Sequence[Mapping[str, Any]], reference: Sequence[float]) -> dict[str, Any]:
    """Medians over rounds, and how far the margins are from ours in exact float32."""
    rates = [run["records"] / run["seconds"] for run in runs]
    scored = runs[0]["margins"]
    pairs = [(a, b) for a, b in zip(scored, reference, strict=False) if a is not None]  # either may score the first few
    mine, exact = np.array(pairs).T
    told = {key: runs[0][key] for key in ("dtype", "tokens", "computed", "rescored") if key in runs[0]}
    return {
        "records_per_second": statistics.median(rates),
        "all_rates": rates,
        "peak_memory_gib": runs[0]["peak_memory_gib"],
        "mfu": statistics.median(run["mfu"] for run in runs) if "mfu" in runs[0] else None,
        "largest_difference": float(np.abs(mine - exact).max()),
        "verdicts_changed": int(((mine >= 0) != (exact >= 0)).sum()),
        "records": len(scored),
        "without_score": sum(margin is None for margin in scored),
        **told,
    }


def ratios(tools: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """How many times the records a second of each peer ours are, like beside like."""

    def rate(name: str) -> float | None:
        return tools[name]["records_per_second"] if name in tools else None

    harness = {
        name: found["records_per_second"] for name, found in tools.items() if name.startswith("lm-eval float32, ")
    }
    wanted = {
        "float32 over vLLM float32": (rate("ecomjudge float32"), rate("vLLM float32")),
        "auto over vLLM bfloat16": (rate("ecomjudge auto"), rate("vLLM bfloat16")),
        "exact over lm-eval float32, its best batch": (rate("ecomjudge exact"), max(harness.values(), default=None)),
        "float32 over lm-eval float32 through oneDNN": (
            rate("ecomjudge float32"),
            rate("lm-eval float32 through oneDNN, batch 1"),
        ),
        "auto over lm-eval bfloat16": (rate("ecomjudge auto"), rate("lm-eval bfloat16, batch 1")),
        "auto over lm-eval float32, its best batch": (rate("ecomjudge auto"), max(harness.values(), default=None)),
        "float32 over CrossEncoder float32": (rate("ecomjudge float32"), rate("CrossEncoder float32")),
        "auto over CrossEncoder bfloat16": (rate("ecomjudge auto"), rate("CrossEncoder bfloat16")),
    }
    return {name: ours / theirs for name, (ours, theirs) in wanted.items() if ours and theirs}


def table(found: Mapping[str, Any]) -> Table:
    """Rates, memory and agreement of every tool."""
    title = f"{found['model']}, {found['judgment']}, {found['shots']} shots, {found['records']} records"
    shown = Table("tool", "records/s", "peak GiB", "MFU", "largest difference", "verdicts changed", title=title)
    for name, tool in found["tools"].items():
        shown.add_row(
            name,
            f"{tool['records_per_second']:.2f}",
            "-" if tool["peak_memory_gib"] is None else f"{tool['peak_memory_gib']:.2f}",
            "-" if tool["mfu"] is None else f"{tool['mfu']:.2f}",
            f"{tool['largest_difference']:.1e}",
            f"{tool['verdicts_changed']}",
        )
    return shown
