"""Training and scoring on this machine's GPU, without any download: `python scripts/gpu_check.py --out gpu.json`."""

from __future__ import annotations

from benchmarks.speed.accelerator import AcceleratorConfig, check
from train.arguments import parse


def main() -> None:
    check(parse(AcceleratorConfig, doc=str(__doc__)))


if __name__ == "__main__":
    main()
