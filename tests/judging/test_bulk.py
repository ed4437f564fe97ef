"""Rows in, answers out: in their order, whatever the format, however the input is cut, killed or dealt out."""

from __future__ import annotations

import csv
import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from filelock import FileLock
from shop_rows import lines, plan, row, write_rows

from judging.answers import answer
from judging.bulk import judge_rows
from judging.config import BulkConfig
from judging.judges import find_judges, load
from recipes.faults import DataFaults
from recipes.step_product import StepProductRecord


@pytest.fixture
def config(base: Path, adapter: Callable[..., Path], tmp_path: Path) -> BulkConfig:
    return BulkConfig(
        adapter=(str(adapter("step_product")),),
        checkpoint=str(base),
        data=str(write_rows(tmp_path / "rows.jsonl", 30)),
        out=str(tmp_path / "judged.jsonl"),
        window=8,
        threads=1,
    )


def test_every_row_gets_the_judge_s_answer_in_the_order_of_the_input(config: BulkConfig, tmp_path: Path) -> None:
    import torch

    summary = judge_rows(config)
    found = list(lines(tmp_path / "judged.jsonl"))
    (judge,) = load(find_judges(config.adapter), config, torch.device("cpu"))
    alone = answer(judge, [StepProductRecord.model_validate(row(number)) for number in range(30)])
    assert [line["row"] for line in found] == list(range(1, 31))
    assert [line["id"] for line in found] == [f"r{number}" for number in range(30)]
    assert [line["p_yes"] for line in found] == pytest.approx([one.p_yes for one in alone], abs=1e-5)
    assert list(found[0]) == ["row", "id", "p_yes", "verdict", "shortened", "reason", "detail"]
    assert summary == {"rows": 30, "said": {"yes": sum(one.verdict or 0 for one in alone)} | _no(alone)}
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == [
        "judged.jsonl",
        "judged.jsonl.run.json",
        "rows.jsonl",
    ]


def _no(answers: list[Any]) -> dict[str, int]:
    no = sum(one.verdict == 0 for one in answers)
    return {"no": no} if no else {}


def test_what_cannot_be_judged_keeps_its_place_and_says_why(config: BulkConfig, tmp_path: Path) -> None:
    rows: list[Any] = [row(0), {"goal": "bake"}, row(2) | {"id": 7, "label": "perhaps", "extra": 1}]
    texts = [*map(json.dumps, rows), "not json", "", '{"goal": "a", "goal": "b"}', "[1]"]
    half = json.dumps({"id": "\ud800"})  # half a surrogate pair, which no file can hold
    texts += [half, half.replace("}", ', "\\ud800": 1, "\\ud800": 2}')]
    rows = [row(3) | {"step": "heat the oven " * 100}, {name: value for name, value in row(4).items() if name != "id"}]
    path = tmp_path / "faulty.jsonl"
    path.write_text("\n".join([*texts, *map(json.dumps, rows)]) + "\n")
    summary = judge_rows(replace(config, data=str(path), window=3))
    found = list(lines(tmp_path / "judged.jsonl"))
    assert [(line["row"], line["id"], line["reason"]) for line in found] == [
        (1, "r0", None),
        (2, "2", "invalid"),
        (3, "7", None),
        (4, "4", "unreadable"),
        (6, "6", "unreadable"),
        (7, "7", "unreadable"),
        (8, "\\ud800", "invalid"),
        (9, "9", "unreadable"),
        (10, "r3", "too_long"),
        (11, "11", None),
    ]
    assert found[1]["detail"].startswith("step: missing; give the step's text; product: missing")
    assert found[4]["detail"] == "goal: named twice in one object; keep one of the two"
    assert {line["p_yes"] is None for line in found if line["reason"]} == {True}
    assert {name: summary["said"][name] for name in ("invalid", "too_long", "unreadable")} == {
        "invalid": 2,
        "too_long": 1,
        "unreadable": 4,
    }


def test_the_same_rows_from_every_format_get_the_same_answers(config: BulkConfig, tmp_path: Path) -> None:
    judge_rows(config)
    expected = (tmp_path / "judged.jsonl").read_bytes()
    rows = list(lines(Path(config.data)))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet", row_group_size=7)
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "goal", "step", "product.title", "product.features", "product.price"])
        writer.writeheader()
        for one in rows:
            flat = {f"product.{name}": value for name, value in one.pop("product").items()}
            writer.writerow(one | flat | {"product.features": json.dumps(flat.get("product.features", []))})
    for kind in ("parquet", "csv"):
        judge_rows(replace(config, data=str(tmp_path / f"rows.{kind}"), out=str(tmp_path / f"{kind}.jsonl")))
        assert (tmp_path / f"{kind}.jsonl").read_bytes() == expected


