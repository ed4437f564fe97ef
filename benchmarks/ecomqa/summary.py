"""What results.json says of the graded lines, and the table that a person reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.completions import Line
from benchmarks.ecomqa.answering import UNASKED
from benchmarks.ecomqa.baselines import Baseline
from benchmarks.ecomqa.calibration import calibration
from benchmarks.ecomqa.grading import agreement, concord
from benchmarks.ecomqa.metrics import measure
from benchmarks.ecomqa.wording import mean_name

Results = Mapping[str, Any]


def summarise(lines: Sequence[Line], baselines: Mapping[str, Baseline], judges: Sequence[str]) -> dict[str, Any]:
    """The measures, each sub-concept beside its constant answer; how answers ended; who graded what, and how far the
    graders agree.

    Args:
        judges: names of the model judges.
    """
    measured = measure(lines)
    for task, own in measured["sub_concepts"].items():
        own["baseline"] = {**asdict(baselines[task]), "says": str(baselines[task])}
    average = sum(baselines[task].accuracy for task in measured["sub_concepts"]) / len(measured["sub_concepts"])
    return {
        **measured,
        "baseline": average,
        "answers": endings(lines),
        "grading": grading(lines, judges),
    }


def endings(lines: Sequence[Line]) -> dict[str, int]:
    """How many answers were cut by the limit, have a trace, have one that never ended, and were not asked as meant."""
    return {
        "cut": sum(line["finish"] == "length" for line in lines),
        "traces": sum(line["trace"] is not None for line in lines),
        "unfinished_traces": sum(line["unfinished"] for line in lines),
        "too_long": sum(line["finish"] == UNASKED for line in lines),
        "without_shots": sum(not line["shots"] for line in lines),
        "empty": sum(not line["answer"] for line in lines),
    }


def grading(lines: Sequence[Line], judges: Sequence[str]) -> dict[str, Any]:
    """Who decided how many grades (in all, and for closed and open forms), how votes fell, what could not be read."""
    cast = {judge: [_vote_of(line, judge) for line in lines] for judge in judges}
    voted = [line for line in lines if line["votes"]]
    closed = [line for line in lines if line["closed"]]
    rules = [line["rules"]["grade"] for line in closed]
    return {
        "judges": list(judges),
        "by": dict(Counter(line["by"] for line in lines)),
        "by_form": {
            "closed": dict(Counter(line["by"] for line in closed)),
            "open": dict(Counter(line["by"] for line in lines if not line["closed"])),
        },
        "how": dict(Counter(line["panel"]["how"] for line in voted)),
        "votes": {judge: sum(vote is not None for vote in votes) for judge, votes in cast.items()},
        "unparsed": {
            **{judge: sum(vote is not None and vote["grade"] is None for vote in cast[judge]) for judge in judges},
            "rules": sum(line["rules"]["grade"] is None for line in lines),
        },
        "agreement": agreement({judge: [_grade_of(line, judge) for line in voted] for judge in judges}),
        # On answers of a closed form, which rules can tell.
        "rules_and_judges": {judge: concord(rules, [_grade_of(line, judge) for line in closed]) for judge in judges},
        "rules_and_panel": concord(rules, [line["panel"] and line["panel"]["grade"] for line in closed]),
    }


def _vote_of(line: Line, judge: str) -> Line | None:
    return next((vote for vote in line["votes"] if vote["judge"] == judge), None)


def _grade_of(line: Line, judge: str) -> Any:
    vote = _vote_of(line, judge)
    return vote and vote["grade"]


def calibrated(lines: Sequence[Line], bins: int) -> dict[str, Any]:
    """Calibration of each sub-concept that was asked for a confidence, and of all of them together."""
    tasks = dict.fromkeys(line["task"] for line in lines)
    parts = {task: [line for line in lines if line["task"] == task] for task in tasks}
    return {
        name: calibration([line.get("confidence") for line in own], [line["correct"] for line in own], bins)
        for name, own in {**parts, "all": list(lines)}.items()
    }


def table(results: Results) -> Table:
    """Each sub-concept with its interval beside the constant answers; their unweighted mean; all questions together."""
    title = f"{results['subject']['name']}: {results['all']['n']} questions of {results['data']['reference']}"
    shown = Table(title=title, caption=_caption(results), box=SIMPLE_HEAD, pad_edge=False)
    for column in ("", "n", "accuracy", "constant", "tried", "of those", "F"):
        shown.add_column(column, justify="right" if column else "left", no_wrap=True)
    for task, own in results["sub_concepts"].items():
        n, baseline = str(own["n"]), f"{own['baseline']['accuracy']:.1f}"
        shown.add_row(f"{task} {own['name']}", n, _ends(own["accuracy"]), baseline, *_silence(own))
    mean, everything = _ends(results["average"]), results["all"]
    shown.add_row(mean_name(results), "", mean, f"{results['baseline']:.1f}", style="bold")
    pooled = _ends(everything["accuracy"])
    shown.add_row("all questions together", str(everything["n"]), pooled, "", *_silence(everything))
    return shown


def _ends(interval: Results) -> str:
    return f"{interval['value']:.1f} [{interval['low']:.1f}, {interval['high']:.1f}]"


def _silence(own: Results) -> tuple[str, str, str]:
    given = own["given_attempted"]
    return f"{own['attempted']:.1f}", "-" if given is None else f"{given:.1f}", f"{own['f']:.1f}"


def _caption(results: Results) -> str:
    answers, grading = results["answers"], results["grading"]
    by = ", ".join(f"{who.replace('_', ' ')} {count}" for who, count in grading["by"].items())
    parts = [
        "percent, 95 % intervals; constant: the best answers that never change, named below; tried: gave an answer"
    ]
    parts += [f"graded by {by}", f"{answers['cut']} answers cut by the limit"]
    parts += [f"{answers['unfinished_traces']} traces without an end"] if answers["traces"] else []
    parts += [f"{answers['too_long']} questions too long"] if answers["too_long"] else []
    parts += [f"{answers['without_shots']} asked without examples"] if answers["without_shots"] else []
    if open_by_rules := grading["by_form"]["open"].get("rules", 0):
        parts.append(f"{open_by_rules} open answers graded by wording alone: name model judges for them")
    if len(grading["judges"]) > 1:
        kappa = grading["agreement"]["kappa"]
        parts.append(f"Fleiss' kappa of {len(grading['judges'])} judges {'-' if kappa is None else f'{kappa:.2f}'}")
    return "; ".join(parts)
