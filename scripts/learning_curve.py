r"""Accuracy against training size: `python scripts/learning_curve.py step_product --sizes 200,800,3200 -- --config F`.

Teaches a judge on each number of records (what stands behind -- goes to the training command), examines it on the test
records, and writes curve.json and curve.html. What was stopped goes on; sizes and seeds can be added later.

examples:
  python scripts/learning_curve.py step_product --sizes 200,800,2000
  python scripts/learning_curve.py script_verify --sizes 100,400 --seeds 0,1,2 --train train.jsonl --test test.jsonl \
      -- --config configs/script_verify/smollm2-135m.yaml --optim.epochs 2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.ecomscript.curve_page import curve_page, curve_table
from benchmarks.ecomscript.learning_curve import PAGE, CurveConfig, draw_curve
from benchmarks.ecomscript.teaching import launch_words
from benchmarks.results import write_text
from models.endings import ends_in_words
from models.limits import SEEDS, Limits
from recipes.judgments import JUDGMENTS
from train.helping import described, whole, whole_list
from train.settings import settings_of


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("judgment", choices=list(JUDGMENTS), help="what is judged")
    parser.add_argument(
        "--sizes", type=whole_list(Limits(2)), required=True, help="training records, such as 200,800,3200"
    )
    parser.add_argument("--seeds", type=whole_list(SEEDS), default="0", help="such as 0,1,2")
    parser.add_argument("--train", default="sample:train", help="the training records")
    parser.add_argument("--test", default="sample:test", help="the records to be examined on")
    parser.add_argument("--out", type=Path, help="the curve's folder (default: results/learning_curve/JUDGMENT)")
    parser.add_argument(
        "--launch", type=launch_words, default=[], help="what accelerate launch is given, such as '--num_processes 4'"
    )
    parser.add_argument("--resamples", type=whole(Limits(1)), default=2000, help="bootstrap resamples")
    return parser


@ends_in_words(goes_on=True, also=(RuntimeError,))
def main(arguments: Sequence[str] | None = None) -> int:
    """0: drawn; 1: data, settings or a run do not allow it; 2: wrong usage; 130: interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    chosen, flags = parser().parse_args(given[:cut]), given[cut + 1 :]
    config = CurveConfig(
        chosen.judgment,
        chosen.sizes,
        chosen.out or Path("results/learning_curve") / chosen.judgment,
        chosen.seeds,
        chosen.train,
        chosen.test,
        flags,
        chosen.launch,
        chosen.resamples,
        settings_of(chosen.judgment, flags),
    )
    curve = draw_curve(config, Console(stderr=True, highlight=False, soft_wrap=True))
    write_text(config.out / PAGE, curve_page(curve))
    Console(highlight=False).print(curve_table(curve))
    print(config.out / PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
