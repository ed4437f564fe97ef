"""Train a judge for step-product discrimination: `accelerate launch train/step_product.py [--config FILE]`."""

from recipes.step_product import STEP_PRODUCT
from train.run import main

if __name__ == "__main__":
    main(STEP_PRODUCT)
