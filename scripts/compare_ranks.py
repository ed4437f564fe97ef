"""Compare how two tables order the same models: `python scripts/compare_ranks.py published results/ecomqa --column CC`.

A table is `published` (the main table of the ChineseEcomQA paper), a CSV file with a column `model`, or a folder of
results whose reports were written. Averages are worked out anew, over the sub-concepts that all shared models have in
both. Prints the shifts and correlations and writes the slope picture as one HTML file, the figures as JSON beside it.

examples:
  python scripts/compare_ranks.py published results/ecomqa
  python scripts/compare_ranks.py published my_table.csv --column CC --second_column concepts --out ranks.html
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.ecomqa.rank_page import ranks_page, signed
from benchmarks.ecomqa.ranks import AVERAGE, RankComparison, compare_tables, read_scores
from benchmarks.results import to_json, write_text
from models.endings import ends_in_words
from train.helping import described


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("first", help="the table whose order comes first")
    parser.add_argument("second", help="the table it is compared with")
    parser.add_argument("--column", default=AVERAGE, help="the score, in the first table and in the second")
    parser.add_argument("--second_column", help="the score in the second table, where it has another name there")
    parser.add_argument("--out", type=Path, default=Path("ranks.html"), help="the HTML file")
    return parser


@ends_in_words()
def main(arguments: Sequence[str] | None = None) -> int:
    """0: compared; 1: the tables do not allow it; 2: wrong usage."""
    given = parser().parse_args(arguments)
    columns = (given.column, given.second_column or given.column)
    names = (given.first, given.second) if columns[0] == columns[1] else columns
    tables = read_scores(given.first, columns[0]), read_scores(given.second, columns[1])
    comparison = compare_tables(*tables, columns)
    measures = comparison.measures(columns)
    write_text(given.out, ranks_page(comparison, names, measures))
    found = {"tables": names, "columns": columns, "measures": measures, **asdict(comparison)}
    write_text(given.out.with_suffix(".json"), to_json(found))
    Console(highlight=False, markup=False, emoji=False).print(shown(comparison, names, measures))
    print(given.out)
    return 0


def shown(comparison: RankComparison, names: tuple[str, str], measures: str) -> Table:
    rho, tau = comparison.spearman, comparison.kendall
    caption = "no order in one of them" if rho is None else f"Spearman's rho {rho:.3f}, Kendall's tau-b {tau:.3f}"
    if comparison.alone:
        caption += f"; in one table alone, and left out: {', '.join(comparison.alone)}"
    table = Table("", *names, "shift", title=f"{len(comparison.shifts)} models, {measures}", caption=caption)
    for one in comparison.shifts:
        cells = (f"{one.first_rank} ({one.first:.1f})", f"{one.second_rank} ({one.second:.1f})")
        table.add_row(one.model, *cells, signed(one.shift))
    return table


if __name__ == "__main__":
    sys.exit(main())
