"""Does purchase-intent knowledge help? Every way of injecting it, its shuffled control and none, over several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.ecomscript.teaching import Course, groups_in, measured, open_folder, over_seeds, teach_and_examine
from benchmarks.results import publishable, to_json, write_text
from recipes.intervals import Floats
from recipes.judgments import get_judgment
from recipes.reading import fingerprint, read_records

NONE, CONTROL = "none", ":shuffled"
MODES = ("sequential", "mixed", "context")
CONDITIONS = (NONE, *MODES, *(mode + CONTROL for mode in MODES))
MEASURES = ("accuracy", "macro_f1", "auc")
HEAD = (
    *("condition", "seeds", "accuracy", "macro-F1", "AUC"),
    *("accuracy less none's", "macro-F1 less none's", "accuracy less shuffled's"),
)
TABLE, PAGE = "ablation.json", "ablation.md"
Cells = dict[str, dict[int, dict[str, Floats]]]


def conditions_of(judgment: str) -> tuple[str, ...]:
    """Every condition that there is for a judgment: a script shows no products to set intents beside."""
    return tuple(one for one in CONDITIONS if judgment != "script_verify" or not one.startswith("context"))


@dataclass(frozen=True)
class AblationConfig:
    """What to compare and where.

    Attributes:
        conditions: ``none`` and modes of injection, each also with ``:shuffled`` behind it for its control.
        seeds: each trains a judge of every condition.
        test: the records to examine on; the knowledge must not tell of them.
        flags: what the training command is given besides, ``--intents.data`` among it.
        settings: what the flags come to, see ``Course``.
    """

    judgment: str
    out: Path
    conditions: Sequence[str] = CONDITIONS
    seeds: Sequence[int] = (0, 1, 2, 3, 4)
    test: str = "sample:test"
    flags: Sequence[str] = ()
    launch: Sequence[str] = ()
    resamples: int = 2000
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Found:
    """What is there so far: the measures of each condition and seed, what failed and why, the groups examined on."""

    cells: Cells = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    groups: int = 0


def ablate(config: AblationConfig, say: Console) -> dict[str, Any]:
    """Teach and examine every condition with every seed; what ablation.json holds, written anew after each seed.

    What is there already is not done again; a cell that fails is told of, and tried again by the next call.

    Raises ValueError for conditions or data that make no comparison.
    """
    _check(config)
    course = Course(config.judgment, config.test, config.out, config.flags, config.launch, config.settings)
    records = read_records(get_judgment(config.judgment), config.test)
    with open_folder(course, {"test": fingerprint(records)}, "an ablation"):
        return _fill(course, config, len(records), say)


def _fill(course: Course, config: AblationConfig, records: int, say: Console) -> dict[str, Any]:
    found = Found()
    made: dict[str, Any] = {}
    for seed in dict.fromkeys(config.seeds):
        for condition in dict.fromkeys(config.conditions):
            name = f"{condition.replace(':', '-')}-seed{seed}"
            say.print(f"{condition}, seed {seed}")
            try:
                results = teach_and_examine(course, name, *words_of(condition, config.test), f"--seed={seed}")
            except RuntimeError as error:
                say.print(f"failed: {error}")
                found.failed[name] = str(error)
                continue
            found.cells.setdefault(condition, {})[seed] = measured(results, config.resamples)
            found.groups = groups_in(results)
        made = summarise(config, found, records)
        write_text(config.out / TABLE, to_json(made))
        write_text(config.out / PAGE, page_of(made))
    return made


def words_of(condition: str, test: str) -> list[str]:
    """What a condition says to the training command, behind all other flags so that it wins over them."""
    mode, shuffled, _ = condition.partition(CONTROL)
    if mode == NONE:
        return ["--intents.mode=none"]
    is_control = "true" if shuffled else "false"
    return [f"--intents.mode={mode}", f"--intents.apart={test}", f"--intents.shuffled={is_control}"]


def _check(config: AblationConfig) -> None:
    if not config.seeds or NONE not in config.conditions:
        raise ValueError("conditions, seeds: give at least one seed, and none among the conditions")
    if unknown := [one for one in config.conditions if one not in CONDITIONS]:
        raise ValueError(f"conditions: {', '.join(unknown)} given; there are {', '.join(CONDITIONS)}")
    if not config.settings.get("intents.data"):
        raise ValueError("no knowledge to inject: give --intents.data FILE (or sample:train) behind --")


def summarise(config: AblationConfig, found: Found, records: int) -> dict[str, Any]:
    """Means, deviations and differences of every condition that has a cell."""
    cells = found.cells
    rows = []
    for condition, seeds in cells.items():
        rows.append(
            {
                "condition": condition,
                "seeds": list(seeds),
                "metrics": {name: _level([seeds[seed][name] for seed in seeds], found.groups) for name in MEASURES},
                "to_none": _differences(seeds, cells.get(NONE, {}), found.groups) if condition != NONE else None,
                "to_shuffled": _differences(seeds, cells.get(condition + CONTROL, {}), found.groups),
            }
        )
    return {
        "judgment": config.judgment,
        "test": {"reference": publishable(config.test), "records": records, "groups": found.groups},
        "seeds": list(dict.fromkeys(config.seeds)),
        "resamples": config.resamples,
        "conditions": rows,
        "failed": found.failed,
    }


def _level(values: Sequence[Floats], groups: int) -> dict[str, Any]:
    own = [float(one[0]) for one in values]
    deviation = float(np.std(own, ddof=1)) if len(own) > 1 else None
    return {**asdict(over_seeds(np.stack(values), groups)), "deviation": deviation, "of_seeds": own}


def _differences(
    one: Mapping[int, Mapping[str, Floats]], other: Mapping[int, Mapping[str, Floats]], groups: int
) -> dict[str, Any] | None:
    """The first's measures less the other's, seed by seed on the same draws of groups; None without a common seed."""
    common = [seed for seed in one if seed in other]
    if not common:
        return None
    return {
        name: asdict(over_seeds(np.stack([one[seed][name] - other[seed][name] for seed in common]), groups))
        for name in MEASURES
    } | {"seeds": common}


def page_of(made: Mapping[str, Any]) -> str:
    """ablation.md: the table, what it says in sentences, and what failed."""
    test = made["test"]
    lines = [
        f"# Purchase intents in {made['judgment']}",
        "",
        f"Examined on {test['reference']}: {test['records']} records of {test['groups']} groups. Means over seeds ± "
        "their standard deviation; differences are paired by seed and record, with 95 % intervals "
        f"({made['resamples']} resamples of groups and seeds).",
        "",
        f"| {' | '.join(HEAD)} |",
        f"| --- |{' ---: |' * (len(HEAD) - 1)}",
        *(_row(row) for row in made["conditions"]),
        "",
        *(f"- {sentence}" for sentence in map(verdict, made["conditions"]) if sentence),
        *(f"- failed: {name}: {why}" for name, why in made["failed"].items()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _row(row: Mapping[str, Any]) -> str:
    levels = [
        f"{one['value']:.3f}" + (f" ± {one['deviation']:.3f}" if one["deviation"] is not None else "")
        for one in (row["metrics"][name] for name in MEASURES)
    ]
    apart = [_signed(row[key], name) for key, name in (("to_none", "accuracy"), ("to_none", "macro_f1"))]
    cells = [row["condition"], str(len(row["seeds"])), *levels, *apart, _signed(row["to_shuffled"], "accuracy")]
    return f"| {' | '.join(cells)} |"


def _signed(differences: Mapping[str, Any] | None, name: str) -> str:
    if differences is None or differences[name]["value"] is None:
        return ""
    one = differences[name]
    ends = f" [{one['low']:+.3f}, {one['high']:+.3f}]" if one["low"] is not None else ""
    return f"{one['value']:+.3f}{ends}"


def verdict(row: Mapping[str, Any]) -> str:
    """What the accuracy of a condition says, in a sentence; nothing of none and of controls."""
    if row["to_none"] is None or row["condition"].endswith(CONTROL):
        return ""
    said = f"{row['condition']}: {_word(row['to_none'])} against none ({_signed(row['to_none'], 'accuracy')})"
    if row["to_shuffled"] is None:
        return f"{said}; without its shuffled control, what that is owed to stays open."
    return f"{said}, {_word(row['to_shuffled'])} against shuffled intents ({_signed(row['to_shuffled'], 'accuracy')})."


def _word(differences: Mapping[str, Any]) -> str:
    low, high = differences["accuracy"]["low"], differences["accuracy"]["high"]
    if low is None:
        return "no interval"
    return "a gain" if low > 0 else "a loss" if high < 0 else "no difference shown"
