"""How cost grows: with records, length, products of a step, and solved examples; shared work against none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.ecomscript.fewshot import draw_shots
from benchmarks.progress import progress
from models.judge import Judge
from models.scoring import Scoring
from recipes.base import Prompt
from recipes.judgments import get_judgment
from recipes.reading import read_records

RECORDS = (16, 32, 64, 128, 256)
LENGTHS = (64, 128, 256, 512, 1024)
PRODUCTS = (1, 2, 4, 8)
SHOTS = (0, 1, 2, 4, 8)
ROUNDS = 3


def measure_growth(judge: Judge, say: Console) -> dict[str, list[dict[str, Any]]]:
    """Seconds for each size of each curve, with what is shared computed once, and with every prompt on its own."""
    jobs = [(curve, size, prompts) for curve, sizes in _curves(judge).items() for size, prompts in sizes.items()]
    found: dict[str, list[dict[str, Any]]] = {}
    with progress(say, "how cost grows", len(jobs)) as done:
        for count, (curve, size, prompts) in enumerate(jobs):
            done(count)
            encoded = judge.encoder.encode(prompts)
            shared = min(_seconds(Scoring(judge, encoded)) for _ in range(ROUNDS))
            apart = min(sum(_seconds(Scoring(judge, [row])) for row in encoded) for _ in range(ROUNDS))
            tokens = sum(len(row["input_ids"]) for row in encoded)
            line = {"size": size, "records": len(prompts), "tokens": tokens, "seconds": shared}
            found.setdefault(curve, []).append({**line, "unshared_seconds": apart})
    return found


def _seconds(scoring: Scoring) -> float:
    start = time.perf_counter()
    for rows in scoring.batches:
        scoring.margins(rows)
    return time.perf_counter() - start


def _curves(judge: Judge) -> dict[str, dict[int, list[Prompt]]]:
    """Prompts of each curve by size. Lengths are in tokens, of one prompt; everything else is real sample records."""
    step = get_judgment("step_product")
    records: list[Any] = read_records(step, "sample:train")
    plain = [step.render(record, "instruction") for record in records]
    words = " ".join(prompt.text for prompt in plain[:40]).split()
    products = [record.product for record in records[: max(PRODUCTS)]]
    of_one_step = [records[0].model_copy(update={"product": product, "id": product.title}) for product in products]
    judged = records[:8]
    pool = [record for record in records if record.group_key not in {one.group_key for one in judged}]
    return {
        "records": {count: plain[:count] for count in RECORDS},
        "tokens of a prompt": {count: [_of_length(judge, words, count)] for count in LENGTHS},
        "products of a step": {
            count: [step.render(record, "instruction") for record in of_one_step[:count]] for count in PRODUCTS
        },
        "solved examples": {
            count: [
                step.render(record, "instruction", draw_shots(pool, count, 0, judged) if count else ())
                for record in judged
            ]
            for count in SHOTS
        },
    }


def _of_length(judge: Judge, words: Sequence[str], tokens: int) -> Prompt:
    """A prompt of about so many tokens."""
    count = tokens
    while judge.encoder.lengths([Prompt((), " ".join(words[:count]))])[0] > tokens and count > 1:
        count -= max(1, count // 20)
    return Prompt((), " ".join(words[:count]))


def table(curve: str, lines: Sequence[dict[str, Any]]) -> Table:
    """One curve: seconds with and without sharing, and what sharing is worth."""
    shown = Table(curve, "tokens", "seconds", "each alone, seconds", "times faster", title=f"cost by {curve}")
    for line in lines:
        worth = line["unshared_seconds"] / line["seconds"]
        shown.add_row(
            f"{line['size']}",
            f"{line['tokens']:,}",
            f"{line['seconds']:.3f}",
            f"{line['unshared_seconds']:.3f}",
            f"{worth:.2f}",
        )
    return shown
