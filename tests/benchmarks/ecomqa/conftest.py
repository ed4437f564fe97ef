"""Questions with scripted models that answer and judge them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ecomqa_models import Scripted, answer, judge
from ecomqa_questions import rows, write

from benchmarks.ecomqa import prepare
from benchmarks.ecomqa.config import EcomQAConfig


@pytest.fixture
def cast(monkeypatch: pytest.MonkeyPatch) -> dict[str, Scripted]:
    """Models by reference; a test may change them."""
    models = {
        "m": Scripted("m", answer),
        "yes": Scripted("yes", judge("A")),
        "no": Scripted("no", judge("评分：B")),
        "none": Scripted("none", judge("C")),
        "odd": Scripted("odd", judge("?")),
        "also": Scripted("yes", judge("A")),
        "strange": Scripted("odd", judge("?")),
    }
    for reference in ("also", "strange"):  # of the name of others, at other servers
        models[reference].facts |= {"server": reference}

    def find(reference: str, *rest: Any) -> Any:
        return models[reference].found()

    monkeypatch.setattr(prepare, "find_generator", find)
    return models


@pytest.fixture
def config(tmp_path: Path) -> EcomQAConfig:
    data = write(tmp_path / "questions.jsonl", rows())
    return EcomQAConfig(data=data, checkpoint="m", out=str(tmp_path / "out"), resamples=50, threads=1)
