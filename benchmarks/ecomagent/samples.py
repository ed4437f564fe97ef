"""The shop and the tasks that come with the toolkit, built on first use, and how references name them."""

from __future__ import annotations

import hashlib
import tempfile
from functools import cache
from pathlib import Path

from filelock import FileLock

from benchmarks.ecomagent import fields, wording
from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.sample.build import sample_catalogue
from models.packaged import cache_folder

SAMPLE = "sample"


def open_catalogue(reference: str) -> Catalogue:
    """The catalogue that a reference names: a file, or sample."""
    return Catalogue(sample_catalogue() if reference == SAMPLE else Path(reference))


def tasks_file(reference: str) -> Path:
    """The file of tasks that a reference names: a file, or sample (200 tasks over all eight intents).

    The sample lies in the cache folder; it is built there on first use, and anew when what makes it has changed.
    """
    if reference != SAMPLE:
        return Path(reference)
    path = cache_folder() / "ecomagent" / f"tasks-{_version()}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if not path.is_file():
            _build(path)
    return path


def _build(path: Path) -> None:
    from benchmarks.ecomagent.build.config import EcomAgentBuildConfig
    from benchmarks.ecomagent.build.run import TASKS, build

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        out = Path(folder) / "tasks"
        build(EcomAgentBuildConfig(out=str(out)))
        (out / TASKS).replace(path)


@cache
def _version() -> str:
    """Changes with the shop and with everything that makes tasks of it."""
    here = Path(__file__).parent
    made_by = [path for part in ("build", "grading") for path in sorted((here / part).iterdir())]
    sources = [path for path in made_by if path.suffix in (".py", ".yaml")]
    digest = hashlib.sha256(sample_catalogue().name.encode())
    for path in (*sources, Path(fields.__file__), Path(wording.__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
