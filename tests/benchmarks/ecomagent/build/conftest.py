"""The shipped shop, and two tasks of each intent built from it, once a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ecomagent.build.config import EcomAgentBuildConfig
from benchmarks.ecomagent.build.run import build
from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.sample.build import sample_catalogue
from benchmarks.ecomagent.tasks import Task, read_tasks


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return Catalogue(sample_catalogue())


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "tasks"
    build(EcomAgentBuildConfig(tasks=2, out=str(out)))
    return out


@pytest.fixture(scope="session")
def tasks(built: Path) -> list[Task]:
    return read_tasks(built / "tasks.jsonl")
