"""The shipped sample: goals, scripts and products written for this project, and the judgment sets derived from them."""