def test_answers_are_written_as_lines_csv_or_parquet(config: BulkConfig, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("nothing\n" + path.read_text())
    for kind in ("jsonl", "csv", "parquet"):
        judge_rows(replace(config, out=str(tmp_path / f"judged.{kind}")))
    expected = list(lines(tmp_path / "judged.jsonl"))
    assert pyarrow.parquet.read_table(tmp_path / "judged.parquet").to_pylist() == expected
    with (tmp_path / "judged.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [cell["p_yes"] for cell in cells] == ["" if one["p_yes"] is None else str(one["p_yes"]) for one in expected]
    assert [cell["reason"] for cell in cells] == ["unreadable"] + [""] * 30
    assert cells[1]["verdict"] in ("0", "1")


def test_several_judges_of_one_judgment_answer_each_row_under_their_names(
    config: BulkConfig, adapter: Callable[..., Path], tmp_path: Path
) -> None:
    judge_rows(config)
    alone = list(lines(tmp_path / "judged.jsonl"))
    both = (*config.adapter, str(adapter("step_product", "other")))
    for kind in ("jsonl", "parquet", "csv"):
        judge_rows(replace(config, adapter=both, out=str(tmp_path / f"both.{kind}")))
    found = list(lines(tmp_path / "both.jsonl"))
    assert [line["judges"]["run"]["p_yes"] for line in found] == [line["p_yes"] for line in alone]
    assert [line["judges"]["other"]["p_yes"] for line in found] != [line["p_yes"] for line in alone]
    assert pyarrow.parquet.read_table(tmp_path / "both.parquet").to_pylist() == found
    assert "judges.other.verdict" in (tmp_path / "both.csv").read_text().splitlines()[0]


def test_adapters_of_several_judgments_read_plans(
    config: BulkConfig, adapter: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_rows(tmp_path / "plans.jsonl", 5, plan)
    with path.open("a") as file:
        file.write('{"id": "bad", "goal": "bake", "script": []}\n')
    three = tuple(str(adapter(name)) for name in ("script_verify", "step_product", "holistic_verify"))
    asked = replace(config, adapter=three, data=str(path), window=2)
    summary = judge_rows(asked)
    judge_rows(replace(asked, out=str(tmp_path / "plans.parquet")))
    found = list(lines(tmp_path / "judged.jsonl"))
    assert [line["id"] for line in found] == [*(f"p{number}" for number in range(5)), "bad"]
    assert not [record for record in caplog.records if record.name == "judging.bulk"]  # an id is no unknown field
    assert list(found[0]) == ["row", "id", "script", "steps", "plan", "reason", "detail"]
    assert [len(step["products"]) for step in found[0]["steps"]] == [2, 3]
    assert found[0]["script"]["verdict"] in (0, 1) and found[0]["plan"]["verdict"] in (0, 1)
    assert (found[5]["script"], found[5]["steps"], found[5]["reason"]) == (None, [], "invalid")
    assert (
        found[5]["detail"] == "script: empty; give the steps in order, each a text or an object with step and products"
    )
    assert sum(summary["said"].values()) == 5 * (1 + 5 + 1) + 1
    assert pyarrow.parquet.read_table(tmp_path / "plans.parquet").to_pylist() == found
    with pytest.raises(ValueError, match=r"do not fit a table's cells; give .jsonl or .parquet"):
        judge_rows(replace(asked, out=str(tmp_path / "plans.csv")))


def test_a_finished_file_is_not_judged_again_and_another_is_not_written_over(
    config: BulkConfig, adapter: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = judge_rows(config)
    with pytest.raises(ValueError, match=r"an earlier run had settings .*\"threshold\": 0.9.*give another --out"):
        judge_rows(replace(config, threshold=0.9))
    other = replace(config, adapter=(str(adapter("step_product", "other")),))
    with pytest.raises(ValueError, match="an earlier run had judges"):
        judge_rows(other)
    with monkeypatch.context() as patched:
        patched.setattr("judging.bulk.load", lambda *_: pytest.fail("loaded again"))
        assert judge_rows(config) == summary
    before = (tmp_path / "judged.jsonl").read_bytes()
    stopped_after(monkeypatch, replace(other, overwrite=True), 2)
    assert (tmp_path / "judged.jsonl").read_bytes() == before  # the old answers stay until the new ones are whole
    judge_rows(other)
    assert (tmp_path / "judged.jsonl").read_bytes() != before
    (tmp_path / "mine.jsonl").write_text("precious")
    with pytest.raises(ValueError, match=r"mine.jsonl is there already; give another --out"):
        judge_rows(replace(config, out=str(tmp_path / "mine.jsonl")))
    assert (tmp_path / "mine.jsonl").read_text() == "precious"


def test_the_input_is_never_written_over(config: BulkConfig, tmp_path: Path) -> None:
    before = Path(config.data).read_bytes()
    (tmp_path / "link.jsonl").symlink_to(config.data)
    for out in (config.data, str(tmp_path / "link.jsonl")):
        with pytest.raises(ValueError, match="is the input itself; give another --out"):
            judge_rows(replace(config, out=out, overwrite=True))
    assert Path(config.data).read_bytes() == before


def test_two_runs_do_not_write_to_one_file(config: BulkConfig, tmp_path: Path) -> None:
    with FileLock(tmp_path / ".judged.jsonl.lock"), pytest.raises(ValueError, match="another process is writing there"):
        judge_rows(replace(config, overwrite=True))
    assert not (tmp_path / "judged.jsonl").exists()


class Killed(BaseException):
    pass


def stopped_after(monkeypatch: pytest.MonkeyPatch, config: BulkConfig, windows: int) -> None:
    """Run until so many windows were judged, as a kill would leave it."""
    from judging import bulk

    real, judged = bulk.record_lines, []

    def mortal(judges: Any, window: Any, budget: int) -> Any:
        if len(judged) == windows:
            raise Killed
        judged.append(window.number)
        return real(judges, window, budget)

    with monkeypatch.context() as patched:
        patched.setattr(bulk, "record_lines", mortal)
        with pytest.raises(Killed):
            judge_rows(config)


def test_what_was_stopped_goes_on_and_ends_the_same(
    config: BulkConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_rows(replace(config, out=str(tmp_path / "whole.jsonl")))
    stopped_after(monkeypatch, config, 2)
    parts = tmp_path / "judged.jsonl.parts"
    assert len(list(parts.glob("*.jsonl"))) == 2 and not (tmp_path / "judged.jsonl").exists()
    (parts / ".00000002-x.jsonl.17.draft").write_text('{"row": 17, "p_y')  # what a kill in the middle of a write leaves
    stopped_after(monkeypatch, config, 1)
    judge_rows(config)
    assert (tmp_path / "judged.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_rows_that_changed_under_a_stopped_run_are_noticed(
    config: BulkConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(config.data).read_text()
    changed = text.replace('"r9"', '"rX"')  # as long as before
    with monkeypatch.context() as patched:
        patched.setattr("judging.bulk._digest", lambda reference: None)  # as of what is no file
        stopped_after(monkeypatch, config, 2)
        Path(config.data).write_text(changed)
        with pytest.raises(ValueError, match="rows 9 to 16 have changed since they were judged; give --overwrite"):
            judge_rows(config)
    Path(config.data).write_text(text)
    judge_rows(replace(config, overwrite=True))
    Path(config.data).write_text(changed)
    with pytest.raises(ValueError, match=r"an earlier run had data .* give another --out, or --overwrite"):
        judge_rows(config)


def test_pipes_in_and_out(
    config: BulkConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    judge_rows(config)
    with Path(config.data).open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert judge_rows(replace(config, data="-", out="-")) == {}
    assert capsys.readouterr().out == (tmp_path / "judged.jsonl").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out": "judged.xlsx"}, "judged.xlsx: unknown kind of file; give .jsonl, .csv or .parquet, or -"),
        ({"window": 0}, "window: 0 rows; give 1 or more"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(config: BulkConfig, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        judge_rows(replace(config, **changes))


def test_an_input_that_cannot_be_read_at_all_is_an_error(config: BulkConfig, tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataFaults, match="cannot be read as Parquet after row 0"):
        judge_rows(replace(config, data=str(tmp_path / "broken.parquet")))
    with pytest.raises(DataFaults, match="no such file"):
        judge_rows(replace(config, data=str(tmp_path / "none.jsonl"), out=str(tmp_path / "other.jsonl")))


def test_a_full_disk_is_said_with_the_file_and_leaves_no_draft(
    config: BulkConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.write_text

    def full(path: Path, text: str, **options: Any) -> int:
        if "00000001-" in path.name:
            real(path, text[:40], **options)
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, text, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*judged.jsonl.parts/00000001-"):
            judge_rows(config)
    assert not list((tmp_path / "judged.jsonl.parts").glob(".*.draft"))
    assert judge_rows(config)["rows"] == 30


def test_a_closed_standard_input_is_said(config: BulkConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ValueError, match="standard input is closed; give --data FILE"):
        judge_rows(replace(config, data="-"))


def test_an_empty_input_gives_an_empty_file(config: BulkConfig, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    for kind in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"out.{kind}"
        assert judge_rows(replace(config, data=str(tmp_path / "empty.jsonl"), out=str(out)))["rows"] == 0
        assert out.is_file()


def test_a_misspelt_field_is_said_once(config: BulkConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [row(number) for number in range(20)]
    for one in rows:
        one["product"]["featurs"] = ["warm"]
    path = tmp_path / "misspelt.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    judge_rows(replace(config, data=str(path)))
    told = [record.getMessage() for record in caplog.records if record.name == "judging.bulk"]
    assert told == ["product.featurs: unknown field, ignored; did you mean 'product.features'?"]
