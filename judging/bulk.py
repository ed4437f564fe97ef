"""Judging rows in bulk: windows of them are dealt out to any number of processes, and every answer is written once."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from transformers.utils import logging as transformers_logging

from judging.answers import REASONS, Answer, answer
from judging.config import BulkConfig
from judging.judges import FoundJudge, NamedJudge, by_judgment, find_judges, load, reads_plans, settings_facts
from judging.output import Output, Parts, Stream
from judging.plans import JudgedPlan, Plan, judge_plans
from judging.tables import check_kind
from judging.windows import Window, input_rows, read, records_of, shown, windows
from models.folder import sole_writer
from models.manifest import sha256
from models.runtime import this_process, use_threads
from recipes.faults import unknown_fields
from recipes.raw import Row

RECORDS, PLANS = 1024, 64  # rows of a window, unless the command says otherwise
Lines = list[dict[str, Any]]
log = logging.getLogger(__name__)


def judge_rows(config: BulkConfig) -> dict[str, Any]:
    """Judge all rows of the input, as one of any number of processes; what was said, counted (on the main process).

    Raises ValueError or FileNotFoundError in words: faults in settings, files, or the input as a whole. Rows that
    cannot be judged are no error: they get a reason each.
    """
    state = this_process()
    use_threads(config.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    found = find_judges(config.adapter)
    plans = reads_plans(found)
    size = (PLANS if plans else RECORDS) if config.window is None else config.window
    _check(config, plans, size, state.num_processes)
    identity = {
        "judges": [one.facts for one in found],
        "settings": settings_facts(found, config),
        "data": {"name": Path(config.data).name, "sha256": _digest(config.data) if state.is_main_process else None},
        "window": size,
    }
    parts = Parts(Path(config.out), identity) if config.out != "-" else None
    with sole_writer(parts.out) if parts is not None and state.is_main_process else nullcontext():
        return _judge_to(parts, config, found, size)


def _judge_to(parts: Parts | None, config: BulkConfig, found: Sequence[FoundJudge], size: int) -> dict[str, Any]:
    """Judge the input in windows of ``size`` rows into a file, or to standard output where ``parts`` is None."""
    state = this_process()
    say = Console(stderr=True, highlight=False, soft_wrap=True, quiet=not state.is_main_process)
    if parts is not None:
        with state.main_process_first():
            finished = parts.open(config.overwrite) if state.is_main_process else not parts.folder.exists()
        if finished:
            say.print(f"{config.out} is finished; give --overwrite to judge again")
            return parts.summary()
    judges = load(found, config, state.device)
    state.wait_for_everyone()
    started = time.perf_counter()
    output: Output = parts or Stream()
    count = _run(config, found[0].judgment.name, size, lines_for(judges, config), output, say)
    state.wait_for_everyone()
    if parts is None or not state.is_main_process:
        return {}
    summary = parts.finish(count)
    say.print(sentence(config.out, summary, time.perf_counter() - started))
    return summary


def _check(config: BulkConfig, plans: bool, size: int, processes: int) -> None:
    if size < 1:
        raise ValueError(f"window: {size} rows; give 1 or more")
    if processes > 1 and "-" in (config.data, config.out):
        raise ValueError("several processes cannot share standard input or output; give --data FILE --out FILE")
    if config.out == "-":
        return
    out = Path(config.out)
    check_kind(out)
    if out.is_dir():
        raise ValueError(f"{out} is a folder; name a file in it")
    if out.exists() and os.path.exists(config.data) and out.samefile(config.data):
        raise ValueError(f"{out} is the input itself; give another --out")
    if plans and config.out.lower().endswith(".csv"):
        raise ValueError(f"{config.out}: answers about plans do not fit a table's cells; give .jsonl or .parquet")


def _digest(reference: str) -> str | None:
    """What tells an input from what it was before; None where it is no file, or cannot be read (told later)."""
    try:
        return sha256(Path(reference)) if os.path.isfile(reference) else None
    except OSError:
        return None


def _run(
    config: BulkConfig,
    judgment: str,
    size: int,
    lines: Callable[[Window], Lines],
    output: Output,
    say: Console,
) -> int:
    """Judge this process's windows of the input; the number of all windows."""
    state = this_process()
    count = 0
    for window in _progress(windows(input_rows(config.data, judgment), size), say):
        count += 1
        if window.number % state.num_processes == state.process_index and not output.has(window):
            output.write(window, lines(window))
    return count


def lines_for(judges: Sequence[NamedJudge], config: BulkConfig) -> Callable[[Window], Lines]:
    """How a window becomes lines: of one judge, of several for one judgment, or of plans."""
    if reads_plans(judges):
        by_name = by_judgment(judges)
        return lambda window: plan_lines(by_name, window, config.products_per_step, config.token_budget)
    return lambda window: record_lines(judges, window, config.token_budget)


def record_lines(judges: Sequence[NamedJudge], window: Window, token_budget: int | None) -> Lines:
    """A line for each row; with several judges, each one's answer stands under its name."""
    judgment = judges[0].judgment
    _warn(window, judgment.record)
    rows = [read(row, judgment.record) for row in window.rows]
    records = records_of(rows)
    answers = [iter(answer(one, records, token_budget)) for one in judges]
    lines: Lines = []
    for row in rows:
        own = [(row.fault or next(each)).model_dump() for each in answers]
        said = own[0] if len(judges) == 1 else {"judges": {j.name: o for j, o in zip(judges, own, strict=True)}}
        lines.append({"row": row.line, "id": row.id, **said})
    return lines


def plan_lines(judges: Mapping[str, NamedJudge], window: Window, keep: int, token_budget: int | None) -> Lines:
    """A line for each row that is a plan."""
    _warn(window, Plan)
    rows = [read(row, Plan) for row in window.rows]
    judged = iter(judge_plans(judges, records_of(rows), keep, token_budget))
    lines: Lines = []
    for row in rows:
        said = JudgedPlan(script=None, steps=[], plan=None) if row.fault else next(judged)
        why = row.fault or Answer()
        lines.append({"row": row.line, "id": row.id, **said.model_dump(), "reason": why.reason, "detail": why.detail})
    return lines


def _warn(window: Window, model: Any) -> None:
    """Say, at the first window, which fields are not looked at: a misspelt one would be missed in silence."""
    if window.number == 0 and this_process().is_main_process:
        values = [shown(row.value) for row in window.rows if isinstance(row, Row)]
        for field, nearest in dict.fromkeys(slip for value in values for slip in unknown_fields(value, model)):
            log.warning("%s: unknown field, ignored; did you mean %r?", field, nearest)


def _progress(found: Iterator[Window], say: Console) -> Iterator[Window]:
    """The windows, with a count of the rows that are done with."""
    columns = (TextColumn("judged"), BarColumn(), TextColumn("{task.completed:,} rows"), TimeElapsedColumn())
    with Progress(*columns, console=say, disable=not say.is_terminal or say.quiet) as progress:
        task = progress.add_task("judged", total=None)
        for window in found:
            yield window
            progress.advance(task, len(window.rows))


def sentence(out: str, summary: Mapping[str, Any], seconds: float) -> str:
    """How it went, in a line; reasons are explained."""
    counts = dict(summary["said"])
    verdicts = ", ".join(f"{counts.pop(name, 0):,} {name}" for name in ("yes", "no"))
    reasons = "".join(f"\n  {count:,} {reason}: {REASONS[reason]}" for reason, count in counts.items())
    return f"{out}: {summary['rows']:,} rows in {seconds:,.1f} s: {verdicts}{reasons}"
