"""How fast judging and teaching are beside what people use: `make bench` for all, `--parts '[scoring]'` for a part.

examples:
  python scripts/bench.py --parts '[scoring]'
  python scripts/bench.py --parts '[training, growth]' --out results/speed/training
"""

from __future__ import annotations

import signal

from benchmarks.speed.config import SpeedConfig
from benchmarks.speed.run import bench
from models.runtime import one_of_many
from train.arguments import parse


def main() -> None:
    """Ends with status 1 for faults in settings or files, 2 for wrong usage, 130 after Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started ends too
    config = parse(SpeedConfig, doc=str(__doc__))
    with one_of_many(goes_on=False):
        bench(config)


if __name__ == "__main__":
    main()
