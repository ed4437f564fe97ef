"""How a judge is taught: the commands that ``accelerate launch`` starts, and the trainer, batching and arguments they share."""
