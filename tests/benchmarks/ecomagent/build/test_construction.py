"""The construction as a whole: the same bytes whatever process builds, after kills and spoilt files too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ecomagent.build.assemble import Assembler, refused
from benchmarks.ecomagent.build.config import EcomAgentBuildConfig
from benchmarks.ecomagent.build.intents import INTENTS
from benchmarks.ecomagent.build.run import build
from benchmarks.ecomagent.tasks import INTENTS as INTENT_NAMES
from benchmarks.ecomagent.tasks import Task

ROOT = Path(__file__).resolve().parents[4]


def test_all_intents_are_built_and_every_requirement_has_one_source(tasks: list[Task]) -> None:
    assert Counter(task.intent_category for task in tasks) == dict.fromkeys(INTENT_NAMES, 2)
    assert len({task.target_id for task in tasks}) == len(tasks)
    for task in tasks:
        fields = [item.field for item in task.rubrics if item.field != "review"]
        assert len(fields) == len(set(fields))
        assert all(item.expected_value for item in task.rubrics if item.type == "negative_attribute")
        assert len(task.implicit_rubric_ids) == INTENTS[task.intent_category].implicit
        assert (task.sample_status, task.judge_passed) == ("ok", None)


def run(script: str, **environment: str) -> None:
    everything = {**os.environ, **environment}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=everything, check=True, capture_output=True)


def test_another_process_with_another_hash_seed_builds_the_same_bytes(built: Path, tmp_path: Path) -> None:
    script = (
        "from benchmarks.ecomagent.build.config import EcomAgentBuildConfig as C;"
        "from benchmarks.ecomagent.build.run import build;"
        f"build(C(tasks=2, out={str(tmp_path / 'again')!r}))"
    )
    run(script, PYTHONHASHSEED="4321", TZ="Asia/Tokyo")
    assert (tmp_path / "again" / "tasks.jsonl").read_bytes() == (built / "tasks.jsonl").read_bytes()


def test_another_seed_builds_others(built: Path, tmp_path: Path) -> None:
    build(EcomAgentBuildConfig(tasks=2, seed=43, intents=["product_search"], out=str(tmp_path / "other")))
    assert (tmp_path / "other" / "tasks.jsonl").read_bytes() not in (built / "tasks.jsonl").read_bytes()


class Killed(Exception):
    pass


@pytest.mark.parametrize("cut", [0, 5])
def test_a_killed_construction_goes_on_to_the_same_bytes(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    config = EcomAgentBuildConfig(tasks=2, out=str(tmp_path / "killed"))
    whole, seen = Assembler.make, Counter[str]()

    def make(self: Assembler, *arguments: Any) -> Any:
        seen["made"] += 1
        if seen["made"] == 12:
            raise Killed
        return whole(self, *arguments)

    monkeypatch.setattr(Assembler, "make", make)
    with pytest.raises(Killed):
        build(config)
    progress = tmp_path / "killed" / "progress.jsonl"
    progress.write_bytes(progress.read_bytes()[: -cut or None])  # the last line may be cut
    build(config)
    assert (tmp_path / "killed" / "tasks.jsonl").read_bytes() == (built / "tasks.jsonl").read_bytes()
    assert not progress.exists()
    made = seen["made"]
    build(config)  # finished: nothing is made again
    assert seen["made"] == made
    with pytest.raises(ValueError, match=r"holds another construction: settings.seed is 42 there and 7 here"):
        build(replace(config, seed=7))


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_finished_construction_of_which_a_file_was_lost_or_cut_is_built_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = EcomAgentBuildConfig(tasks=1, intents=["product_search"], out=str(tmp_path / "out"))
    build(config)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for name in ("tasks.jsonl", "failed.jsonl", "build.json"):
        for harm in (Path.unlink, half):
            harm(tmp_path / "out" / name)
            build(config)
            assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    capsys.readouterr()
    assert build(config) == json.loads(before["build.json"])
    assert "is finished" in capsys.readouterr().err


def test_a_line_of_the_progress_that_is_spoilt_is_built_again(built: Path, tmp_path: Path) -> None:
    config = EcomAgentBuildConfig(tasks=1, intents=["product_search"], out=str(tmp_path / "out"))
    build(config)
    task = (tmp_path / "out" / "tasks.jsonl").read_bytes()
    (tmp_path / "out" / "build.json").unlink()
    (tmp_path / "out" / "progress.jsonl").write_text('{"dropped": null, "task": {"id": 1}}\nnothing\n')
    build(config)
    assert (tmp_path / "out" / "tasks.jsonl").read_bytes() == task


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    config = EcomAgentBuildConfig(tasks=1, intents=["product_search"], out=str(tmp_path / "out"))
    build(config)
    (tmp_path / "out" / "build.json").unlink()
    (tmp_path / "out" / "progress.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: .*progress\.jsonl"):
        build(config)


def test_an_unknown_intent_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="intents: shoplifting is no intent; there are product_search"):
        build(EcomAgentBuildConfig(intents=["shoplifting"], out=str(tmp_path / "x")))


def test_an_intent_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="intents: product_search more than once; give each once, and more --tasks"):
        build(EcomAgentBuildConfig(intents=["product_search"] * 2, out=str(tmp_path / "x")))


def test_a_refused_task_says_by_whom(tasks: Sequence[Task]) -> None:
    by_code, by_judge = refused(tasks[0], ["a"]), refused(tasks[0], ["b"], by_judge=True)
    assert (by_code.validation_passed, by_code.validation_issues) == (False, ("a",))
    assert (by_judge.judge_passed, by_judge.judge_issues) == (False, ("b",))
