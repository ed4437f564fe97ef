"""Fetch a packaged model into the user's cache, verify every byte of it, and print where it lies.

examples:
  python scripts/fetch_checkpoint.py minilm
  python scripts/fetch_checkpoint.py --list
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from models.checkpoint import PACKAGED, fetch
from models.endings import ends_in_words
from train.helping import described


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"one of: {', '.join(PACKAGED)}")
    parser.add_argument("--force", action="store_true", help="make it anew even if the copy in the cache is whole")
    parser.add_argument("--list", action="store_true", help="say what the packaged models are")
    return parser


@ends_in_words()
def main(arguments: Sequence[str] | None = None) -> int:
    """0: it lies there; 1: it could not be fetched; 2: wrong usage."""
    args = parser().parse_args(arguments)
    if args.list:
        for name, package in PACKAGED.items():
            print(f"{name}\t{package.requirement}\t{package.license}\t{package.about}")
        return 0
    if args.name is None:
        parser().error("give a NAME, or --list")
    print(fetch(args.name, force=args.force))
    return 0


if __name__ == "__main__":
    sys.exit(main())
