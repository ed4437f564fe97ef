"""report.html of a run: true to what the run left behind, there for a run that was stopped, usable in a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import opened
from tiny import write_scripts

from recipes.script_verify import SCRIPT_VERIFY
from train.config import TrainConfig
from train.curves import MOST_POINTS, curves_section
from train.report import report
from train.run import train
from train.runs import RunFolder

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> TrainConfig:
    """A run that has ended, with test records; a validation goal is an attack, and its records have kinds."""
    folder = tmp_path_factory.mktemp("report")
    lines = [json.loads(line) for line in write_scripts(folder / "all.jsonl", 20, start=100).read_text().splitlines()]
    for place, line in enumerate(lines):
        line |= {"goal": EVIL if place == 3 else line["goal"], "meta": {"kind": ("whole", "cut")[place % 2]}}
    (folder / "validation.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = make_config(folder, tiny_llama)
    config = replace(config, data=replace(config.data, test=str(write_scripts(folder / "test.jsonl", 8, start=300))))
    train(SCRIPT_VERIFY, config)
    return config


def make_config(folder: Path, checkpoint: Path) -> TrainConfig:
    made = TrainConfig(checkpoint=str(checkpoint), threads=1)
    return replace(
        made,
        model=replace(made.model, dtype="float32"),
        data=replace(
            made.data,
            train=str(write_scripts(folder / "train.jsonl", 16)),
            validation=str(folder / "validation.jsonl"),
        ),
        optim=replace(made.optim, batch_size=8, epochs=1, learning_rate=1e-3),
        evaluation=replace(made.evaluation, every=0.01),  # after each update
        tracking=replace(made.tracking, wandb="disabled", log_every=1),
        run=replace(made.run, folder=str(folder / "runs"), name="run"),
    )


def folder_of(config: TrainConfig) -> RunFolder:
    return RunFolder(config, SCRIPT_VERIFY.name)


def predictions(config: TrainConfig) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder_of(config).predictions.read_text().splitlines()]


def words(html: str) -> str:
    """What a reader reads, the list of records left out."""
    body = re.sub(r"<script.*?</script>", "", html.split("<body>")[1], flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", body)


def test_predictions_are_those_that_the_final_metrics_were_measured_on(ended: TrainConfig) -> None:
    found, final = predictions(ended), folder_of(ended).final_metrics()["validation"]
    assert [line["id"] for line in found] == [f"r{number}" for number in range(100, 120)]
    right = sum(line["label"] == line["verdict"] for line in found)
    assert right / len(found) == pytest.approx(final["accuracy"], abs=1e-6)
    assert sum(line["verdict"] for line in found) / len(found) == pytest.approx(final["said_yes"], abs=1e-6)


def test_the_page_tells_the_measures_the_choices_and_what_fixed_the_result(ended: TrainConfig) -> None:
    folder = folder_of(ended)
    text = words(folder.report.read_text())
    facts = json.loads((folder.adapter / "training.json").read_text())
    for where in ("validation", "test"):
        accuracy = facts["results"][where]["metrics"]["accuracy"]
        assert f"{accuracy['value']:.3f}" in text.split(f"{where}, this judge")[1][:80]
        assert facts["data"][where]["fingerprint"][:16] in text
    spec = json.loads((folder.adapter / "judge.json").read_text())
    assert f"p(yes) = {spec['threshold']:.4f} on (chosen on these records)" in text
    assert "accelerate launch train/script_verify.py" in text
    assert "optim.learning_rate" in text
    assert "those of the test records, below, are not" in text
    assert str(Path(ended.data.train).parent) not in folder.report.read_text()  # files go by their own names


def test_a_stopped_run_has_its_curves_and_no_answers(tiny_config: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("train.run.finish", stop)
    with pytest.raises(KeyboardInterrupt):
        train(SCRIPT_VERIFY, tiny_config)
    text = folder_of(tiny_config).report.read_text()
    assert "written at update 4 (epoch 1.00 of 1): the run had not ended" in words(text)
    assert "Loss of training and validation records" in text
    assert 'id="predictions"' not in text


def entry(step: int, **values: float) -> dict[str, Any]:
    return {"step": step, "epoch": step / 10, **values}


def test_the_best_evaluation_is_marked_the_first_among_equals(ended: TrainConfig) -> None:
    settings = folder_of(ended).settings()
    entries = [entry(1, loss=0.7), entry(2, eval_loss=0.6, eval_macro_f1=0.5)]
    entries += [entry(4, eval_loss=0.5, eval_macro_f1=0.9), entry(6, eval_loss=0.4, eval_macro_f1=0.9)]
    assert "best: 4" in report("run", SCRIPT_VERIFY.name, settings, entries)
    settings["evaluation"] |= {"metric": "loss", "direction": "auto"}
    assert "best: 6" in report("run", SCRIPT_VERIFY.name, settings, entries)


def test_a_line_of_many_updates_is_thinned_and_leaves_out_what_is_no_figure() -> None:
    entries = [entry(step, loss=float("nan") if step == 7 else 0.5) for step in range(1, 2500)]
    drawn = str(curves_section(entries, None).body).split("Loss of training")[1].split("</svg>")[0]
    points = max(re.findall(r'd="(M[^"]+)" class="line"', drawn), key=len).count("L") + 1
    assert MOST_POINTS / 3 < points <= MOST_POINTS
    assert "nan" not in drawn.lower()


def test_before_the_first_line_there_is_a_page_all_the_same(ended: TrainConfig) -> None:
    assert "No update has been logged yet" in report("run", SCRIPT_VERIFY.name, folder_of(ended).settings(), [])


def test_in_a_browser_errors_are_found_and_nothing_of_the_data_runs(ended: TrainConfig) -> None:
    found = predictions(ended)
    wrong = sum(line["label"] != line["verdict"] for line in found)
    with opened(folder_of(ended).report, width=390, scheme="dark") as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.locator("figure svg.chart").count() == 6
        status = page.locator("#list .status")
        page.locator("#list label", has_text="Verdict").locator("select").select_option("wrong")
        assert status.text_content() == f"{wrong} of 20 records"
        page.click("text=Reset")
        page.fill("#list input", "alert(1)")
        page.locator("#list .status", has_text="1 of 20 records").wait_for()
