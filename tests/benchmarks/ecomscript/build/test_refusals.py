"""Settings out of range, damaged manifests and wrong names end in words, before anything is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.ecomscript.build import run
from benchmarks.ecomscript.build.config import EcomScriptBuildConfig
from benchmarks.ecomscript.build.cost import CostConfig, project
from benchmarks.ecomscript.build.index import index_words
from benchmarks.ecomscript.build.pilot import PilotConfig
from benchmarks.ecomscript.build.run import STAGES, build
from benchmarks.ecomscript.build.speed import AlignSpeedConfig
from benchmarks.ecomscript.build.stages import read_manifest
from train.arguments import parse

BUILD = ["--metadata", "m.jsonl", "--reviews", "r.jsonl", "--generator", "http://localhost:1/v1#writer"]


@pytest.mark.parametrize(
    "flag",
    [
        *("--chunk=0", "--threads=0", "--seed=-1", "--concurrency=0", "--rows=0", "--steps=1", "--keywords=0"),
        *("--intents_per_product=0", "--temperature=-1", "--max_tokens=0", "--review.limit=0"),
        *("--align.probes=0", "--align.products=0", "--align.candidates=0", "--align.threshold=nan"),
        *("--annotation.items=0", "--annotation.shown=0", "--annotation.votes=0", "--annotation.train=2"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_its_name(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(EcomScriptBuildConfig, [*BUILD, flag], flag, capsys)


@pytest.mark.parametrize(
    ("config", "given", "flag"),
    [
        (CostConfig, ["--built", "b"], "--products=-5"),
        (PilotConfig, [], "--resamples=0"),
        (AlignSpeedConfig, [], "--queries=0"),
    ],
)
def test_the_tools_beside_refuse_likewise(
    config: type[Any], given: list[str], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(config, [*given, flag], flag, capsys)


def refused(config: type[Any], given: list[str], flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(config, given)
    assert ended.value.code == 2
    assert flag.partition("=")[0].removeprefix("--") in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", '{"identity": {', "[]", '{"a": 1}', '{"files": {}, "a": 1}'])
def test_a_damaged_manifest_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    for stage in ("ingest", "goals"):
        (tmp_path / stage).mkdir()
        (tmp_path / stage / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r"goals.manifest\.json is damaged; give --redo goals"):
        read_manifest(tmp_path / "goals")
    with pytest.raises(ValueError, match="--redo ingest"):
        project(CostConfig(str(tmp_path)))


def test_a_word_index_that_cannot_be_written_ends_in_words(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"words\.sqlite: the full-text index cannot be written"):
        index_words([], tmp_path / "absent" / "words.sqlite")  # type: ignore[arg-type]


@pytest.mark.parametrize(("redo", "metadata"), [("goals", "m.jsonl"), ("ingest", "/absent.jsonl")])
def test_what_is_to_be_redone_stays_where_a_name_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redo: Any, metadata: str
) -> None:
    def unknown(*_: Any) -> None:
        raise ValueError("no such generator")

    monkeypatch.setattr(run, "find_generator", unknown)
    for stage in STAGES:
        (tmp_path / stage).mkdir()
    config = EcomScriptBuildConfig([metadata], [metadata], "typo", redo=redo, threads=1, out=str(tmp_path))
    with pytest.raises((ValueError, OSError)):
        build(config)
    assert all((tmp_path / stage).is_dir() for stage in STAGES)
