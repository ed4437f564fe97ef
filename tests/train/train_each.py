"""Started by torch.distributed.run: trains each configuration of a folder in turn, in one group of processes."""

from __future__ import annotations

import sys
from pathlib import Path

from models.runtime import one_of_many
from recipes.script_verify import SCRIPT_VERIFY
from train.arguments import parse
from train.config import TrainConfig
from train.run import train

if __name__ == "__main__":
    with one_of_many():
        for path in sorted(Path(sys.argv[1]).glob("*.yaml")):
            train(SCRIPT_VERIFY, parse(TrainConfig, ["--config", str(path)]))
