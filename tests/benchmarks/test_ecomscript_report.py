"""The report of an evaluation: made of its files, true to them, and usable in a browser."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import opened

from benchmarks.ecomscript.config import EcomScriptConfig
from benchmarks.ecomscript.report import report, write_report
from benchmarks.ecomscript.run import evaluate
from recipes.holistic_verify import HolisticRecord
from recipes.intervals import bootstrap
from recipes.script_verify import ScriptRecord
from recipes.step_product import StepProductRecord
from reporting.slices import measure_slices, slicings

EVIL = "<script>alert(1)</script>"
KINDS = ("fits", "lookalike", "other_step")


def glow(k: int) -> str:
    """Warm for yes, but for every seventh record: so both kinds of error occur."""
    return ("warm", "cold", "blue")[(k + (k % 7 == 0)) % 3]


def row(k: int) -> dict[str, Any]:
    """A step and a product; the goal of the first is an attack, that of the seventh Chinese."""
    goal = EVIL if k == 0 else "策划秋季派对" if k == 7 else f"throw party {k % 8}"
    return {
        "id": f"r{k}",
        "goal": goal,
        "step": f"hang lights {k}{' again' * (k % 5)}",
        "product": {"title": f"lamp {k}", "features": [f"glows {glow(k)}"]},
        "label": int(k % 3 == 0),
        "group": f"g{k % 8}",
        "meta": {"kind": KINDS[k % 3], "long_name": "xy"[k % 2], "unique": f"u{k}", "score": 0.5},
    }


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rows), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> EcomScriptConfig:
    """An evaluation of 48 records by a bag of words, which needs no model; it has ended."""
    folder = tmp_path_factory.mktemp("report")
    train = [row(k) | {"id": f"t{k}", "goal": f"train {k}", "group": f"t{k}"} for k in range(100, 400)]
    made = EcomScriptConfig(
        judgment="step_product",
        data=write(folder / "test.jsonl", [row(k) for k in range(48)]),
        train=write(folder / "train.jsonl", train),
        method="bag_of_words",
        resamples=50,
        threads=1,
        out=str(folder / "out"),
    )
    evaluate(made)
    return made


def folder(config: EcomScriptConfig) -> Path:
    return Path(str(config.out))


def results(config: EcomScriptConfig) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder(config) / "results.json").read_text())
    return found


def lines(config: EcomScriptConfig) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder(config) / "predictions.jsonl").read_text().splitlines()]


def html(config: EcomScriptConfig) -> str:
    return (folder(config) / "report.html").read_text(encoding="utf-8")


def listed(text: str) -> dict[str, Any]:
    """The JSON of the list of predictions."""
    found: dict[str, Any] = json.loads(text.split('<script type="application/json">')[1].split("</script>")[0])
    return found


def test_an_evaluation_ends_with_a_report_of_every_prediction_with_its_text(config: EcomScriptConfig) -> None:
    data = listed(html(config))
    keys = [field["key"] for field in data["fields"]]
    assert keys == ["outcome", "right", "meta.kind", "meta.long_name", "length", "p_yes", "error", "tokens"]
    for k, (line, (title, values, body)) in enumerate(zip(lines(config), data["rows"], strict=True)):
        shown = dict(zip(keys, values, strict=True))
        label, said = line["label"], line["verdict"]
        assert shown["outcome"] == f"{'true' if label == said else 'false'} {'yes' if said else 'no'}"
        assert shown["right"] == ("right" if label == said else "wrong")
        assert shown["p_yes"] == pytest.approx(line["p_yes"], abs=1e-6)
        assert shown["error"] == pytest.approx(abs(label - line["p_yes"]), abs=1e-6)
        assert (shown["meta.kind"], shown["tokens"]) == (KINDS[k % 3], line["tokens"])
        assert title == f"lamp {k} → {row(k)['step']}"
        assert body == [
            ["Goal", row(k)["goal"]],
            ["Step", row(k)["step"]],
            ["Product", f"lamp {k} - glows {glow(k)}"],
            ["Id", f"r{k}, group g{k % 8}"],
        ]


def test_the_page_shows_the_figures_of_results_json(config: EcomScriptConfig) -> None:
    found = results(config)
    text = re.sub(r"<[^>]+>", "", html(config).split("<main")[1].split('class="records"')[0])
    for measure in found["metrics"]["accuracy"], found["metrics"]["macro_f1"], found["metrics"]["auc"]:
        assert f"{measure['value']:.3f} [{measure['low']:.3f}, {measure['high']:.3f}]" in text
    assert f"Expected calibration error {found['calibration']['ece']:.3f}" in text
    assert "Yes is said from p(yes) = 0.5000 on (the default; none was chosen)" in text
    assert found["data"]["fingerprint"][:16] in html(config)
    assert str(folder(config)) not in html(config)


def test_slices_are_measured_over_their_own_records(config: EcomScriptConfig) -> None:
    rows = [line | {"at": k} for k, line in enumerate(lines(config))]
    found = slicings(rows, [row(k)["meta"] for k in range(48)])
    assert [one.name for one in found] == ["Kind", "Long name", "Length in tokens"]  # neither "unique" nor "score"
    measured = measure_slices(rows, found[0], 50, 0)
    assert {one.value: one.count for one in measured} == dict.fromkeys(KINDS, 16)
    for one in measured:
        inside = [line for line in rows if KINDS[line["at"] % 3] == one.value]
        right = [line["label"] == line["verdict"] for line in inside]
        assert one.accuracy.value == pytest.approx(np.mean(right))
        assert one.wrong == 16 - sum(right)
        assert one.yes == (16 if one.value == "fits" else 0)
        assert one.mean == pytest.approx(np.mean([line["p_yes"] for line in inside]))
        zeros, groups = np.zeros(16, int), [line["group"] for line in inside]
        alone = bootstrap(zeros, zeros, [not ok for ok in right], groups, 50, 0)["accuracy"]
        assert asdict(one.accuracy) == asdict(alone)
    assert [one.accuracy.value for one in measured] == sorted(one.accuracy.value or 0 for one in measured)


def test_lengths_are_cut_in_quarters() -> None:
    rows = [{"tokens": tokens, "shortened": tokens > 7} for tokens in (8, 1, 2, 3, 4, 5, 6, 7, 1_000)]
    length, text = slicings(rows, [{}] * 9)  # quartiles 3, 5 and 7, each the longest of its quarter
    assert length.order == ("1–3", "4–5", "6–7", "8–1,000")
    assert length.values == ["8–1,000", "1–3", "1–3", "1–3", "4–5", "4–5", "6–7", "6–7", "8–1,000"]
    assert text.values == ["shortened"] + ["whole"] * 7 + ["shortened"]
    same = [{"tokens": 5, "shortened": False}] * 8
    assert slicings(same, [{}] * 8) == []


def test_a_finished_evaluation_writes_its_report_anew_and_overwriting_removes_it(config: EcomScriptConfig) -> None:
    path = folder(config) / "report.html"
    before = path.read_text()
    path.unlink()
    evaluate(config)
    assert path.read_text() == before


def test_a_report_of_other_records_is_refused(config: EcomScriptConfig) -> None:
    others = [StepProductRecord.model_validate(row(k) | {"goal": "another"}) for k in range(48)]
    with pytest.raises(ValueError, match=r"other records than these; give those of test.jsonl"):
        write_report(folder(config), others)


def test_predictions_without_their_records_or_kinds_are_still_shown(config: EcomScriptConfig) -> None:
    """As older files are: no kind in the lines."""
    old = [{key: value for key, value in line.items() if key != "kind"} for line in lines(config)]
    data = listed(report(results(config), old, {}))
    assert [entry[0] for entry in data["rows"]] == [f"r{k}" for k in range(48)]
    assert data["rows"][0][2] == [["Id", "r0, group g0"]]
    assert [field["key"] for field in data["fields"]] == ["outcome", "right", "length", "p_yes", "error", "tokens"]
    assert [line["kind"] for line in lines(config)[:3]] == list(KINDS)
    with_kinds = listed(report(results(config), lines(config), {}))
    assert "meta.kind" in [field["key"] for field in with_kinds["fields"]]


def test_scripts_and_plans_are_shown_step_by_step(config: EcomScriptConfig) -> None:
    def shown(judgment: str, record: ScriptRecord | HolisticRecord) -> tuple[str, list[list[str]]]:
        text = report(results(config) | {"judgment": judgment}, lines(config)[:1], {"r0": record})
        ((title, _, body),) = listed(text)["rows"]
        return title, body

    title, body = shown("script_verify", ScriptRecord(id="r0", goal="bake", script=("knead", "wait")))
    assert (title, body[:2]) == ("bake", [["Goal", "bake"], ["Script", "1. knead\n2. wait"]])
    steps = [{"step": "knead", "products": [{"title": "bowl"}]}, {"step": "wait: an hour"}]
    _, body = shown("holistic_verify", HolisticRecord.model_validate({"id": "r0", "goal": "bake", "script": steps}))
    assert body[1] == ["Plan", "1. knead\n   - bowl\n2. wait: an hour"]


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ({"value": 0.7, "low": 0.6, "high": 0.8}, "lies above that"),
        ({"value": 0.3, "low": 0.2, "high": 0.4}, "lies below that"),
        ({"value": 0.5, "low": 0.4, "high": 0.6}, "do not tell the two apart"),
        ({"value": 0.7, "low": None, "high": None}, None),
    ],
)
def test_the_lead_says_no_more_than_the_interval_allows(
    config: EcomScriptConfig, interval: dict[str, Any], said: str | None
) -> None:
    found = results(config)
    found["metrics"]["accuracy"] = interval
    found["baselines"]["majority"]["metrics"]["accuracy"]["value"] = 0.5
    lead = report(found, lines(config), {}).split('<div class="lead">')[1].split("</dl>")[0]
    for sentence in ("lies above that", "lies below that", "do not tell the two apart"):
        assert (sentence in lead) == (sentence == said)


def test_worst_and_most_uncertain_are_ranked_by_their_distance_from_the_threshold(config: EcomScriptConfig) -> None:
    found = results(config)
    found["threshold"]["value"], found["temperature"] = 0.6, 2.0  # a margin of 2 ln(0.6 / 0.4) = 0.811
    margins = [3.0, 0.7, -2.0, 1.5]  # 2.189, 0.111, 2.811 and 0.689 from it
    rows = [
        line | {"margin": margin, "verdict": int(k < 3)}  # r0 and r3 are yes
        for k, (line, margin) in enumerate(zip(lines(config)[:4], margins, strict=True))
    ]
    text = report(found, rows, {})
    worst, doubtful = text.split("Most confidently wrong</h3>")[1].split('id="predictions"')[0].split("Most uncertain")
    assert re.findall(r'class="title">(\w+)<', worst) == ["r2", "r3", "r1"]
    assert re.findall(r'class="title">(\w+)<', doubtful) == ["r1", "r3", "r0", "r2"]


def test_in_a_browser_counts_lead_to_their_records_and_nothing_of_the_data_runs(config: EcomScriptConfig) -> None:
    said = lines(config)
    with opened(folder(config) / "report.html") as page:
        assert page.locator("figure svg.chart, figure .legend").count() >= 3
        assert all(
            box["height"] > 100 for box in (svg.bounding_box() for svg in page.locator("figure svg.chart").all())
        )
        status = page.locator("#list .status")
        assert status.text_content() == "48 records"
        wrong = sum(line["label"] != line["verdict"] for line in said)
        page.locator("#list label", has_text="Verdict").locator("select").select_option("wrong")
        assert status.text_content() == f"{wrong} of 48 records"
        false_yes = sum(line["label"] < line["verdict"] for line in said)
        assert 0 < false_yes != wrong - false_yes  # else the test could not tell the two kinds of error apart
        page.locator(".confusion td.wrong a").first.click()
        page.locator("#list .status", has_text=f"{false_yes} of 48 records").wait_for()
        page.click("text=Reset")
        page.fill("#list input", "alert(1)")
        page.locator("#list .status", has_text="1 of 48 records").wait_for()
        page.click("#list .opener")
        assert page.locator("#list .opened dd").first.text_content() == EVIL
        page.fill("#list input", "秋季")
        page.locator("#list .opener", has_text="lamp 7").wait_for()


def test_on_a_phone_nothing_is_wider_than_the_screen(config: EcomScriptConfig) -> None:
    with opened(folder(config) / "report.html", width=390, scheme="dark") as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 390
