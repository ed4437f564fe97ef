"""Answers beside plain generate: the same texts from both, medians by hand, and questions that fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ecomqa_questions import rows, write
from tiny import tiny_checkpoint

from benchmarks.speed import generation
from benchmarks.speed.config import SpeedConfig
from benchmarks.speed.generation import PLAIN, Turn, read_chats, summary, table
from benchmarks.speed.run import bench


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("generation") / "llama"
    return str(tiny_checkpoint(folder, "llama", chat=True, max_position_embeddings=1024))


def test_every_tool_has_its_turns_and_float32_writes_what_generate_writes(
    checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "questions.jsonl", rows())
    order: list[str] = []
    for name, writer in list(generation.WRITERS.items()):
        monkeypatch.setitem(generation.WRITERS, name, lambda *a, _n=name, _w=writer: (order.append(_n), _w(*a))[1])
    config = SpeedConfig(
        parts=("generation",), checkpoint=checkpoint, questions=(data,), max_tokens=6, rounds=2, threads=1,
        out=str(tmp_path / "speed"),
    )  # fmt: skip
    bench(config)
    found = json.loads((tmp_path / "speed" / "bench.json").read_text(encoding="utf-8"))["generation"][0]
    assert order == [*generation.WRITERS] * 2
    assert found["questions"] == "questions.jsonl" and found["answers"] == 12 and found["left_out"] == 0
    assert found["tools"]["ecomjudge float32"]["same"] == found["tools"][PLAIN]["same"] == 12
    assert found["tools"]["ecomjudge float32"]["tokens"] == found["tools"][PLAIN]["tokens"] > 12
    assert all(tool["steady"] for tool in found["tools"].values())


def test_questions_that_do_not_fit_the_model_are_left_out_and_counted(checkpoint: str, tmp_path: Path) -> None:
    long = {**rows()[0], "prompt": "长" * 1500}
    data = write(tmp_path / "questions.jsonl", [*rows(), long])
    assert read_chats(checkpoint, data, None, 16).left_out == 1
    # The file has two questions of CC and two of RLC beside the too long second one of PC.
    assert len(read_chats(checkpoint, data, 1, 16).chats) == 10


def test_a_summary_is_worked_out_by_hand() -> None:
    turns = [Turn(["a", "b", "c"], 9, seconds) for seconds in (1.0, 3.0, 1.5)]
    found = summary(turns, ["a", "b", "x"])
    assert found["answers_per_second"] == 2.0  # the median of 3, 1 and 2
    assert (found["same"], found["tokens"], found["steady"]) == (2, 9, True)
    assert not summary([turns[0], Turn(["a", "b", "d"], 9, 1.0)], ["a", "b", "c"])["steady"]
    tools = {"ecomjudge float32": found, PLAIN: {**found, "answers_per_second": 0.5, "same": 3}}
    shown = table({"answers": 3, "max_tokens": 8, "questions": "sample", "tools": tools})
    assert list(shown.columns[2].cells) == ["4.00", "1.00"]
