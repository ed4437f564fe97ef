"""Our side of a comparison, as a process of its own: `python -m benchmarks.speed.ours WORKLOAD OUT --dtype auto`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.speed.workload import Workload
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import Judge, new_judge
from models.precision import compute_dtype, flops_per_token, peak_memory, rate
from models.rescoring import Rescoring
from models.scoring import TOKEN_BUDGET, Scoring


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dtype", default="auto", choices=["auto", "exact", "float32", "bfloat16"])
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--token_budget", type=int, default=TOKEN_BUDGET)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    work = Workload.read(given.workload)
    settings = LoadSettings(head="verbalizer" if work.labels else "classification", dtype=given.dtype)
    judge = load(work, settings)
    warm(judge, work)
    exact: Callable[[], Judge] | None = None
    if given.dtype == "auto" and compute_dtype(judge.model) != torch.float32:
        reference = load(work, replace(settings, dtype="float32"))
        warm(reference, work)
        exact = lambda: reference  # noqa: E731
    given.out.write_text(json.dumps(score(judge, exact, work, given.token_budget)), encoding="utf-8")


def load(work: Workload, settings: LoadSettings) -> Judge:
    return new_judge(resolve(work.model), work.judgment, "bench", ("No", "Yes"), settings)


def warm(judge: Judge, work: Workload) -> None:
    """Kernels are chosen and memory is taken at the first passes, of every tool."""
    scoring = Scoring(judge, judge.encoder.encode(work.prompts[:4]))
    for rows in scoring.batches:
        scoring.margins(rows)


def score(judge: Judge, exact: Callable[[], Judge] | None, work: Workload, token_budget: int) -> dict[str, object]:
    """Judge all prompts, from text to margins; what it took."""
    start = time.perf_counter()
    encoded = judge.encoder.encode(work.prompts)
    scoring = Scoring(judge, encoded, token_budget)
    plan: Scoring | Rescoring = scoring
    if exact is not None:
        plan = Rescoring(scoring, lambda: Scoring(exact(), encoded, token_budget), decision=0.0)
    margins = [0.0] * len(encoded)
    for rows in plan.batches:
        for row, margin in zip(rows, plan.margins(rows).tolist(), strict=True):
            margins[row] = margin
    seconds = time.perf_counter() - start
    dtype = compute_dtype(judge.model)
    return {
        "seconds": seconds,
        "records": len(encoded),
        "tokens": sum(len(row["input_ids"]) for row in encoded),
        "computed": scoring.computed,
        "margins": margins,
        "rescored": len(plan.rescored),
        "dtype": str(dtype).removeprefix("torch."),
        "mfu": flops_per_token(judge.model) * scoring.computed / seconds / (rate(dtype) * 1e9),
        "peak_memory_gib": peak_memory(),
    }


if __name__ == "__main__":
    main()
