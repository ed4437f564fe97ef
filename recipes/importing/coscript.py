"""CoScript (Yuan et al. 2023): goals with ordered scripts, corrected by people -> ``script_verify``.

The scripts are unlabelled: each is taken as a positive, and each gets one negative that is made from it. Labels are
therefore CONSTRUCTED, and a score on them says how well a judge tells these constructions apart, not how well it agrees
with people. The kinds of negatives, drawn at random among those that a script allows:

- ``goal_swapped``: the script of another goal of the same category;
- ``steps_foreign``: a third of the steps (at least one) replaced by steps of such a script;
- ``order_reversed``: the steps in reverse order, from four steps on (now and then still feasible: a wrong label).

Negatives are made within a split, after splitting, so that no script stands in two splits. A group is an abstract goal
("Make Banana Ice Cream") with its specific ones ("... with Chocolate Chips").
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from recipes.importing.files import Options, Skipped, clean, entries, group_name, make, source_rows
from recipes.script_verify import ScriptRecord

TRIES = 30
NUMBER = re.compile(r"^\s*[0-9]{1,2}[.)](?:\s+|(?=[^\W\d]))")


def read(path: Path, options: Options, skipped: Skipped) -> Iterator[ScriptRecord]:
    """A record with label 1 for each script; takes no options."""
    for row in source_rows(path, ("id", "Abstract Goal", "Specific Goal", "Script", "Category")):
        value = row.value
        steps = [clean(NUMBER.sub("", step)) if isinstance(step, str) else None for step in entries(value["Script"])]
        fields = {
            "id": f"coscript-{value['id']}",
            "goal": clean(value["Specific Goal"]),
            "script": [step for step in steps if step],
            "label": 1,
            "group": group_name(clean(value["Abstract Goal"]) or ""),
            "meta": {"kind": "as_published", "category": value["Category"]},
        }
        record = make(ScriptRecord, skipped, fields)
        if record is not None:
            yield record


def with_negatives(records: Sequence[ScriptRecord], rng: random.Random, options: Options) -> list[ScriptRecord]:
    """The records of one split, each followed by its negative; a short script without another goal gets none."""
    categories: defaultdict[str, list[ScriptRecord]] = defaultdict(list)
    for record in records:
        categories[_category(record)].append(record)
    made: list[ScriptRecord] = []
    for record in records:
        donor = _other_goal(record, categories[_category(record)], rng) or _other_goal(record, records, rng)
        negative = _negative(record, donor, rng)
        made += [record] if negative is None else [record, negative]
    return made


def _category(record: ScriptRecord) -> str:
    return str((record.meta or {}).get("category"))


def _other_goal(record: ScriptRecord, pool: Sequence[ScriptRecord], rng: random.Random) -> ScriptRecord | None:
    """A record of another group, drawn again where it is of the same; None where that never succeeds."""
    drawn = (rng.choice(pool) for _ in range(TRIES))
    return next((other for other in drawn if other.group != record.group), None)


def _negative(record: ScriptRecord, donor: ScriptRecord | None, rng: random.Random) -> ScriptRecord | None:
    kinds = ["goal_swapped", "steps_foreign"] if donor else []
    reverse = record.script[::-1]
    if len(record.script) >= 4 and reverse != record.script:
        kinds.append("order_reversed")
    if not kinds:
        return None
    kind = rng.choice(kinds)
    script = reverse
    if donor is not None and kind != "order_reversed":
        script = donor.script if kind == "goal_swapped" else _mixed(record.script, donor.script, rng)
    if script == record.script:
        return None
    meta = {
        "kind": kind,
        "category": _category(record),
        "from": donor.id if donor and kind != "order_reversed" else record.id,
    }
    return record.model_copy(update={"id": f"{record.id}-no", "script": script, "label": 0, "meta": meta})


def _mixed(script: tuple[str, ...], donor: tuple[str, ...], rng: random.Random) -> tuple[str, ...]:
    count = min(max(1, len(script) // 3), len(donor))
    steps = list(script)
    for place, foreign in zip(sorted(rng.sample(range(len(script)), count)), rng.sample(donor, count), strict=True):
        steps[place] = foreign
    return tuple(steps)
