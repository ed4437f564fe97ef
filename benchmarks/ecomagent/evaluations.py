"""Predictions with their grades, as files that the published evaluation would have written, and a table for people."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.ecomagent.metrics import Outcome
from benchmarks.results import to_line, write_text

EVALUATED = "predictions_evaluation_results.jsonl"


def evaluation_record(outcome: Outcome, judge: str | None) -> dict[str, Any]:
    """A prediction overlaid with its grade."""
    grade, record = outcome.grade, outcome.record or {"id": outcome.grade.task.id, "missing": True}
    failed = [item for item in grade.items if not item.verdict.satisfied]
    total = len(grade.items)
    return {
        **record,
        "trial": outcome.trial,
        "rubric_results": [item.record() for item in grade.items],
        "all_satisfied": grade.all_satisfied,
        "exact_product_match": grade.exact,
        "correct": grade.correct,
        "satisfaction_rate": round(grade.satisfied / total, 4) if total else 0.0,
        "judge_model": judge,
        "target_product_id": grade.task.target_id,
        "prediction_finished": bool(record.get("finished")),
        "runtime_error": outcome.crashed,
        "error_message": record.get("error"),
        "failed_rubric_count": len(failed),
        "failed_rubric_ids": [item.item.id for item in failed],
        "failed_rubric_types": [item.item.type for item in failed],
        "failed_rubric_reasons": [item.verdict.reason for item in failed],
    }


def write_evaluations(path: Path, outcomes: Sequence[Outcome], judge: str | None) -> None:
    """One line an episode, in the order given."""
    write_text(path, "".join(to_line(evaluation_record(outcome, judge)) for outcome in outcomes))


def published() -> list[dict[str, str]]:
    """The table of the paper: model, accuracy, rubric satisfaction and finish rate in percent, calls an episode."""
    text = (files("benchmarks.ecomagent") / "published.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def summary_rows(results: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(measure, value with its interval) of the headline and the tables of sources and intents."""
    names = {
        "overall_accuracy": "accuracy",
        "exact_match_rate": "exact product",
        "overall_rubric_satisfaction": "rubric satisfaction",
        "prediction_finished_rate": "recommended a product",
    }
    for key, name in names.items():
        yield name, percent(results["intervals"][key])
    for source, found in results["by_source"].items():
        yield f"satisfaction: {source}", percent({"value": found["satisfaction"], **found})
    for intent, found in results["by_intent"].items():
        yield f"accuracy: {intent}", percent({"value": found["accuracy"], **found})
    for k, value in results["trials"]["pass_hat_k"].items():
        if results["trials"]["trials"] > 1:
            yield f"pass^{k}", percent({"value": value, "low": None, "high": None})
    calls = results["intervals"]["avg_tool_calls"]["value"]
    yield "tool calls an episode", "-" if calls is None else f"{calls:.1f}"


def percent(interval: Mapping[str, Any]) -> str:
    """A share in percent, with its interval where there is one."""
    if interval["value"] is None:
        return "-"
    value = f"{100 * interval['value']:.1f}"
    return value if interval["low"] is None else f"{value} [{100 * interval['low']:.1f}, {100 * interval['high']:.1f}]"


def table(results: Mapping[str, Any]) -> Table:
    """The results as the terminal shows them."""
    count = f"{results['total_samples']} episodes of {results['tasks']} tasks"
    shown = Table(title=f"EComAgentBench: {results['subject']['name']}, {count}", title_justify="left")
    shown.add_column("measure")
    shown.add_column("% [95 % interval]", justify="right")
    for row in summary_rows(results):
        shown.add_row(*row)
    return shown


def markdown(results: Mapping[str, Any]) -> str:
    """The results as Markdown, the published table below."""
    lines = [f"# EComAgentBench: {results['subject']['name']}", "", "| measure | % [95 % interval] |", "| --- | ---: |"]
    lines += [f"| {name} | {value} |" for name, value in summary_rows(results)]
    fault = results["attribution"]["by_fault"]
    lines += ["", "Failures by what went wrong: " + (", ".join(f"{k} {v}" for k, v in fault.items()) or "none") + "."]
    lines += ["", "Published on the 662 tasks of the benchmark, with another catalogue and another judge:", ""]
    names = ("model", "accuracy", "rubric_satisfaction", "finish_rate", "avg_tool_calls")
    lines += ["| model | accuracy % | rubric satisfaction % | finish % | tool calls |", "| --- " + "| ---: " * 4 + "|"]
    lines += [f"| {' | '.join(row[name] for name in names)} |" for row in published()]
    return "\n".join(lines) + "\n"
