"""Judge rows of a file: `accelerate launch scripts/judge.py --adapter FOLDER --data rows.jsonl --out judged.jsonl`.

Also works under plain python, and in a pipe: `... | python scripts/judge.py --adapter FOLDER > judged.jsonl`.
Given again, the same command goes on from where it was stopped.

examples:
  python scripts/judge.py --adapter runs/step_product/NAME/adapter --data rows.jsonl --out judged.jsonl
  python scripts/judge.py --adapter A --adapter B --adapter C --data plans.jsonl --out verdicts.jsonl
  accelerate launch --num_processes 4 scripts/judge.py --adapter A --data rows.parquet --out judged.parquet
"""

from __future__ import annotations

from judging.bulk import judge_rows
from judging.config import BulkConfig
from models.runtime import one_of_many
from train.arguments import parse


def main() -> None:
    """Ends with status 1 for faults in settings or data, 2 for wrong usage, 130 where it is interrupted."""
    config = parse(BulkConfig, doc=str(__doc__))
    with one_of_many(goes_on=config.out != "-"):  # what went into a pipe cannot be gone on from
        judge_rows(config)


if __name__ == "__main__":
    main()
