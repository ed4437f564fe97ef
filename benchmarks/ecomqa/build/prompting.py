"""The prompts of a construction of questions."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from benchmarks import prompting

SHIPPED = Path(str(files("benchmarks.ecomqa.build") / "prompts"))


class Prompts(prompting.Prompts):
    """The prompts in ``prompts/``, each of which knows ``language`` and ``until``; see benchmarks.prompting."""

    def __init__(self, language: str, until: str, own: str | None = None) -> None:
        super().__init__(SHIPPED, own, language=language, until=until)
