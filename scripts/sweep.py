"""Run a W&B sweep file on this machine, without a server: `python scripts/sweep.py FILE --trials N`.

Trials are drawn by Optuna (grid, random, TPE for bayes, Hyperband for early_terminate) and trained one after another,
each with the file's own command, an offline W&B run and its metrics.jsonl. Ctrl-C or a kill loses nothing: the same
command goes on, the interrupted trial from its last checkpoint. The same file works with `wandb sweep` and
`wandb agent`.

examples:
  python scripts/sweep.py configs/sweeps/grid.yaml
  python scripts/sweep.py configs/sweeps/bayes.yaml --trials 20 --out runs/sweeps/second
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from models.endings import ends_in_words
from models.limits import SEEDS, Limits
from train.helping import described, whole

OUT = Path("runs") / "sweeps"


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("file", metavar="FILE", type=Path, help="a W&B sweep file; configs/sweeps/ has some")
    told = "stop when N have ended (default: the file's run_cap, or a whole grid)"
    parser.add_argument("--trials", type=whole(Limits(1)), metavar="N", help=told)
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"what is kept (default: {OUT}/<name of the file>)")
    parser.add_argument("--seed", type=whole(SEEDS), default=0, help="of what is drawn")
    parser.add_argument("--retry_failed", action="store_true", help="give trials that failed earlier another try")
    return parser


@ends_in_words(goes_on=True)
def main(arguments: Sequence[str] | None = None) -> int:
    """0: swept; 1: it could not be done; 2: wrong usage; 130: interrupted."""
    chosen = parser().parse_args(arguments)
    from train.arguments import leaf_types  # torch takes seconds to import, which --help need not wait for
    from train.config import TrainConfig
    from train.sweep.run import Sweep, run_sweep
    from train.sweep.sweep_file import read_sweep

    stop = threading.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: stop.set())
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    file = read_sweep(chosen.file, leaf_types(TrainConfig))
    sweep = Sweep(file, chosen.out or OUT / chosen.file.stem, chosen.seed, stop.is_set)
    run_sweep(sweep, chosen.trials, console, chosen.retry_failed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
