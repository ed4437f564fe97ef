"""The folder of an evaluation: what survives a kill, what is refused, what the files look like."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from benchmarks.results import EvaluationFolder, Predictions, publishable, to_json, write_text
from models.manifest import folder_digest

BATCHES = [["b", "d"], ["a"], ["c", "é"]]
ORDER = ["a", "b", "c", "d", "é"]


def line(record: str) -> dict[str, object]:
    return {"id": record, "margin": len(record) + ord(record[0]) / 7}


def judge(predictions: Predictions, batches: list[list[str]], process: int = 0) -> None:
    for batch in batches:
        predictions.append(process, [line(record) for record in batch])


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    """The file of an evaluation that nothing disturbed."""
    predictions = Predictions(tmp_path / "undisturbed")
    predictions.recover(BATCHES)
    judge(predictions, BATCHES)
    predictions.merge(ORDER)
    return predictions.path.read_bytes()


def test_the_file_has_one_line_a_record_in_the_order_of_the_data(whole: bytes) -> None:
    assert [json.loads(text) for text in whole.decode().splitlines()] == [line(record) for record in ORDER]


def test_a_kill_at_any_byte_keeps_whole_batches_and_ends_with_the_same_bytes(tmp_path: Path, whole: bytes) -> None:
    first = Predictions(tmp_path / "first")
    first.recover(BATCHES)
    judge(first, BATCHES)
    written = (first.parts / "process-0.jsonl").read_bytes()
    ends = [k + 1 for k, byte in enumerate(written) if byte == ord("\n")]
    for cut in range(len(written) + 1):
        predictions = Predictions(tmp_path / f"cut-{cut}")
        predictions.parts.mkdir(parents=True)
        (predictions.parts / "process-0.jsonl").write_bytes(written[:cut])
        predictions.recover(BATCHES)
        lines = sum(end <= cut for end in ends)
        batches = 0 if lines < 2 else 1 if lines < 3 else 2 if lines < 5 else 3
        assert predictions.recovered() == {record for batch in BATCHES[:batches] for record in batch}
        judge(predictions, BATCHES[batches:])
        predictions.merge(ORDER)
        assert predictions.path.read_bytes() == whole
        assert not predictions.parts.exists()


def test_parts_of_another_number_of_processes_are_read(tmp_path: Path, whole: bytes) -> None:
    predictions = Predictions(tmp_path / "p")
    predictions.recover(BATCHES)
    judge(predictions, BATCHES[:1], process=0)
    judge(predictions, BATCHES[2:], process=2)
    predictions.recover(BATCHES)
    assert predictions.recovered() == {"b", "d", "c", "é"}
    judge(predictions, BATCHES[1:2], process=1)
    predictions.merge(ORDER)
    assert predictions.path.read_bytes() == whole


def test_what_others_append_meanwhile_does_not_change_what_was_recovered(tmp_path: Path) -> None:
    predictions = Predictions(tmp_path)
    predictions.recover(BATCHES)
    judge(predictions, BATCHES[:1], process=1)
    assert predictions.recovered() == set()


def test_a_finished_file_is_recovered_and_ends_the_same(tmp_path: Path, whole: bytes) -> None:
    predictions = Predictions(tmp_path)
    predictions.path.write_bytes(whole)
    predictions.recover(BATCHES)
    assert predictions.recovered() == set(ORDER)
    predictions.merge(ORDER)
    assert predictions.path.read_bytes() == whole


def test_a_kill_while_recovering_leaves_repeated_lines_and_does_no_harm(tmp_path: Path, whole: bytes) -> None:
    predictions = Predictions(tmp_path)
    predictions.recover(BATCHES)
    judge(predictions, BATCHES)
    (predictions.parts / "done.jsonl").write_bytes((predictions.parts / "process-0.jsonl").read_bytes())
    predictions.recover(BATCHES)
    predictions.merge(ORDER)
    assert predictions.path.read_bytes() == whole


@pytest.mark.parametrize("records", [["a", "b"], [*ORDER, "z"]])
def test_a_record_too_many_or_too_few_is_an_error(tmp_path: Path, records: list[str]) -> None:
    predictions = Predictions(tmp_path)
    predictions.recover(BATCHES)
    judge(predictions, BATCHES)
    with pytest.raises(RuntimeError, match=r"\d of \d records have no prediction, \d were not asked"):
        predictions.merge(records)


def test_two_different_answers_for_a_record_are_refused(tmp_path: Path) -> None:
    predictions = Predictions(tmp_path)
    predictions.recover(BATCHES)
    predictions.append(0, [{"id": "a", "margin": 1.0}])
    predictions.append(1, [{"id": "a", "margin": 2.0}])
    with pytest.raises(ValueError, match="'a' has two different predictions"):
        predictions.recover(BATCHES)


IDENTITY = {"judgment": "script_verify", "settings": {"dtype": "float32", "seed": 0}}


def test_the_same_evaluation_may_go_on_and_another_is_named(tmp_path: Path) -> None:
    folder = EvaluationFolder(tmp_path / "e", IDENTITY)
    folder.refuse_other()
    folder.open()
    EvaluationFolder(tmp_path / "e", IDENTITY).refuse_other()
    other = EvaluationFolder(tmp_path / "e", {**IDENTITY, "settings": {"dtype": "bfloat16", "seed": 0}})
    with pytest.raises(ValueError, match=r"settings\.dtype is 'float32' there and 'bfloat16' here; give another --out"):
        other.refuse_other()
    other.refuse_other(overwrite=True)


def test_overwriting_removes_the_evaluation_and_nothing_else(tmp_path: Path) -> None:
    folder = EvaluationFolder(tmp_path, IDENTITY)
    folder.open()
    folder.write_results({"n": 1})
    for name in ("predictions", "validation"):
        predictions = Predictions(tmp_path, name)
        predictions.recover([["a"]])
        predictions.append(0, [line("a")])
    (tmp_path / "notes.jsonl").write_text("mine")
    folder.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.jsonl"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("predictions.jsonl", None),
        ("predictions.jsonl", '{"id": "a"'),
        ("validation.jsonl", ""),
        ("results.json", None),
        ("results.json", "{}"),
        ("results.json", "[1]"),
        ("results.json", '{"n": 1, "fil'),
    ],
)
def test_an_evaluation_is_finished_while_its_files_are_what_they_were(
    tmp_path: Path, name: str, text: str | None
) -> None:
    folder = EvaluationFolder(tmp_path, IDENTITY)
    assert folder.results() is None
    for kept in ("predictions", "validation"):
        (tmp_path / f"{kept}.jsonl").write_text('{"id": "a"}\n')
    folder.write_results({"n": 1})
    assert folder.results() == {"n": 1}
    (tmp_path / name).unlink()
    if text is not None:
        (tmp_path / name).write_text(text)
    assert folder.results() is None


def test_a_file_is_no_folder_for_an_evaluation(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    for overwrite in (True, False):
        with pytest.raises(ValueError, match="out is a file; give the folder to write"):
            EvaluationFolder(tmp_path / "out", IDENTITY).refuse_other(overwrite)


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_folder_of_something_else_is_never_taken(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"holds other files and no evaluation.json; give another --out"):
        EvaluationFolder(tmp_path, IDENTITY).refuse_other(overwrite)


def test_an_evaluation_that_lost_its_identity_may_be_started_anew(tmp_path: Path) -> None:
    folder = EvaluationFolder(tmp_path, IDENTITY)
    (tmp_path / "predictions.jsonl").write_text('{"id": "a"}\n')
    folder.write_results({"n": 1})
    with pytest.raises(ValueError, match=r"has lost its evaluation\.json.*give --overwrite to start anew"):
        folder.refuse_other()
    folder.refuse_other(overwrite=True)


def test_unusable_answers_are_forgotten_with_the_finished_file(tmp_path: Path, whole: bytes) -> None:
    predictions = Predictions(tmp_path)
    predictions.path.write_bytes(whole)
    predictions.recover(BATCHES, lambda entry: entry["id"] != "a")
    assert predictions.recovered() == set(ORDER) - {"a"}
    predictions.append(0, [{"id": "a", "margin": -1}])
    predictions.merge(ORDER)
    assert predictions.read()[0]["margin"] == -1


@pytest.mark.parametrize("text", ['{"judgment": ', "[1]", ""])
def test_an_identity_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "evaluation.json").write_text(text)
    with pytest.raises(ValueError, match="cannot be read; give --overwrite"):
        EvaluationFolder(tmp_path, IDENTITY).refuse_other()


def test_numbers_that_json_does_not_know_become_null() -> None:
    text = to_json({"auc": math.nan, "deep": [{"x": math.inf}], "fine": 0.5})
    assert json.loads(text, parse_constant=pytest.fail) == {"auc": None, "deep": [{"x": None}], "fine": 0.5}


def test_a_digest_follows_weights_and_tokenizer_and_not_the_card(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    before = folder_digest(tmp_path)
    (tmp_path / "README.md").write_text("a card")
    (tmp_path / "checkpoints").mkdir()
    assert folder_digest(tmp_path) == before
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    changed = folder_digest(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"Weights")
    assert len({before, changed, folder_digest(tmp_path)}) == 3


def test_a_file_is_published_by_its_name_alone(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text("")
    assert publishable(str(tmp_path / "test.jsonl")) == "test.jsonl"
    assert publishable("sample:test") == "sample:test"
    assert publishable("org/name:test") == "org/name:test"


def test_a_full_disk_is_told_with_the_file_and_leaves_no_draft(tmp_path: Path) -> None:
    predictions = Predictions(tmp_path)
    predictions.parts.mkdir()
    (predictions.parts / "process-0.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '.*process-0\.jsonl'"):
        predictions.append(0, [line("a")])
    target = tmp_path / "results.json"
    target.write_text("old")
    draft = tmp_path / f".results.json.{os.getpid()}.draft"
    draft.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '.*results\.json'"):
        write_text(target, "new")
    assert target.read_text() == "old" and not draft.is_symlink()
