"""Two evaluations of the same records compared, from their folders to the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import opened

from benchmarks.ecomscript.comparing import compare_runs
from benchmarks.ecomscript.finished import read_run
from recipes.reading import fingerprint
from recipes.script_verify import ScriptRecord
from scripts.compare import main

KINDS = ("missing_step", "broken_order")


def rows(count: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "id": f"r{k}",
            "goal": f"bake loaf {k}",
            "script": ["mix"] * (1 + k % 4),
            "label": k % 2,
            "group": f"g{k % 10}",
            "meta": {"kind": KINDS[k // 2 % 2], "department": ("garden", "kitchen")[k % 3 % 2]},
        }
        for k in range(count)
    ]


def run(folder: Path, wrong: set[int], data: Path, name: str, **changes: Any) -> Path:
    """An evaluation in which the records of these numbers were judged wrong."""
    folder.mkdir()
    given = [json.loads(text) for text in data.read_text().splitlines()]
    lines = []
    for k, row in enumerate(given):
        said = row["label"] ^ (k in wrong)
        margin = (1 if said else -1) * (1 + k / 100)
        lines.append(
            {"id": row["id"], "group": row["group"], "label": row["label"], "p_yes": 0.8 if said else 0.2}
            | {"margin": margin, "verdict": said, "tokens": 10 + 5 * (k % 4), "shots": 0, "shortened": False}
            | {"kind": row["meta"]["kind"]}
        )
    (folder / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    digest = fingerprint([ScriptRecord.model_validate(row) for row in given])
    results = {
        "benchmark": "ecomscript",
        "judgment": "script_verify",
        "subject": {"name": name, "method": "judge"},
        "data": {"reference": data.name, "fingerprint": digest},
        "n": len(lines),
        "refused": {"count": 0},
        "threshold": {"value": 0.5, "from": "judge.json"},
    }
    (folder / "results.json").write_text(json.dumps(results | changes))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "test.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return path


@pytest.mark.parametrize(
    ("one", "other", "names"), [("a", "b", ("a", "b")), ("a/x", "b/x", ("m (first)", "m (second)"))]
)
def test_runs_of_one_model_are_told_apart(tmp_path: Path, data: Path, one: str, other: str, names: object) -> None:
    for name in (one, other):
        (tmp_path / name).parent.mkdir(exist_ok=True)
    runs = [read_run(run(tmp_path / name, set(), data, "m")) for name in (one, other)]
    found = compare_runs(*runs, str(data), resamples=10)
    assert (found.first.name, found.second.name) == names


def test_runs_are_compared_on_all_records_and_in_slices(tmp_path: Path, data: Path) -> None:
    first = run(tmp_path / "a", set(range(0, 16)), data, "small")
    second = run(tmp_path / "b", set(range(12, 20)), data, "large")
    found = compare_runs(read_run(first), read_run(second), str(data), resamples=200)
    accuracy = found.whole.measures["accuracy"]
    assert (accuracy.first, accuracy.second) == (24 / 40, 32 / 40)
    assert accuracy.difference.value == pytest.approx(0.2)
    assert (found.whole.only.first_only, found.whole.only.second_only) == (4, 12)
    assert set(found.slices) == {"meta.kind", "meta.department", "length"}
    kinds = {one.value: one for one in found.slices["meta.kind"]}
    missing = kinds["missing_step"]  # numbers 0, 1 of every 4: 8 of the first 16, 4 of 12 to 19, 2 of them in both
    assert (missing.count, missing.only.first_only, missing.only.second_only) == (20, 2, 6)
    assert missing.measures["accuracy"].first == pytest.approx(12 / 20)
    assert missing.adjusted >= missing.only.p
    assert [one.value for one in found.slices["length"]] == ["10–10", "15–15", "20–20", "25–25"]


def test_without_the_records_slices_are_what_predictions_tell(tmp_path: Path, data: Path) -> None:
    first, second = run(tmp_path / "a", {1}, data, "small"), run(tmp_path / "b", {2}, data, "large")
    found = compare_runs(read_run(first), read_run(second), resamples=50)
    assert not found.records
    assert set(found.slices) == {"meta.kind", "length"}


def test_runs_over_different_data_are_refused_with_both_fingerprints(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps(row) + "\n" for row in rows(39)))
    first, second = run(tmp_path / "a", {1}, data, "small"), run(tmp_path / "b", {2}, other, "large")
    assert main([str(first), str(second)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: these runs judged different data")
    for folder, path in ((first, data), (second, other)):
        digest = fingerprint([ScriptRecord.model_validate(json.loads(text)) for text in path.read_text().splitlines()])
        assert f"{folder}: {path.name} {digest}" in said
    assert main([str(first), str(first), "--data", str(other)]) == 1
    assert "is not what" in capsys.readouterr().err
    assert main([str(first), str(tmp_path)]) == 1
    assert "no results.json; give the folder of a finished evaluation" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([str(first)])


def test_records_that_one_run_left_out_are_counted(tmp_path: Path, data: Path) -> None:
    first, second = run(tmp_path / "a", {1}, data, "small"), run(tmp_path / "b", {2}, data, "large")
    path = second / "predictions.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))
    results = json.loads((second / "results.json").read_text())
    (second / "results.json").write_text(json.dumps(results | {"n": 37, "refused": {"count": 3}}))
    found = compare_runs(read_run(first), read_run(second), resamples=20)
    assert (found.left_out, found.whole.count) == (3, 37)


def test_another_benchmark_s_results_are_refused(tmp_path: Path, data: Path) -> None:
    with pytest.raises(ValueError, match="holds results of ecomqa"):
        read_run(run(tmp_path / "a", {1}, data, "small", benchmark="ecomqa"))


@pytest.mark.parametrize(
    ("file", "spoil", "told"),
    [
        ("results.json", lambda text: text[:40], "results.json was cut or spoilt; "),
        ("results.json", lambda text: "[]", "results.json was cut or spoilt; "),
        ("results.json", lambda text: '{"benchmark": "ecomscript"}', "results.json: judgment: field required; "),
        ("results.json", lambda text: text.replace('"n": 40', '"n": "x"'), "results.json: n: input should be a valid"),
        ("predictions.jsonl", lambda text: "".join(text.splitlines(keepends=True)[:20]), "jsonl: 20 predictions where"),
        ("predictions.jsonl", lambda text: text[:-30], "predictions.jsonl:40: the line was cut or spoilt; "),
        ("predictions.jsonl", lambda text: text.replace('"id"', '"ie"', 1), "predictions.jsonl:1: id: field required"),
        ("predictions.jsonl", lambda text: text.replace('"r1"', '"r0"'), "predictions.jsonl: 39 predictions where"),
    ],
)
def test_what_was_cut_or_spoilt_is_told_by_its_file(
    tmp_path: Path,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    spoil: Callable[[str], str],
    told: str,
) -> None:
    first, second = run(tmp_path / "a", {1}, data, "small"), run(tmp_path / "b", {2}, data, "large")
    (second / file).write_text(spoil((second / file).read_text()))
    assert main([str(first), str(second), "--out", str(tmp_path / "c.html")]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {second}/") and told in said
    assert said.endswith("give the evaluation's command again\n")


def test_odd_numbers_are_refused_by_their_flag(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--resamples=-1"], ["--resamples", "0"], ["--resamples", "2.5"], ["--seed=-1"]):
        with pytest.raises(SystemExit, match="2"):
            main(["a", "b", *words])
        assert f"argument {words[0].partition('=')[0]}: " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["c.json", "results.html", "evaluation.html"])
def test_figures_are_written_over_neither_the_page_nor_an_evaluation(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = run(tmp_path / "a", {1}, data, "small")
    before = sorted((path, path.read_text()) for path in folder.iterdir())
    assert main([str(folder), str(folder), "--out", str(folder / name)]) == 1
    assert "give another name that ends in .html" in capsys.readouterr().err
    assert sorted((path, path.read_text()) for path in folder.iterdir()) == before


def test_the_command_prints_writes_and_shows_where_they_differ(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path / "a", set(range(0, 16)), data, "small")
    second = run(tmp_path / "b", set(range(12, 20)), data, "<b>large")
    out = tmp_path / "comparison.html"
    assert main([str(first), str(second), "--data", str(data), "--out", str(out), "--resamples", "100"]) == 0
    said = capsys.readouterr().out
    assert "Right alone: 4 and 12" in said and str(out) in said
    figures = json.loads(out.with_suffix(".json").read_text(), parse_constant=pytest.fail)
    assert figures["whole"]["measures"]["accuracy"]["difference"]["value"] == pytest.approx(0.2)
    assert figures["differing"] == [f"r{k}" for k in (*range(0, 12), *range(16, 20))]
    assert str(tmp_path) not in out.read_text() + out.with_suffix(".json").read_text()
    with opened(out) as page:
        assert page.title().startswith("<b>large beside small")
        assert page.locator("#list tbody tr").count() == 16
        page.get_by_role("link", name="6", exact=True).first.click()
        assert page.locator("#list tbody tr").count() == 6
    with opened(out, width=390, scheme="dark") as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
