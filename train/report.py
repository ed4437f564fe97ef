"""report.html of a run: how it learned, what its judge says of the validation records, and what fixed the result.

While a run goes on the page is written at every evaluation, so that one that was killed has its curves; when it has
ended the page has the judge's answers as well. Configuration and curves are those on disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from models.spec import JudgeSpec
from recipes.base import Record
from reporting.markup import Content, Markup, count, joined, number
from reporting.page import Column, Section, interval, page, paragraph, table, tiles
from reporting.summary import MEASURES, answered_right, measure_tiles
from reporting.verdicts import judged_sections
from train.config import EvaluationConfig
from train.curves import curves_section
from train.run_facts import configuration_section, facts_section
from train.runs import RunFolder, write_text

CAUTION = "It is the one with the highest macro-F1 here; on other records another may be better."


@dataclass(frozen=True)
class Ending:
    """What a run ended with: the judge's spec, training.json, and its answers on the validation records.

    Attributes:
        lines: as predictions.jsonl has them.
        records: the validation records by id, as the judge read them.
    """

    spec: JudgeSpec
    facts: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]
    records: Mapping[str, Record]

    @property
    def results(self) -> dict[str, Any]:
        """What was measured on the validation records, as results.json of an evaluation has it."""
        return {
            **self.facts["results"]["validation"],
            "judgment": self.spec.judgment,
            "data": self.facts["data"]["validation"],
            "bootstrap": self.facts["bootstrap"],
            "threshold": {"value": self.spec.threshold, "from": "chosen on these records"},
            "temperature": self.spec.temperature,
        }


class ReportPage(TrainerCallback):
    """Writes the page at every evaluation, behind the line that metrics.jsonl gets of it; the main process only."""

    def __init__(self, folder: RunFolder, judgment: str) -> None:
        self.folder = folder
        self.judgment = judgment

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.is_world_process_zero:
            write_report(self.folder, self.judgment)


def write_report(folder: RunFolder, judgment: str, ending: Ending | None = None) -> None:
    """Write ``report.html`` into the run's folder, of what is known by now."""
    write_text(folder.report, report(folder.path.name, judgment, folder.settings(), folder.entries(), ending))


def report(
    name: str,
    judgment: str,
    settings: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
    ending: Ending | None = None,
) -> str:
    """The page.

    Args:
        name: the run's.
        settings: what config.yaml holds.
        entries: the lines of metrics.jsonl.
    """
    best = _best(entries, settings["evaluation"]["metric"], _upwards(settings["evaluation"]))
    curves, configuration = curves_section(entries, best), configuration_section(settings)
    kicker, version = f"Training · {judgment}", settings["facts"]["versions"].get("ecomjudge", "")
    footer = f"Written by ecomjudge {version} from config.yaml, metrics.jsonl and what the judge said of the records."
    if ending is None:
        sections = [curves, facts_section(judgment, settings, entries), configuration]
        return page(kicker, name, _under_way(settings, entries), sections, footer)
    results = ending.results
    lead = joined([answered_right(results), _optimistic(ending.facts), tiles(measure_tiles(results))])
    judged = judged_sections(results, ending.lines, ending.records, CAUTION)
    known = facts_section(judgment, settings, entries, ending.spec, ending.facts)
    return page(kicker, name, lead, [curves, _measures(ending.facts), *judged, known, configuration], footer)


def _upwards(evaluation: Mapping[str, Any]) -> bool:
    """Whether a higher value of the metric is better; see EvaluationConfig."""
    return EvaluationConfig(metric=evaluation["metric"], direction=evaluation["direction"]).upwards


def _best(entries: Sequence[Mapping[str, Any]], metric: str, upwards: bool) -> int | None:
    """The update of the best evaluation, the first among equals, as Trainer keeps it."""
    found = [(float(entry[f"eval_{metric}"]), int(entry["step"])) for entry in entries if f"eval_{metric}" in entry]
    sign = -1 if upwards else 1
    return min(((sign * value, step) for value, step in found), default=(0.0, None))[1]


def _under_way(settings: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Markup:
    last = max((entry.get("step", 0) for entry in entries), default=0)
    most, epochs = settings["optim"]["max_steps"], settings["optim"]["epochs"]
    epoch = max((entry.get("epoch", 0.0) for entry in entries), default=0.0)
    aim = f"of {count(most)}" if most else f"(epoch {epoch:.2f} of {epochs:g})"
    return joined(
        [
            paragraph(f"This page was written at update {count(last)} {aim}: the run had not ended."),
            paragraph("If it was stopped, the same command goes on from its last checkpoint."),
        ]
    )


def _optimistic(facts: Mapping[str, Any]) -> Markup:
    chosen = "Checkpoint, threshold and temperature were chosen on these records, so that the figures are optimistic"
    if "test" in facts["results"]:
        return paragraph(f"{chosen}; those of the test records, below, are not.")
    return paragraph(f"{chosen}; scripts/evaluate.py examines the judge on records that nothing was chosen on.")


def _measures(facts: Mapping[str, Any]) -> Section:
    """The measures of each set that was judged, beside always giving the commoner training label."""
    rows: list[list[Content]] = []
    for where, results in facts["results"].items():
        majority = results["baselines"]["majority"]
        measured = [interval(results["metrics"][key]) for key in MEASURES]
        rows.append([f"{where}, this judge", count(results["n"]), *measured, number(results["calibration"]["ece"])])
        constant = [number(majority["metrics"][key]["value"]) for key in MEASURES]
        rows.append([f"{where}, always {'yes' if majority['class'] else 'no'}", "", *constant, ""])
    names = ("Records", *MEASURES.values(), "ECE")
    head = [Column("Records and judge"), *(Column(name, "number") for name in names)]
    drawn = facts["bootstrap"]
    lead = f"In brackets, 95 % intervals: percentiles of {count(drawn['resamples'])} bootstrap resamples of the groups."
    return Section("measures", "Measures", table("Beside what is to be beaten", head, rows), lead)
