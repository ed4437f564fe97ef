"""Catalogues and reviews in the form of Amazon Reviews 2023: its files line by line, and what a line says."""
