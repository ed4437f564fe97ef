"""Compare how two tables order the same models: `python scripts/compare_ranks.py published results/ecomqa --column CC`.

A table is `published` (the main table of the ChineseEcomQA paper), a CSV file with a column `model`, or a folder of
results whose reports were written. Prints the shifts and correlations and writes the slope picture as one HTML file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.ecomqa.rank_page import ranks_page, signed
from benchmarks.ecomqa.ranks import RankComparison, compare_ranks, read_scores


def main() -> None:
    about, more = (__doc__ or "").split("\n\n", 1)
    parser = argparse.ArgumentParser(description=about, epilog=more)
    parser.add_argument("first", help="the table whose order comes first")
    parser.add_argument("second", help="the table it is compared with")
    parser.add_argument("--column", default="average", help="the score, in the first table and in the second")
    parser.add_argument("--second_column", help="the score in the second table, where it has another name there")
    parser.add_argument("--out", default="ranks.html", help="the HTML file")
    given = parser.parse_args()
    columns = (given.column, given.second_column or given.column)
    names = (given.first, given.second) if columns[0] == columns[1] else columns
    try:
        comparison = compare_ranks(read_scores(given.first, columns[0]), read_scores(given.second, columns[1]))
    except (ValueError, FileNotFoundError) as error:
        sys.exit(f"error: {error}")
    Path(given.out).write_text(ranks_page(comparison, names, " and ".join(dict.fromkeys(columns))), encoding="utf-8")
    Console(highlight=False).print(shown(comparison, names))
    print(given.out)


def shown(comparison: RankComparison, names: tuple[str, str]) -> Table:
    rho, tau = comparison.spearman, comparison.kendall
    caption = "no order in one of them" if rho is None else f"Spearman's rho {rho:.3f}, Kendall's tau-b {tau:.3f}"
    table = Table("", *names, "shift", title=f"{len(comparison.shifts)} models", caption=caption)
    for one in comparison.shifts:
        cells = (f"{one.first_rank} ({one.first:.1f})", f"{one.second_rank} ({one.second:.1f})")
        table.add_row(one.model, *cells, signed(one.shift))
    return table


if __name__ == "__main__":
    main()
