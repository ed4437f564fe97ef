"""Training and scoring on this machine's GPU, without any download: `python scripts/gpu_check.py --out gpu.json`.

examples:
  python scripts/gpu_check.py --out gpu.json
"""

from __future__ import annotations

from benchmarks.speed.accelerator import AcceleratorConfig, check
from models.runtime import one_of_many
from train.arguments import parse


def main() -> None:
    """Ends with status 1 for faults in settings or files, 2 for wrong usage, 130 where it is interrupted."""
    config = parse(AcceleratorConfig, doc=str(__doc__))
    with one_of_many(goes_on=False):
        check(config)


if __name__ == "__main__":
    main()
