"""Compare two evaluations over the same records: `python scripts/compare.py RESULTS_A RESULTS_B`.

Prints the differences (the second's less the first's) of accuracy, macro-F1 and AUC with paired bootstrap intervals,
McNemar's test, and accuracy in slices; writes comparison.html with the records on which the two differ, and
comparison.json. Runs over different data are refused.

examples:
  python scripts/compare.py results/ecomscript/step_product/one results/ecomscript/step_product/other
  python scripts/compare.py results/one results/other --data test.jsonl --out one_and_other.html
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.ecomscript.comparing import compare_runs
from benchmarks.ecomscript.comparison_page import as_json, as_page, as_table
from benchmarks.ecomscript.finished import read_run
from benchmarks.results import IDENTITY, RESULTS, to_json, write_text
from models.endings import ends_in_words
from models.limits import SEEDS, Limits
from train.helping import described, whole


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("first", type=Path, metavar="A", help="the folder of an evaluation (scripts/evaluate.py)")
    parser.add_argument("second", type=Path, metavar="B", help="the folder of another one over the same records")
    parser.add_argument("--data", help="the records, where they lie elsewhere than the runs say")
    parser.add_argument("--resamples", type=whole(Limits(1)), default=2000, help="bootstrap resamples")
    parser.add_argument("--seed", type=whole(SEEDS), default=0, help="draws them")
    parser.add_argument("--out", type=Path, default=Path("comparison.html"), help="the HTML file")
    return parser


def figures_beside(page: Path) -> Path:
    """Where the figures go. Raises ValueError where the page, or an evaluation, would be written over."""
    figures = page.with_suffix(".json")
    if figures.name in (page.name, RESULTS, IDENTITY):
        raise ValueError(f"--out {page}: its figures would be {figures}; give another name that ends in .html")
    return figures


@ends_in_words()
def main(arguments: Sequence[str] | None = None) -> int:
    """0: compared; 1: the runs do not allow it; 2: wrong usage."""
    given = parser().parse_args(arguments)
    figures = figures_beside(given.out)
    runs = read_run(given.first), read_run(given.second)
    comparison = compare_runs(*runs, given.data, given.resamples, given.seed)
    write_text(given.out, as_page(comparison))
    write_text(figures, to_json(as_json(comparison)))
    Console(highlight=False).print(as_table(comparison))
    print(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
