"""How fast judging and teaching are, beside what people use today."""
