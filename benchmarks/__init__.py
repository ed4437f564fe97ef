"""How a checkpoint is examined: a folder for each benchmark, and what they share: results and statistics."""
