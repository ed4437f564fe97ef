"""A speed comparison: the same prompts for all, medians and differences by hand, and tools that fail."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from tiny import tiny_checkpoint
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from benchmarks.speed import teaching
from benchmarks.speed.growth import measure_growth
from benchmarks.speed.scoring import Contestant, chosen, compare, ratios, summary, table
from benchmarks.speed.workload import Workload, make_pairs, make_workload
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import new_judge

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speed") / "llama"
    return tiny_checkpoint(folder, "llama", chat=True, max_position_embeddings=4096)


def test_a_workload_is_what_our_judge_reads_and_survives_its_file(checkpoint: Path, tmp_path: Path) -> None:
    work = make_workload(str(checkpoint), "step_product", shots=2, records=3)
    again = Workload.read(work.write(tmp_path / "work.json"))
    assert again == work
    judge = new_judge(resolve(work.model), "j", "j", ("No", "Yes"), LoadSettings(head="verbalizer", dtype="float32"))
    assert [judge.encoder.text(prompt) for prompt in work.prompts] == work.texts
    assert work.labels == ("No", "Yes")  # behind a chat template no space leads
    assert all(text.count("Does this product serve this step?") == 3 for text in work.texts)


def ours(dtype: str, name: str | None = None) -> Contestant:
    command = (sys.executable, "-m", "benchmarks.speed.ours", "{work}", "{out}", "--threads", "1", "--dtype", dtype)
    return Contestant(name or f"ecomjudge {dtype}", command)


def test_tools_score_in_turn_and_one_that_fails_is_left_out(checkpoint: Path, tmp_path: Path) -> None:
    work = make_workload(str(checkpoint), "step_product", shots=0, records=6)
    broken = Contestant("broken", (sys.executable, "-c", "raise SystemExit('no such kernel')"))
    found = compare(work, [ours("exact"), ours("auto"), broken], 1, tmp_path, QUIET)
    assert found["tools"].keys() == {"ecomjudge exact", "ecomjudge auto"}
    assert "no such kernel" in found["failed"]["broken"]
    assert found["tools"]["ecomjudge exact"]["largest_difference"] == 0
    assert found["tools"]["ecomjudge auto"]["verdicts_changed"] == 0
    assert table(found).row_count == 2


def test_a_run_writes_where_no_other_does_and_leaves_nothing_behind(tmp_path: Path) -> None:
    work = tmp_path / "work.json"
    work.write_text("{}")
    tell = "import json, sys; json.dump(dict(out=sys.argv[1]), open(sys.argv[1], 'x'))"
    tool = Contestant("tool", (sys.executable, "-c", tell, "{out}"))
    assert len({tool.run(work)["out"] for _ in range(2)}) == 2
    assert list(tmp_path.iterdir()) == [work]


def test_where_the_tool_that_all_are_compared_with_fails_the_comparison_says_so(tmp_path: Path) -> None:
    work = Workload("step_product", 0, "m", ("No", "Yes"), ["a"], [["a"]], [""])
    broken = Contestant("ecomjudge exact", (sys.executable, "-c", "raise SystemExit('no memory')"))
    with pytest.raises(ChildProcessError, match=r"(?s)ecomjudge exact ended with status 1.*no memory"):
        compare(work, [broken], 1, tmp_path, QUIET)


def test_a_tool_that_fails_to_teach_is_left_out(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def teach(lesson: teaching.Lesson) -> dict[str, Any]:
        assert not list(lesson.folder.iterdir())
        return {"records_per_second": 1.0, "losses": [1.0], "peak_memory_gib": 1.0}

    def fail(lesson: teaching.Lesson) -> dict[str, Any]:
        raise ChildProcessError("other ended with status 1")

    monkeypatch.setattr(teaching, "TOOLS", {teaching.OURS: teach, "other": fail})
    found = teaching.compare_training("without it", str(checkpoint), 1, 2, tmp_path, QUIET)
    assert found["failed"] == {"other": "other ended with status 1"}
    assert found["tools"].keys() == {teaching.OURS} and found["tools"][teaching.OURS]["all_rates"] == [1.0, 1.0]


def test_a_tool_that_is_given_the_first_records_alone_is_compared_on_them(checkpoint: Path, tmp_path: Path) -> None:
    work = make_workload(str(checkpoint), "step_product", shots=0, records=4)
    found = compare(work, [ours("exact"), replace(ours("float32", "few"), records=2)], 1, tmp_path, QUIET)
    assert (found["tools"]["few"]["records"], found["tools"]["few"]["without_score"]) == (2, 0)
    assert found["tools"]["few"]["largest_difference"] < 1e-4


def test_tools_can_be_chosen_and_the_one_that_all_are_compared_with_then_scores_few() -> None:
    field = [ours("exact"), ours("float32"), ours("auto")]
    assert chosen(field, None, 2) == field
    assert chosen(field, ["ecomjudge auto"], 2) == [replace(field[0], records=2), field[2]]
    assert chosen(field, ["ecomjudge auto", "ecomjudge exact"], 2) == [field[0], field[2]]
    with pytest.raises(
        ValueError, match=r"--tools: 'auto' is none of ecomjudge exact, ecomjudge float32, ecomjudge auto"
    ):
        chosen(field, ["auto"], 2)


def test_scores_beyond_those_compared_count_as_scores() -> None:
    run = {"records": 3, "seconds": 1.0, "margins": [0.5, None, -1.0], "peak_memory_gib": 1.0}
    found = summary([run], [0.25])
    assert (found["largest_difference"], found["records"], found["without_score"]) == (0.25, 3, 1)


def test_encoders_score_pairs_with_the_head_that_was_written_for_all(tmp_path: Path) -> None:
    tiny = tiny_checkpoint(tmp_path / "bert", "bert")
    work = make_pairs(str(tiny), "step_product", 5, tmp_path / "head")
    written = work.write(tmp_path / "work.json")
    assert Workload.read(written) == work and work.labels is None
    found = ours("exact").run(written)
    first = ["".join(prefix).strip() for prefix in work.prefixes]
    pairs = list(zip(first, map(str.strip, work.suffixes), strict=True))
    tokenizer = AutoTokenizer.from_pretrained(work.model)
    model = AutoModelForSequenceClassification.from_pretrained(work.model)
    with torch.no_grad():
        logits = model(**tokenizer(pairs, padding=True, return_tensors="pt")).logits
    expected = (logits[:, 1] - logits[:, 0]).tolist()
    assert found["margins"] == pytest.approx(expected, abs=1e-5)
    assert found["records"] == 5


def test_a_summary_is_worked_out_by_hand() -> None:
    runs: list[dict[str, Any]] = [
        {"records": 4, "seconds": seconds, "margins": [0.5, -0.1, None, 2.0], "peak_memory_gib": 1.0}
        for seconds in (1.0, 4.0, 2.0)
    ]
    found = summary(runs, [0.25, 0.05, 1.0, 2.0])
    assert found["records_per_second"] == 2.0
    assert found["largest_difference"] == pytest.approx(0.25)
    assert found["verdicts_changed"] == 1
    assert found["without_score"] == 1


def test_ratios_name_their_baselines() -> None:
    rates = {
        "ecomjudge auto": 8.0,
        "lm-eval float32, batch 1": 2.0,
        "lm-eval float32, batch 8": 1.0,
        "vLLM bfloat16": 4.0,
    }
    found = ratios({name: {"records_per_second": rate} for name, rate in rates.items()})
    assert found == {"auto over vLLM bfloat16": 2.0, "auto over lm-eval float32, its best batch": 4.0}


def test_growth_has_every_curve_and_sharing_is_counted(checkpoint: Path) -> None:
    judge = new_judge(
        resolve(str(checkpoint)), "j", "j", ("No", "Yes"), LoadSettings(head="verbalizer", dtype="float32")
    )
    import benchmarks.speed.growth as growth

    small = {"RECORDS": (2, 4), "LENGTHS": (64, 128), "PRODUCTS": (1, 2), "SHOTS": (0, 1), "ROUNDS": 1}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in small.items():
            patch.setattr(growth, name, value)
        found = measure_growth(judge, QUIET)
    assert {curve: [line["size"] for line in lines] for curve, lines in found.items()} == {
        "records": [2, 4],
        "tokens of a prompt": [64, 128],
        "products of a step": [1, 2],
        "solved examples": [0, 1],
    }
    assert all(line["tokens"] <= line["size"] for line in found["tokens of a prompt"])


def test_training_texts_are_those_of_our_judge(checkpoint: Path, tmp_path: Path) -> None:
    path = teaching.write_texts(str(checkpoint), "classification", tmp_path / "texts.json")
    made = json.loads(path.read_text())
    records = [json.loads(line) for line in path.with_suffix(".jsonl").read_text().splitlines()]
    assert len(made["train"]) == len(records) == teaching.BATCH * teaching.STEPS
    text, label = made["train"][0]
    assert text.startswith(f"Goal: {records[0]['goal']}") and label == records[0]["label"]
    assert "You match products" not in text


def test_a_training_summary_is_worked_out_by_hand() -> None:
    runs = [
        {"records_per_second": rate, "losses": [1.0] * 6 + [0.5, 0.7], "peak_memory_gib": 2.0}
        for rate in (1.0, 3.0, 2.0)
    ]
    found = teaching.summary(runs)
    assert found["records_per_second"] == 2.0
    assert np.allclose(found["last_losses"], [0.6] * 3)
    assert teaching.table("t", {"ecomjudge": found, "other": found}).row_count == 2
