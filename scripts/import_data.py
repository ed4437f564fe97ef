"""Turn a real public file into a judgment's data: ``python scripts/import_data.py SOURCE FILE --out DIR``

Sources: piqa and coscript (script_verify), intentionqa and esci (step_product). Writes train.jsonl, validation.jsonl
and test.jsonl, none of which shares a goal (or, for step_product, a product) with another.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from recipes.importing.files import Options
from recipes.importing.pipeline import SOURCES, import_data


def shares(text: str) -> dict[str, float]:
    """ "0.7,0.1,0.2" as shares of train, validation and test."""
    return dict(zip(("train", "validation", "test"), map(float, text.split(",")), strict=True))


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SOURCE", choices=SOURCES, help=", ".join(SOURCES))
    parser.add_argument("file", metavar="FILE", type=Path, help=".jsonl, .jsonl.gz, .parquet or .csv")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shares", type=shares, default="0.7,0.1,0.2", help="train,validation,test (%(default)s)")
    parser.add_argument("--overwrite", action="store_true", help="replace the files in DIR")
    parser.add_argument(
        "--negatives", type=int, default=1, help="intentionqa: wrong products per right one (%(default)s)"
    )
    parser.add_argument("--yes", default="E", help="esci: grades that count as yes, such as E,S (%(default)s)")
    parser.add_argument("--locale", default="us", help="esci: us, es, jp or all (%(default)s)")
    parser.add_argument("--products", type=Path, help="esci: the products file, where FILE holds only the examples")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """0: written; 1: the data do not allow it; 2: wrong usage."""
    chosen = parser().parse_args(arguments)
    options = Options(
        negatives=chosen.negatives,
        yes=tuple(grade.strip().upper() for grade in chosen.yes.split(",")),
        locale=None if chosen.locale == "all" else chosen.locale,
        products=chosen.products,
    )
    try:
        done = import_data(
            chosen.source, chosen.file, chosen.out, options, chosen.shares, chosen.seed, chosen.overwrite
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{chosen.out}: cannot be written ({error.strerror}); nothing was changed there", file=sys.stderr)
        return 1
    print(done.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
