"""Train a judge for holistic verification: `accelerate launch train/holistic_verify.py [--config FILE]`."""

from recipes.holistic_verify import HOLISTIC_VERIFY
from train.run import main

if __name__ == "__main__":
    main(HOLISTIC_VERIFY)
