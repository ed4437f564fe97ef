"""Fetch a packaged model into the user's cache, verify every byte of it, and print where it lies."""

from __future__ import annotations

import argparse
import sys

from models.checkpoint import PACKAGED, CheckpointError, fetch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"one of: {', '.join(PACKAGED)}")
    parser.add_argument("--force", action="store_true", help="make it anew even if the copy in the cache is whole")
    parser.add_argument("--list", action="store_true", help="say what the packaged models are")
    args = parser.parse_args()
    if args.list:
        for name, package in PACKAGED.items():
            print(f"{name}\t{package.requirement}\t{package.license}\t{package.about}")
        return
    if args.name is None:
        parser.error("give a NAME, or --list")
    try:
        print(fetch(args.name, force=args.force))
    except CheckpointError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
