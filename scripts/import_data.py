"""Turn a real public file into a judgment's data: ``python scripts/import_data.py SOURCE FILE --out DIR``

Sources: piqa and coscript (script_verify), intentionqa and esci (step_product). Writes train.jsonl, validation.jsonl
and test.jsonl, none of which shares a goal (or, for step_product, a product) with another.

examples:
  python scripts/import_data.py piqa piqa.jsonl --out data/piqa
  python scripts/import_data.py esci examples.parquet --products products.parquet --yes E,S --out data/esci
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from models.endings import ends_in_words
from recipes.importing.files import Options
from recipes.importing.pipeline import SOURCES, import_data
from train.helping import described


def shares(text: str) -> dict[str, float]:
    """ "0.7,0.1,0.2" as shares of train, validation and test."""
    return dict(zip(("train", "validation", "test"), map(float, text.split(",")), strict=True))


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("source", metavar="SOURCE", choices=SOURCES, help=", ".join(SOURCES))
    parser.add_argument("file", metavar="FILE", type=Path, help=".jsonl, .jsonl.gz, .parquet or .csv")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder to write")
    parser.add_argument("--seed", type=int, default=0, help="of the split")
    parser.add_argument("--shares", type=shares, default="0.7,0.1,0.2", help="train,validation,test")
    parser.add_argument("--overwrite", action="store_true", help="replace the files in DIR")
    parser.add_argument("--negatives", type=int, default=1, help="intentionqa: wrong products per right one")
    parser.add_argument("--yes", default="E", help="esci: grades that count as yes, such as E,S")
    parser.add_argument("--locale", default="us", help="esci: us, es, jp or all")
    parser.add_argument("--products", type=Path, help="esci: the products file, where FILE holds only the examples")
    return parser


@ends_in_words()
def main(arguments: Sequence[str] | None = None) -> int:
    """0: written; 1: the data do not allow it; 2: wrong usage."""
    chosen = parser().parse_args(arguments)
    options = Options(
        negatives=chosen.negatives,
        yes=tuple(grade.strip().upper() for grade in chosen.yes.split(",")),
        locale=None if chosen.locale == "all" else chosen.locale,
        products=chosen.products,
    )
    done = import_data(chosen.source, chosen.file, chosen.out, options, chosen.shares, chosen.seed, chosen.overwrite)
    print(done.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
