"""Moved: see recipes.intervals."""

from recipes.intervals import LEVEL, Interval, bootstrap, ratio, resample_groups

__all__ = ["LEVEL", "Interval", "bootstrap", "ratio", "resample_groups"]
