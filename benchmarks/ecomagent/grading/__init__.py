"""Grading: what is computable is computed, with its reason and evidence; what only meaning decides is judged."""
