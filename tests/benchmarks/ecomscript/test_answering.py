"""Evaluations by what a model writes: each way of asking, what is read of it, and what the results say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted
from tiny import tiny_checkpoint

from benchmarks.ecomscript import methods
from benchmarks.ecomscript.asking import CRITIQUE, REVISE, THINK
from benchmarks.ecomscript.config import EcomScriptConfig
from benchmarks.ecomscript.published import published_accuracies
from benchmarks.ecomscript.run import evaluate
from models.generation import Chat, Found
from recipes.step_product import STEP_PRODUCT, StepProductRecord

URL = "http://localhost:1/v1#model"
RECORDS = 12


def record(k: int) -> dict[str, Any]:
    """Yes for even numbers; two records a group."""
    product = {"title": f"lamp {k}", "features": ["warm " * 9, "cold " * 9]}
    return {"id": f"r{k}", "goal": f"party {k // 2}", "step": f"light {k}", "product": product, "label": 1 - k % 2}


@pytest.fixture
def config(tmp_path: Path) -> EcomScriptConfig:
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(record(k)) + "\n" for k in range(RECORDS)))
    return EcomScriptConfig(
        judgment="step_product",
        data=str(tmp_path / "d.jsonl"),
        checkpoint=URL,
        resamples=20,
        threads=1,
        out=str(tmp_path / "out"),
    )


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    """Makes the model of a test: what it says of the k-th record, in which turn, in which sample."""

    def make(reply: Callable[[int, int, int], str]) -> Scripted:
        def said(asked: Chat) -> str:
            k = int(re.findall(r"light (\d+)", asked.messages[0].content)[-1])
            return reply(k, len(asked.messages) // 2, asked.sample)

        scripted = Scripted(said)
        monkeypatch.setattr(methods, "find_generator", lambda *_: Found("model", scripted.facts, lambda: scripted))
        return scripted

    return make


def lines(config: EcomScriptConfig, name: str = "predictions") -> list[dict[str, Any]]:
    return [json.loads(text) for text in (Path(str(config.out)) / f"{name}.jsonl").read_text().splitlines()]


def test_what_cannot_be_read_is_counted_and_scored_as_wrong(
    config: EcomScriptConfig, says: Callable[..., Scripted]
) -> None:
    # Right, but for 0 and 1 (unreadable) and 2 (wrong).
    writer = says(
        lambda k, *_: "Perhaps." if k < 2 else "No." if k == 2 else "Yes" if k % 2 == 0 else "No, it does not."
    )
    results = evaluate(config)  # a served model is asked for its answer
    assert results["subject"]["method"] == "answer"
    assert results["answers"]["unparsed"] == 2 and results["answers"]["undecided"] == 0
    assert results["metrics"]["accuracy"]["value"] == pytest.approx(9 / 12)
    assert results["metrics"]["accuracy"]["low"] is not None
    # Of six yes, four are found, and one no is taken for yes: F1 8/11; of no: five of six and two wrong, F1 10/13.
    assert results["metrics"]["macro_f1"]["value"] == pytest.approx((8 / 11 + 10 / 13) / 2)
    assert results["metrics"]["auc"] == {"value": None, "low": None, "high": None, "undefined": 0}
    assert results["calibration"] is None and results["threshold"] is None
    assert [line["verdict"] for line in lines(config)][:4] == [0, 1, 0, 0]
    assert [line["said"] for line in lines(config)][:4] == [None, None, 0, 0]
    (prompt,) = {one.messages[0].content for one in writer.asked if "light 3\n" in one.messages[0].content}
    assert prompt == STEP_PRODUCT.render(StepProductRecord.model_validate(record(3)), "instruction").text


def test_a_tie_of_samples_is_undecided(config: EcomScriptConfig, says: Callable[..., Scripted]) -> None:
    def reply(k: int, turn: int, sample: int) -> str:
        right = "Answer: Yes" if k % 2 == 0 else "Answer: No"
        wrong = "Answer: No" if k % 2 == 0 else "Answer: Yes"
        if k == 0:
            return (right, wrong, "?")[sample]
        if k == 1:
            return "?"
        return wrong if sample == k % 3 else right

    writer = says(reply)
    results = evaluate(replace(config, method="self_consistency", samples=3))
    assert len(writer.asked) == 3 * RECORDS and {one.sample for one in writer.asked} == {0, 1, 2}
    assert all(one.messages[0].content.endswith(f"{STEP_PRODUCT.question}\n{THINK}") for one in writer.asked)
    assert (results["answers"]["undecided"], results["answers"]["unparsed"]) == (1, 1)
    assert results["metrics"]["accuracy"]["value"] == pytest.approx(10 / 12)
    found = {line["id"]: line for line in lines(config)}
    assert found["r0"]["answers"] == [1, 0, None] and found["r0"]["unread"] == "undecided"
    assert found["r4"]["answers"] == [1, 0, 1] and found["r4"]["said"] == 1
    assert results["asking"]["temperature"] == 0.7 and results["asking"]["samples"] == 3


def test_reflection_is_an_answer_a_critique_and_an_answer(
    config: EcomScriptConfig, says: Callable[..., Scripted]
) -> None:
    writer = says(
        lambda k, turn, _: ("Answer: Yes", "I overlooked the mains.", f"Answer: {('Yes', 'No')[k % 2]}")[turn]
    )
    results = evaluate(replace(config, method="self_reflection"))
    assert results["metrics"]["accuracy"]["value"] == 1.0
    last = next(one for one in writer.asked if len(one.messages) == 5)
    assert [message.role for message in last.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [message.content for message in last.messages[1:]] == [
        "Answer: Yes",
        CRITIQUE,
        "I overlooked the mains.",
        REVISE,
    ]
    assert [len(lines(config, name)) for name in ("answers", "critiques", "revisions")] == [RECORDS] * 3
    assert results["answers"]["written"] == sum(
        line["tokens"] for name in ("answers", "critiques", "revisions") for line in lines(config, name)
    )


@pytest.mark.parametrize("most", [0, 5, 17, 30])
def test_a_killed_evaluation_goes_on_to_the_same_predictions(
    config: EcomScriptConfig, says: Callable[..., Scripted], tmp_path: Path, most: int
) -> None:
    config = replace(config, method="self_reflection")
    writer = says(lambda k, turn, _: f"Answer: {('Yes', 'No')[(k + turn) % 2]}")
    evaluate(config)
    writer.asked.clear()
    writer.most = most
    killed = replace(config, out=str(tmp_path / "killed"))
    with pytest.raises(KeyboardInterrupt):
        evaluate(killed)
    writer.most = None
    evaluate(killed)
    assert len(writer.asked) == 3 * RECORDS  # nothing twice
    assert lines(killed) == lines(config)
    evaluate(killed)
    assert len(writer.asked) == 3 * RECORDS


def test_records_that_are_too_long_lose_product_text_or_are_left_out(
    config: EcomScriptConfig, says: Callable[..., Scripted]
) -> None:
    writer = says(lambda k, *_: "Yes")
    whole = writer.prompt_tokens([Chat((_message(STEP_PRODUCT.render(_parsed(3), "instruction").text),))])[0]
    writer.context = whole - 20 + 16  # 16 to write, and 20 too few: the last feature has to go
    results = evaluate(config)
    assert results["shortened"] == RECORDS and all("cold" not in one.messages[0].content for one in writer.asked)
    assert all("warm" in one.messages[0].content for one in writer.asked)
    # The ids of two digits make prompts of two characters more: without any feature only the others fit.
    bare = whole - len(" - " + "; ".join(" ".join(one.split()) for one in record(3)["product"]["features"]))
    writer.context = bare + 16
    with pytest.raises(ValueError, match=r"2 records do not fit .* tokens even without their product text: r10"):
        evaluate(replace(config, overwrite=True))
    results = evaluate(replace(config, overwrite=True, drop_too_long=True))
    assert set(results["refused"]["tokens"]) == {"r10", "r11"} and results["n"] == 10
    asked = len(writer.asked)
    again = evaluate(replace(config, drop_too_long=True, resamples=30))  # another view, no other texts
    assert again["refused"] == results["refused"] and len(writer.asked) == asked


def _message(text: str) -> Any:
    from models.generation import Message

    return Message("user", text)


def _parsed(k: int) -> StepProductRecord:
    return StepProductRecord.model_validate(record(k))


def test_what_does_not_fit_together_is_refused(config: EcomScriptConfig, says: Callable[..., Scripted]) -> None:
    says(lambda *_: "Yes")
    for changed, message in (
        ({"method": "verbalizer"}, "is a served model; give one of answer, chain_of_thought"),
        ({"method": "chain_of_thought", "shots": 2}, "solved examples show no reasoning"),
        ({"method": "self_consistency", "samples": 1}, "give at least 2 --samples"),
        ({"method": "self_consistency", "sampling_temperature": 0.0}, "--sampling_temperature above 0"),
        ({"validation": config.data}, "are also in|no threshold to choose"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate(replace(config, **changed))


def test_a_local_model_with_solved_examples(config: EcomScriptConfig, tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "tiny", "llama", chat=True, max_position_embeddings=4096)
    results = evaluate(
        replace(config, checkpoint=str(folder), method="answer", shots=2, dtype="float32", max_tokens=4, limit=4)
    )
    # A random model says nothing that can be read.
    assert results["answers"]["unparsed"] == 4 and results["metrics"]["accuracy"]["value"] == 0.0
    assert results["shots"]["asked"] == 2 and results["subject"]["checkpoint"] == "tiny"
    assert all(line["tokens"] > 200 and line["written"] <= 4 for line in lines(config))
    with pytest.raises(ValueError, match=r"holds another evaluation: asking\.max_tokens is 4 there and 5 here"):
        evaluate(
            replace(config, checkpoint=str(folder), method="answer", shots=2, dtype="float32", max_tokens=5, limit=4)
        )


def test_the_report_shows_texts_and_no_probabilities(config: EcomScriptConfig, says: Callable[..., Scripted]) -> None:
    says(lambda k, *_: "It <b>may</b> be." if k == 0 else "Answer: Yes")
    evaluate(replace(config, method="chain_of_thought"))
    html = (Path(str(config.out)) / "report.html").read_text(encoding="utf-8")
    assert 'id="probabilities"' not in html and "It \\u003cb\\u003emay" in html
    data = json.loads(html.split('<script type="application/json">')[1].split("</script>")[0])
    keys = [field["key"] for field in data["fields"]]
    assert "p_yes" not in keys and dict(zip(keys, data["rows"][0][1], strict=True))["outcome"] == "unparsed"
    text = re.sub(r"<[^>]+>", " ", html.split("<main")[1])
    assert "1 answers said neither yes nor no" in text
    assert THINK.split(",")[0] in text


def test_published_accuracies_stand_beside_ours_as_not_comparable(
    config: EcomScriptConfig, says: Callable[..., Scripted]
) -> None:
    says(lambda *_: "Yes")
    evaluate(config)
    html = (Path(str(config.out)) / "report.html").read_text(encoding="utf-8")
    section = html.split('id="published"')[1].split("</section>")[0]
    rows = published_accuracies("step_product")
    assert [(row.model, row.accuracy) for row in rows][:2] == [("Random", 50.0), ("Majority", 57.67)]
    assert ("fine-tuned", "Mistral-7B", 75.63) in [(row.setting, row.model, row.accuracy) for row in rows]
    assert section.count("not comparable") == len(rows) == 13
    assert "50.00" in section and "d.jsonl holds other items" in section
    assert "a second source gives 85.24/76.44/74.48" in section
