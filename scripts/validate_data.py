"""Check data files before they cost anything: ``python scripts/validate_data.py JUDGMENT FILE...``

Prints every fault as ``file:line: field: what is wrong; what to do``, and warns of groups that more than one of the
files have, which no two splits of a training run may share. FILE is a path (.jsonl, .jsonl.gz, .parquet),
``sample:train`` or a dataset of the hub, ``org/name[@revision][:split]``.

examples:
  python scripts/validate_data.py step_product train.jsonl validation.jsonl
  python scripts/validate_data.py script_verify --unlabelled rows.jsonl
"""

from __future__ import annotations

import argparse
import io
import signal
import sys
from collections.abc import Mapping, Sequence

from models.endings import ends_in_words
from recipes.faults import Fault
from recipes.intents.judgment import INTENTS
from recipes.judgments import JUDGMENTS, get_judgment
from recipes.reading import check, counted
from train.helping import described


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("judgment", metavar="JUDGMENT", help=", ".join([*JUDGMENTS, INTENTS.name]))
    parser.add_argument("files", metavar="FILE", nargs="+", help="checked one after the other")
    parser.add_argument("--unlabelled", action="store_true", help="labels may be missing or all the same")
    return parser


@ends_in_words()
def main(arguments: Sequence[str] | None = None) -> int:
    """0: no faults (warnings are allowed); 1: faults; 2: wrong usage."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack a character of a record
    chosen = parser().parse_args(arguments)
    try:
        judgment = INTENTS if chosen.judgment == INTENTS.name else get_judgment(chosen.judgment)
    except ValueError as error:
        parser().error(str(error))
    labelled = not chosen.unlabelled and judgment is not INTENTS  # an intent without a label is a right one
    totals = {"record": 0, "fault": 0, "warning": 0}
    groups: dict[str, set[str]] = {}  # of each file so far
    for file in chosen.files:
        records, faults, warnings = check(judgment, file, require_label=labelled)
        if labelled:
            found_groups = {record.group_key for record in records}
            warnings = [*warnings, *shared_groups(file, found_groups, groups)]
            groups[file] = found_groups
        for line in [*faults, *(f"warning: {warning}" for warning in warnings)]:
            print(line)
        for name, found in zip(totals, (records, faults, warnings), strict=True):
            totals[name] += len(found)
    print(", ".join(counted(number, name) for name, number in {"file": len(chosen.files), **totals}.items()))
    return 1 if totals["fault"] else 0


def shared_groups(file: str, groups: set[str], others: Mapping[str, set[str]]) -> list[Fault]:
    """A warning for each other file that has groups of this one."""
    return [
        Fault(
            file,
            None,
            "group",
            f"{counted(len(shared), 'group')} also in {other}, first {shared[0]!r}; no group may cross the splits of a "
            "training run: split by group, as scripts/import_data.py does",
        )
        for other, theirs in others.items()
        if (shared := sorted(groups & theirs))
    ]


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it as it ends any command
    sys.exit(main())
