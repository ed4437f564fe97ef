"""What a judgment is: its record schema, rendering, label words and metrics. Plain Python, no torch."""
