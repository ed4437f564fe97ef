"""Does purchase-intent knowledge help a judge? `python scripts/ablate.py step_product -- --intents.data sample:train`

Teaches and examines a judge for every condition and seed (what stands behind -- goes to the training command) and
writes ablation.json and ablation.md: means, deviations, paired differences to none and to shuffled intents. What was
stopped goes on, what failed is told of and tried again by the same command; conditions and seeds can be added later.

examples:
  python scripts/ablate.py step_product -- --intents.data sample:train
  python scripts/ablate.py step_product --conditions none,mixed --seeds 0,1 -- --intents.data intents.jsonl
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.ecomscript.ablation import CONDITIONS, PAGE, AblationConfig, ablate, conditions_of, page_of
from benchmarks.ecomscript.teaching import launch_words
from models.endings import ends_in_words
from models.limits import SEEDS, Limits
from recipes.judgments import JUDGMENTS
from train.helping import described, whole, whole_list
from train.settings import settings_of


def words(text: str) -> list[str]:
    return text.split(",")


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("judgment", choices=list(JUDGMENTS), help="what is judged")
    told = f"what to compare, of {', '.join(CONDITIONS)} (default: all that the judgment allows)"
    parser.add_argument("--conditions", type=words, help=told)
    parser.add_argument(
        "--seeds", type=whole_list(SEEDS), default="0,1,2,3,4", help="each teaches a judge of every condition"
    )
    parser.add_argument("--test", default="sample:test", help="the records to be examined on")
    parser.add_argument("--out", type=Path, help="the ablation's folder (default: results/ablation/JUDGMENT)")
    parser.add_argument(
        "--launch", type=launch_words, default=[], help="what accelerate launch is given, such as '--num_processes 4'"
    )
    parser.add_argument("--resamples", type=whole(Limits(1)), default=2000, help="bootstrap resamples")
    return parser


@ends_in_words(goes_on=True)
def main(arguments: Sequence[str] | None = None) -> int:
    """0: all cells are there; 1: some failed, or data or settings do not allow it; 2: wrong usage; 130: interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    chosen, flags = parser().parse_args(given[:cut]), given[cut + 1 :]
    config = AblationConfig(
        chosen.judgment,
        chosen.out or Path("results/ablation") / chosen.judgment,
        chosen.conditions or conditions_of(chosen.judgment),
        chosen.seeds,
        chosen.test,
        flags,
        chosen.launch,
        chosen.resamples,
        settings_of(chosen.judgment, flags),
    )
    made = ablate(config, Console(stderr=True, highlight=False, soft_wrap=True))
    print(page_of(made))
    print(config.out / PAGE)
    return 1 if made["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
