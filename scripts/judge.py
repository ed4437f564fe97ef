"""Judge rows of a file: `accelerate launch scripts/judge.py --adapter FOLDER --data rows.jsonl --out judged.jsonl`.

Also works under plain python, and in a pipe: `... | python scripts/judge.py --adapter FOLDER > judged.jsonl`.
`judge.py --help` lists the keys.
"""

from __future__ import annotations

import sys

from judging.bulk import judge_rows
from judging.config import BulkConfig
from models.runtime import one_of_many
from train.arguments import parse


def main() -> None:
    """Ends with status 1 for faults in settings or data, 2 for wrong usage, 130 where it is interrupted."""
    config = parse(BulkConfig, doc=str(__doc__).split("\n\n", 1)[0])
    with one_of_many():
        try:
            judge_rows(config)
        except KeyboardInterrupt:
            if config.out != "-":
                raise
            print("interrupted", file=sys.stderr)  # what went into a pipe cannot be gone on from
            sys.exit(130)


if __name__ == "__main__":
    main()
