"""The shop and the tasks that come with the toolkit, and how references name them.

The shop is built in the cache folder on first use. Its tasks lie in ``sample/tasks.jsonl.gz``: 200 of them, 25 of each
intent, as ``scripts/build.py ecomagent`` builds them (the zipped file has no name and no time in it: ``gzip -9n``).
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.sample.build import sample_catalogue

SAMPLE = "sample"
TASKS = Path(__file__).parent / "sample" / "tasks.jsonl.gz"


def open_catalogue(reference: str) -> Catalogue:
    """The catalogue that a reference names: a file, or sample."""
    return Catalogue(sample_catalogue() if reference == SAMPLE else Path(reference))


def tasks_file(reference: str) -> Path:
    """The file of tasks that a reference names: a file, or sample."""
    return TASKS if reference == SAMPLE else Path(reference)
