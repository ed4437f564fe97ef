"""Check data files before they cost anything: ``python scripts/validate_data.py JUDGMENT FILE...``

Prints every fault as ``file:line: field: what is wrong; what to do``. FILE is a path (.jsonl, .jsonl.gz, .parquet),
``sample:train`` or a dataset of the hub, ``org/name[@revision][:split]``.
"""

from __future__ import annotations

import argparse
import io
import signal
import sys
from collections.abc import Sequence

from recipes.judgments import JUDGMENTS, get_judgment
from recipes.reading import check, counted


def main(arguments: Sequence[str] | None = None) -> int:
    """0: no faults (warnings are allowed); 1: faults; 2: wrong usage."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack a character of a record
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("judgment", metavar="JUDGMENT", help=", ".join(JUDGMENTS))
    parser.add_argument("files", metavar="FILE", nargs="+")
    parser.add_argument("--unlabelled", action="store_true", help="labels may be missing or all the same")
    chosen = parser.parse_args(arguments)
    try:
        judgment = get_judgment(chosen.judgment)
    except ValueError as error:
        parser.error(str(error))
    totals = {"record": 0, "fault": 0, "warning": 0}
    for file in chosen.files:
        records, faults, warnings = check(judgment, file, require_label=not chosen.unlabelled)
        for line in [*faults, *(f"warning: {warning}" for warning in warnings)]:
            print(line)
        for name, found in zip(totals, (records, faults, warnings), strict=True):
            totals[name] += len(found)
    print(", ".join(counted(number, name) for name, number in {"file": len(chosen.files), **totals}.items()))
    return 1 if totals["fault"] else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it as it ends any command
    sys.exit(main())
