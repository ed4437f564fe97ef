"""How fast judging and teaching are beside what people use: `make bench` for all, `--parts '[scoring]'` for a part."""

from __future__ import annotations

from benchmarks.speed.config import SpeedConfig
from benchmarks.speed.run import bench
from train.arguments import parse


def main() -> None:
    bench(parse(SpeedConfig, doc=str(__doc__)))


if __name__ == "__main__":
    main()
