"""Train a judge for script verification: `accelerate launch train/script_verify.py [--config FILE]`."""

from recipes.script_verify import SCRIPT_VERIFY
from train.run import main

if __name__ == "__main__":
    main(SCRIPT_VERIFY)
