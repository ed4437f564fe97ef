"""What a judge says of records is what peft and transformers say of their text; what it cannot say has a reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from plain import load
from shop_rows import row

from judging.answers import answer
from judging.config import JudgesConfig
from judging.judges import NamedJudge, find_judges
from judging.judges import load as load_found
from recipes.step_product import STEP_PRODUCT, StepProductRecord


def judges(base: Path, *folders: Path, **settings: Any) -> list[NamedJudge]:
    found = find_judges([str(folder) for folder in folders])
    config = JudgesConfig(adapter=(), checkpoint=str(base), **settings)
    return load_found(found, config, torch.device("cpu"))


def records(count: int) -> list[StepProductRecord]:
    return [StepProductRecord.model_validate(row(number)) for number in range(count)]


@pytest.mark.parametrize("head", ["classification", "verbalizer"])
def test_a_probability_is_that_of_the_text_alone(base: Path, adapter: Callable[..., Path], head: str) -> None:
    folder = adapter("step_product", head=head, threshold=0.4)
    (judge,) = judges(base, folder)
    tokenizer, model = load(str(folder), str(base), head)
    words = [tokenizer(f" {word}", add_special_tokens=False)["input_ids"][0] for word in ("No", "Yes")]
    said = answer(judge, records(12))
    for record, one in zip(records(12), said, strict=True):
        text = STEP_PRODUCT.render(record, "plain" if head == "classification" else "instruction").text
        text = text.strip() if head == "classification" else f"{text}\nAnswer:"
        with torch.no_grad():
            logits = model(**tokenizer(text, return_tensors="pt", return_token_type_ids=False)).logits
        no, yes = logits[0] if head == "classification" else logits[0, -1, words]
        p_yes = 1 / (1 + math.exp(-float(yes - no) / 1.5))
        assert one.p_yes == pytest.approx(p_yes, abs=1e-5)
        assert (one.verdict, one.reason, one.shortened) == (int(p_yes >= 0.4), None, False)


def test_what_cannot_be_judged_says_why_and_leaves_the_others_alone(base: Path, adapter: Callable[..., Path]) -> None:
    (judge,) = judges(base, adapter("step_product"))
    long = {"title": "lamp", "features": ["very long and warm"] * 60}
    asked = [
        *records(2),
        StepProductRecord.model_validate(row(2) | {"product": long}),
        StepProductRecord.model_validate(row(3) | {"step": "heat the oven " * 100}),
        StepProductRecord.model_validate(row(4) | {"product": {"title": "lamp <pad>"}}),
    ]
    said = answer(judge, asked)
    assert [one.reason for one in said] == [None, None, None, "too_long", "no_tokens"]
    assert [one.shortened for one in said] == [False, False, True, False, False]
    assert "tokens even without product text; the judge takes 200" in str(said[3].detail)
    assert said[3].p_yes is None and said[3].verdict is None
    assert [one.p_yes for one in said[:2]] == pytest.approx([one.p_yes for one in answer(judge, records(2))], abs=1e-6)


def test_numbers_that_are_none_are_a_reason(
    base: Path, adapter: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (judge,) = judges(base, adapter("step_product"))
    real = judge.judge.logits
    monkeypatch.setattr(judge.judge, "logits", lambda *given: real(*given) * float("nan"))
    assert [one.reason for one in answer(judge, records(2))] == ["not_finite"] * 2


def test_the_command_s_threshold_and_length_win(base: Path, adapter: Callable[..., Path]) -> None:
    p_yes = sorted(float(one.p_yes or 0) for one in answer(judges(base, adapter("step_product"))[0], records(9)))
    (judge,) = judges(base, adapter("step_product"), threshold=p_yes[4], max_length=150)
    assert sum(one.verdict or 0 for one in answer(judge, records(9))) == 5  # the middle one and those above it
    assert judge.judge.max_length == 150


def test_judges_are_named_after_their_runs_as_far_as_needed(adapter: Callable[..., Path]) -> None:
    one, other = adapter("step_product", "a"), adapter("step_product", "b")
    assert [judge.name for judge in find_judges([str(one), str(other)])] == ["a", "b"]
    same = adapter("script_verify", "a")
    assert [judge.name for judge in find_judges([str(one), str(same)])] == ["step_product/a", "script_verify/a"]


def test_what_is_no_judge_is_refused(adapter: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no judge\.json"):
        find_judges([str(tmp_path)])
    one = str(adapter("step_product"))
    with pytest.raises(ValueError, match="one folder is named twice"):
        find_judges([one, one])
    with pytest.raises(ValueError, match="nobody to judge"):
        find_judges([])


def test_a_judge_of_another_text_is_refused(adapter: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = adapter("step_product")
    monkeypatch.setattr("recipes.step_product.StepProduct.template_version", "step_product-2")
    with pytest.raises(ValueError, match="template step_product-1; this version renders step_product-2: train it"):
        find_judges([str(folder)])
