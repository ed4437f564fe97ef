"""A bench keeps what it has measured, and refuses before it measures what would be in vain."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tiny import tiny_checkpoint

from benchmarks.speed import environments, run, scoring
from benchmarks.speed.accelerator import AcceleratorConfig
from benchmarks.speed.config import SpeedConfig
from benchmarks.speed.environments import Environment, install
from benchmarks.speed.run import bench
from train.arguments import parse

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_checkpoint(folder / "llama", "llama")
    tiny_checkpoint(folder / "bert", "bert")
    return folder


@pytest.fixture
def config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SpeedConfig:
    monkeypatch.setattr(run, "machine", lambda threads: {"threads": threads})
    return SpeedConfig(checkpoint=str(folder / "llama"), encoder=str(folder / "bert"), threads=1)


def test_each_bench_has_a_folder_of_its_own(
    config: SpeedConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "PARTS", dict.fromkeys(run.PARTS, lambda *_: iter([["measured"]])))
    bench(config)
    [made] = Path("results/speed").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", made.name)
    assert str((made / "bench.json").absolute()) in capsys.readouterr().err
    before = (made / "bench.json").read_text()
    with pytest.raises(ValueError, match=f"{made.name} has the bench.json of another bench; give another --out"):
        bench(replace(config, out=str(made)))
    assert (made / "bench.json").read_text() == before
    assert run.begin("here") == tmp_path / "here"  # tools run in the repository's root


def test_what_a_part_has_measured_is_kept_when_the_rest_fails(
    config: SpeedConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(work: Any, *_: Any) -> dict[str, Any]:
        if work[1] == 5:
            raise ChildProcessError("ecomjudge exact ended with status 1")
        return {"shots": work[1], "failed": {}, "tools": {}}

    monkeypatch.setattr(run, "make_workload", lambda _, judgment, shots, __: (judgment, shots))
    monkeypatch.setattr(scoring, "compare", compare)
    monkeypatch.setattr(scoring, "table", lambda _: "")
    with pytest.raises(ChildProcessError, match="exact ended"):
        bench(replace(config, parts=("scoring",), peers=(), shots=(0, 1, 5), out=str(tmp_path / "out")))
    kept = json.loads((tmp_path / "out" / "bench.json").read_text())["scoring"]
    assert [found["shots"] for found in kept] == [0, 1]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"parts": ()}, "--parts is empty"),
        ({"judgments": ()}, "--judgments is empty"),
        ({"shots": ()}, "--shots is empty"),
        ({"questions": ()}, "--questions is empty"),
        ({"shots": (0, -1)}, "--shots: -1 given; give 0 or more"),
        ({"judgments": ("step_product", "step_products")}, "did you mean 'step_product'"),
        ({"questions": ("no.jsonl",)}, "no.jsonl"),
        ({"checkpoint": "bert"}, "bert is an encoder; give a decoder"),
        ({"encoder": "llama"}, "llama is none; give an encoder"),
    ],
)
def test_what_would_fail_later_is_refused_before_anything_is_there(
    config: SpeedConfig, folder: Path, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    for name in ("checkpoint", "encoder"):
        if name in change:
            change = {name: str(folder / change[name])}
    with pytest.raises((ValueError, OSError), match=re.escape(sentence)):
        bench(replace(config, **change, out=str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("config", "name"),
    [(SpeedConfig, name) for name in ("rounds", "records", "alone", "threads", "limit", "max_tokens")]
    + [(AcceleratorConfig, name) for name in ("own", "records", "batch", "updates")],
)
def test_none_of_something_is_refused_by_the_flags_name(
    config: type, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(config, [f"--{name}", "0"])
    assert f"{name}: 0 given; give 1 or more" in capsys.readouterr().err


def test_a_peer_that_cannot_be_installed_is_left_out_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECOMJUDGE_CACHE", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    monkeypatch.setitem(environments.PEERS, "vllm", Environment("vllm", (), "import no_such_module"))
    there, absent = install(["vllm"], QUIET)
    assert there == {} and "venv ended with status 1" in absent["vllm"]
    assert [one.name for one in scoring.contestants(1, there, 1)] == [one.name for one in scoring.ours(1)]


def test_a_peer_that_is_left_out_stands_among_those_that_failed(
    config: SpeedConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "compare", lambda *_: {"failed": {"lm-eval": "no kernel"}, "tools": {}})
    monkeypatch.setattr(scoring, "table", lambda _: "")
    found = run._compared(None, [], {"vllm": "no wheel"}, config, tmp_path, QUIET)  # type: ignore[arg-type]
    assert found["failed"] == {"lm-eval": "no kernel", "vllm": "no wheel"}
