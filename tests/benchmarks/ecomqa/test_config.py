"""Settings that cannot have an effect are refused before anything is read."""

from __future__ import annotations

import pytest

from benchmarks.ecomqa.config import EcomQAConfig
from train.arguments import parse


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--rag.method", "dense"], "rag.method: dense given, but nothing is retrieved without rag.corpus; give it"),
        (["--rag.passages", "3"], "rag.passages: 3 given"),
        (["--rag.encoder", "x"], "rag.encoder: x given"),
        (["--confidence.bins", "5"], "confidence.bins: 5 given, but nobody is asked for a confidence"),
        (["--grading.guided", "true"], "grading.guided: True given, but no model votes; name one in --judges"),
        (["--grading.panel", "open"], "grading.panel: open given"),
        (["--judges", "rules,", "--grading.prompts", "standard"], "grading.prompts: standard given"),
    ],
)
def test_settings_without_effect_are_refused(flags: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(EcomQAConfig, flags)
    assert ended.value.code == 2 and told in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--rag.corpus", "sample", "--rag.method", "both"],
        ["--rag.method", "bm25"],
        ["--confidence.ask", "true", "--confidence.bins", "5"],
        ["--judges", "rules,m", "--grading.panel", "open"],
        ["--grading.split", "not_attempted"],  # what rules alone cannot read gets this grade
    ],
)
def test_settings_with_effect_pass(flags: list[str]) -> None:
    assert isinstance(parse(EcomQAConfig, flags), EcomQAConfig)
