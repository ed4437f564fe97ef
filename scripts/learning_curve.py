"""Accuracy against training size: `python scripts/learning_curve.py step_product --sizes 200,800,3200 -- --config F`.

Teaches a judge on each number of records (what stands behind -- goes to the training command), examines it on the test
records, and writes curve.json and curve.html. What was stopped goes on; sizes and seeds can be added later.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.ecomscript.curve_page import curve_page, curve_table
from benchmarks.ecomscript.learning_curve import PAGE, CurveConfig, draw_curve
from benchmarks.results import write_text
from recipes.judgments import JUDGMENTS


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def parser() -> argparse.ArgumentParser:
    about, more = (__doc__ or "").split("\n\n", 1)
    parser = argparse.ArgumentParser(description=about, epilog=more)
    parser.add_argument("judgment", choices=list(JUDGMENTS))
    parser.add_argument("--sizes", type=numbers, required=True, help="training records, such as 200,800,3200")
    parser.add_argument("--seeds", type=numbers, default="0", help="such as 0,1,2 (%(default)s)")
    parser.add_argument("--train", default="sample:train", help="the training records (%(default)s)")
    parser.add_argument("--test", default="sample:test", help="the records to be examined on (%(default)s)")
    parser.add_argument("--out", type=Path, help="the curve's folder (results/learning_curve/JUDGMENT)")
    parser.add_argument("--launch", default="", help="what accelerate launch is given, such as '--num_processes 4'")
    parser.add_argument("--resamples", type=int, default=2000, help="bootstrap resamples (%(default)s)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """0: drawn; 1: data, settings or a run do not allow it; 2: wrong usage; 130: interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    chosen = parser().parse_args(given[:cut])
    config = CurveConfig(
        chosen.judgment,
        chosen.sizes,
        chosen.out or Path("results/learning_curve") / chosen.judgment,
        chosen.seeds,
        chosen.train,
        chosen.test,
        given[cut + 1 :],
        shlex.split(chosen.launch),
        chosen.resamples,
    )
    try:
        curve = draw_curve(config, Console(stderr=True, highlight=False, soft_wrap=True))
    except (ValueError, OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    write_text(config.out / PAGE, curve_page(curve))
    Console(highlight=False).print(curve_table(curve))
    print(config.out / PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
