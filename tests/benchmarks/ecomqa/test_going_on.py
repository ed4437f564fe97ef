"""Evaluations that were stopped, spoilt or changed: what is asked again, what is not, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ecomqa_models import Scripted, lines
from ecomqa_questions import rows

from benchmarks.ecomqa import prepare, run
from benchmarks.ecomqa.config import EcomQAConfig, GradingConfig


def test_judges_come_later_and_nothing_is_asked_twice(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    run.evaluate(config)
    asked = len(cast["m"].asked)
    assert asked == 12
    results = run.evaluate(replace(config, judges="rules,yes,no,none"))
    assert len(cast["m"].asked) == asked
    assert results["cost"]["answers"]["texts"] == 12  # the cost of the run that asked
    assert results["cost"]["votes"]["texts"] == 33
    run.evaluate(replace(config, judges="rules,yes,no,none"))
    run.evaluate(replace(config, judges="yes,no,none", grading=GradingConfig(split="correct")))
    assert len(cast["yes"].asked) == 11
    assert not run.evaluate(config)["grading"]["judges"]


def test_another_way_of_answering_is_refused_in_the_same_folder(
    cast: dict[str, Scripted], config: EcomQAConfig
) -> None:
    run.evaluate(config)
    with pytest.raises(ValueError, match=r"holds another evaluation: settings\.max_tokens is 512 there and 64 here"):
        run.evaluate(replace(config, max_tokens=64))
    run.evaluate(replace(config, max_tokens=64, overwrite=True))
    assert len(cast["m"].asked) == 24


@pytest.mark.parametrize("spoil", [lambda raw: raw[:-40], lambda raw: raw[:200] + b"\n\xff" + raw[200:], lambda _: b""])
def test_a_file_that_was_cut_or_spoilt_is_gone_on_from(
    spoil: Callable[[bytes], bytes], cast: dict[str, Scripted], config: EcomQAConfig
) -> None:
    config = replace(config, judges="rules,yes")
    run.evaluate(config)
    folder = Path(str(config.out))
    whole = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    for path in folder.glob("*.jsonl"):
        path.write_bytes(spoil(path.read_bytes()))
    (folder / "results.json").unlink()
    cast["m"].asked.clear()
    run.evaluate(config)
    assert {path.name: path.read_bytes() for path in folder.glob("*.jsonl")} == whole
    assert len(cast["m"].asked) <= len(rows())


def test_a_folder_has_one_writer(cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from models.folder import sole_writer\n"
        f"with sole_writer(Path({str(config.out)!r})): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == "held\n"
            with pytest.raises(ValueError, match="another process is writing there"):
                run.evaluate(config)
        finally:
            other.kill()
    assert not (tmp_path / "out").exists()
    assert run.evaluate(config)["all"]["n"] == 12


def test_votes_belong_to_the_answer_that_they_were_cast_on(
    cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = replace(config, judges="yes", grading=GradingConfig(prompts="standard"))
    run.evaluate(config)
    path = Path(str(config.out)) / "answers.jsonl"
    answers = [json.loads(text) for text in path.read_text("utf-8").splitlines()]
    wanted = next(answer for answer in answers if answer["text"] == "一五年")
    wanted["text"] = "一六年"
    path.write_text("".join(json.dumps(one) + "\n" for one in answers), encoding="utf-8")
    cast["yes"].asked.clear()
    cast["yes"].reply = lambda system, user: "B" if "一六年" in user else "?"
    run.evaluate(config)
    # Batches of two are asked again whole: the one whose answer has changed, and its neighbour, but no other.
    assert 1 <= len(cast["yes"].asked) <= 2
    assert (lines(config)["BC"]["answer"], lines(config)["BC"]["grade"]) == ("一六年", "wrong")
    assert lines(config)["PC"]["grade"] == "correct"
    told = capsys.readouterr().err
    assert "results.json or a file that it was made of has changed" in told
    assert "1 lines are spoilt or answer something else" in told


@pytest.mark.parametrize("name", ["answers.jsonl", "votes"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda entry: [entry, {**entry, "id": "nobody"}],
        lambda entry: [{key: value for key, value in entry.items() if key != "text"}],
        lambda entry: [{key: value for key, value in entry.items() if key != "finish"}],
        lambda entry: [{**entry, "text": None}],
        lambda entry: [{**entry, "text": 5}],
        lambda entry: [entry, {"id": 5}],
    ],
)
def test_lines_of_another_form_are_asked_again(
    name: str, spoil: Callable[[dict[str, Any]], Any], cast: dict[str, Scripted], config: EcomQAConfig
) -> None:
    config = replace(config, judges="rules,yes", grading=GradingConfig(prompts="standard"), limit=1)
    run.evaluate(config)
    folder = Path(str(config.out))
    path = next(folder.glob("votes*.jsonl")) if name == "votes" else folder / name
    whole = path.read_bytes()
    first, *rest = whole.decode().splitlines()
    spoilt = [json.dumps(one, ensure_ascii=False) for one in spoil(json.loads(first))]
    path.write_text("".join(f"{line}\n" for line in [*spoilt, *rest]), encoding="utf-8")
    cast["m"].asked.clear()
    cast["yes"].asked.clear()
    run.evaluate(config)
    assert path.read_bytes() == whole
    assert len(cast["m"].asked) + len(cast["yes"].asked) <= 2
    assert not list(folder.glob("*.parts"))


@pytest.mark.parametrize("change", [lambda made: {"files": {}}, lambda made: {**made, "cost": 0} | {"files": {}}, None])
def test_results_of_another_form_are_made_again(
    change: Callable[[dict[str, Any]], Any] | None, cast: dict[str, Scripted], config: EcomQAConfig
) -> None:
    first = run.evaluate(config)
    path = Path(str(config.out)) / "results.json"
    made = json.loads(path.read_text("utf-8"))
    if change is None:
        del made["cost"]
    path.write_text(json.dumps(change(made) if change else made), encoding="utf-8")
    assert run.evaluate(config)["all"] == first["all"]
    assert len(cast["m"].asked) == 12


def test_a_comparison_is_made_again_where_the_other_run_has_changed(
    cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        run.evaluate(replace(config, out=str(tmp_path / name / "run")))
        cast["m"].reply = lambda system, user: "不知道"
    found = [run.evaluate(replace(config, compare=str(tmp_path / name / "run"))) for name in ("one", "two")]
    assert [made["comparison"]["second_only"] for made in found] == [7, 0]
    assert str(tmp_path) not in json.dumps(found)


def test_overwriting_asks_servers_anew(
    cast: dict[str, Scripted], config: EcomQAConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew = []

    def find(reference: str, *rest: Any) -> Any:
        anew.append(rest[-1])
        return cast[reference].found()

    monkeypatch.setattr(prepare, "find_generator", find)
    run.evaluate(replace(config, judges="yes"))
    run.evaluate(replace(config, judges="yes", overwrite=True))
    assert anew == [False, False, True, True]
