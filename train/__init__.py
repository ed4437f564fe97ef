"""How a judge is taught: the commands that ``accelerate launch`` starts, and what they share."""
