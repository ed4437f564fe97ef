"""Evaluations from configuration to files, with tiny random models, against transformers used by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from tiny import tiny_checkpoint
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, BertModel

from benchmarks.ecomscript.config import EcomScriptConfig
from benchmarks.ecomscript.fewshot import draw_shots
from benchmarks.ecomscript.run import evaluate
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import new_judge
from models.lora import LoraSettings
from models.scoring import Scoring
from recipes.script_verify import SCRIPT_VERIFY, ScriptRecord

STEPS = ("mix flour and water", "let it rise", "heat the oven", "bake", "hang the lights")


def script(number: int, group: str) -> dict[str, Any]:
    """Scripts of different lengths; yes where the first step comes first."""
    label = number % 3 % 2
    steps = [STEPS[(number + k) % 5] for k in range(1 + number % 4)]
    steps = ["plan it", *steps] if label else [*steps, "plan it"]
    return {"id": f"r{number}", "goal": f"bake bread {number}", "script": steps, "label": label, "group": group}


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def lines(folder: Path, name: str = "predictions") -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / f"{name}.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of 24 records in 8 groups, validation and train in other groups, and tiny checkpoints."""
    folder = tmp_path_factory.mktemp("ecomscript")
    write(folder / "test.jsonl", [script(k, f"test{k % 8}") for k in range(24)])
    write(folder / "validation.jsonl", [script(k, f"val{k % 4}") for k in range(100, 112)])
    write(folder / "train.jsonl", [script(k, f"train{k}") for k in range(200, 230)])
    tiny_checkpoint(folder / "plain", "llama")
    tiny_checkpoint(folder / "chat", "qwen2", chat=True)
    tiny_checkpoint(folder / "encoder", "bert")
    return folder


@pytest.fixture
def config(where: Path, tmp_path: Path) -> EcomScriptConfig:
    return EcomScriptConfig(
        judgment="script_verify",
        data=str(where / "test.jsonl"),
        checkpoint=str(where / "plain"),
        dtype="float32",
        resamples=50,
        threads=1,
        out=str(tmp_path / "out"),
    )


@pytest.mark.parametrize(("checkpoint", "yes", "no"), [("plain", " Yes", " No"), ("chat", "Yes", "No")])
def test_verbalizer_margins_are_those_of_a_plain_forward_pass(
    config: EcomScriptConfig, where: Path, tmp_path: Path, checkpoint: str, yes: str, no: str
) -> None:
    evaluate(replace(config, checkpoint=str(where / checkpoint)))
    tokenizer = AutoTokenizer.from_pretrained(where / checkpoint)
    model = AutoModelForCausalLM.from_pretrained(where / checkpoint, dtype=torch.float32).eval()
    words = [tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in (no, yes)]
    found = lines(tmp_path / "out")
    for row, line in zip((script(k, f"test{k % 8}") for k in range(24)), found, strict=True):
        steps = "".join(f"{n}. {step}\n" for n, step in enumerate(row["script"], 1))
        asked = f"{SCRIPT_VERIFY.instruction}\n\nGoal: {row['goal']}\nScript:\n{steps}{SCRIPT_VERIFY.question}"
        if checkpoint == "chat":
            text = f"<|im_start|>user\n{asked}<|im_end|>\n<|im_start|>assistant\n"
        else:
            text = f"{asked}\nAnswer:"
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=checkpoint == "plain")["input_ids"]
        with torch.no_grad():
            logits = model(ids).logits[0, -1]
        margin = float(logits[words[1]] - logits[words[0]])
        assert line["margin"] == pytest.approx(margin, abs=1e-4)
        assert line["p_yes"] == pytest.approx(1 / (1 + np.exp(-margin)), abs=1e-4)
        assert (line["id"], line["label"], line["group"]) == (row["id"], row["label"], row["group"])
        assert (line["tokens"], line["shots"], line["shortened"]) == (ids.shape[1], 0, False)
        assert line["verdict"] == (line["p_yes"] >= 0.5)


def test_results_say_how_fast_records_were_judged(config: EcomScriptConfig, tmp_path: Path) -> None:
    cost = evaluate(config)["cost"]
    tokens = sum(line["tokens"] for line in lines(tmp_path / "out"))
    seconds = 24 / cost["records_per_second"]
    assert seconds == pytest.approx(cost["seconds"], abs=0.01)
    assert cost["tokens_per_second"] == pytest.approx(tokens / seconds, rel=2e-3)
    assert 0.1 < cost["computed_share"] < 0.9  # the instruction that all share is computed once
    assert 0 < cost["mfu"] < 1 and cost["peak_memory_gib"] > 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"{cost['records_per_second']:,.1f} records/s" in page
    assert evaluate(replace(config, resamples=60))["cost"] == cost  # nothing was judged anew


def test_results_are_those_of_the_predictions_and_hold_no_path(
    config: EcomScriptConfig, where: Path, tmp_path: Path
) -> None:
    evaluate(config)
    text = (tmp_path / "out" / "results.json").read_text()
    results = json.loads(text, parse_constant=pytest.fail)
    found = lines(tmp_path / "out")
    labels, said = [line["label"] for line in found], [line["verdict"] for line in found]
    metrics = results["metrics"]
    assert metrics["accuracy"]["value"] == pytest.approx(accuracy_score(labels, said))
    assert metrics["macro_f1"]["value"] == pytest.approx(f1_score(labels, said, average="macro", zero_division=0))
    assert metrics["auc"]["value"] == pytest.approx(roc_auc_score(labels, [line["p_yes"] for line in found]))
    assert metrics["auc"]["low"] <= metrics["auc"]["value"] <= metrics["auc"]["high"]
    assert (results["n"], results["groups"], results["yes"]) == (24, 8, sum(labels))
    assert results["tokens"]["total"] == sum(line["tokens"] for line in found)
    assert results["data"]["reference"] == "test.jsonl"
    assert results["subject"]["checkpoint"] == "plain"
    assert results["threshold"] == {"value": 0.5, "from": "the default; none was chosen"}
    majority = results["baselines"]["majority"]
    assert (majority["class"], majority["class_from"]) == (0, "the judged records themselves")
    assert majority["metrics"]["accuracy"]["value"] == pytest.approx(1 - np.mean(labels))
    assert majority["metrics"]["auc"]["value"] == 0.5
    assert results["baselines"]["random"]["expected"]["accuracy"] == 0.5
    for name in ("results.json", "evaluation.json", "predictions.jsonl"):
        assert str(where) not in (tmp_path / "out" / name).read_text()


def test_a_coin_is_worth_what_is_said_of_it() -> None:
    from benchmarks.ecomscript.baselines import coin

    labels = [1] * 30_000 + [0] * 10_000
    thrown = coin(labels, seed=0)
    expected = thrown.facts["expected"]
    assert accuracy_score(labels, thrown.verdicts) == pytest.approx(expected["accuracy"], abs=0.01)
    assert f1_score(labels, thrown.verdicts, average="macro") == pytest.approx(expected["macro_f1"], abs=0.01)
    assert roc_auc_score(labels, thrown.margins) == pytest.approx(0.5, abs=0.01)


def test_a_finished_evaluation_is_read_and_other_resamples_need_no_judging(
    config: EcomScriptConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate(config)
    monkeypatch.setattr("models.scoring.Scoring.margins", lambda *_: pytest.fail("judged again"))
    assert evaluate(config) == first
    again = evaluate(replace(config, resamples=60))
    assert again["cost"] == first["cost"]
    assert again["bootstrap"]["resamples"] == 60


def test_predictions_are_the_same_bytes_after_half_of_them_were_lost(config: EcomScriptConfig, tmp_path: Path) -> None:
    config = replace(config, token_budget=60)
    evaluate(config)
    out = tmp_path / "out"
    whole = (out / "predictions.jsonl").read_bytes()
    (out / "predictions.jsonl").unlink()
    (out / "results.json").unlink()
    (out / "predictions.parts").mkdir()
    half = sorted(whole.splitlines(keepends=True))[:13]
    (out / "predictions.parts" / "process-3.jsonl").write_bytes(b"".join(half)[:-20])
    results = evaluate(config)
    assert 0 < results["cost"]["records"] < 24
    assert (out / "predictions.jsonl").read_bytes() == whole


def adapter(where: Path, folder: Path, base: str, head: str, **changes: Any) -> Path:
    """A judge with random adapter weights, as training saves one."""
    torch.manual_seed(5)
    judge = new_judge(
        resolve(str(where / base)),
        "script_verify",
        SCRIPT_VERIFY.template_version,
        ("No", "Yes"),
        LoadSettings(head=head, dtype="float32"),  # type: ignore[arg-type]
        LoraSettings(rank=4),
    ).with_spec(threshold=0.61, temperature=1.7, **changes)
    with torch.no_grad():
        for parameter in judge.model.parameters():
            if parameter.requires_grad:
                parameter.normal_(std=0.3)
    judge.save(folder)
    return folder


@pytest.mark.parametrize("head", ["classification", "verbalizer"])
def test_a_trained_judge_of_either_head_answers_as_peft_and_transformers_load_it(
    config: EcomScriptConfig, where: Path, tmp_path: Path, head: str
) -> None:
    folder = adapter(where, tmp_path / "minilm-seed0" / "adapter", "plain", head)
    results = evaluate(replace(config, adapter=str(folder), dtype=None))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if head == "classification":
        base = AutoModelForSequenceClassification.from_pretrained(
            where / "plain", num_labels=2, dtype=torch.float32, pad_token_id=tokenizer.pad_token_id
        )
    else:
        base = AutoModelForCausalLM.from_pretrained(where / "plain", dtype=torch.float32)
    model = PeftModel.from_pretrained(base, folder).eval()
    yes_no = [tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in (" No", " Yes")]
    found = lines(tmp_path / "out")
    for row, line in zip((script(k, "") for k in range(24)), found, strict=True):
        prompt = SCRIPT_VERIFY.render(
            ScriptRecord(id="x", goal=row["goal"], script=tuple(row["script"])),
            "plain" if head == "classification" else "instruction",
        )
        text = prompt.text.strip() if head == "classification" else f"{prompt.text}\nAnswer:"
        with torch.no_grad():
            logits = model(**tokenizer(text, return_tensors="pt", return_token_type_ids=False)).logits
        no, yes = logits[0] if head == "classification" else logits[0, -1, yes_no]
        assert line["margin"] == pytest.approx(float(yes - no), abs=1e-4)
        assert line["p_yes"] == pytest.approx(1 / (1 + np.exp(-line["margin"] / 1.7)))
        assert line["verdict"] == (line["p_yes"] >= 0.61)
    assert results["threshold"] == {"value": 0.61, "from": "judge.json"}
    assert (results["temperature"], results["subject"]["name"]) == (1.7, "minilm-seed0")


def test_the_threshold_is_the_best_on_validation(config: EcomScriptConfig, where: Path, tmp_path: Path) -> None:
    results = evaluate(replace(config, validation=str(where / "validation.jsonl")))
    seen = lines(tmp_path / "out", "validation")
    labels, p = np.array([line["label"] for line in seen]), np.array([line["p_yes"] for line in seen])

    def macro_f1(threshold: float) -> float:
        return float(f1_score(labels, p >= threshold, average="macro", zero_division=0))

    chosen = results["threshold"]["value"]
    assert macro_f1(chosen) == pytest.approx(max(macro_f1(t) for t in [*p, *(p + 1e-9), 0.0]))
    assert results["threshold"]["from"] == "best macro-F1 on 12 validation records"
    assert all(line["verdict"] == (line["p_yes"] >= chosen) for line in lines(tmp_path / "out"))
    assert results["baselines"]["majority"]["class_from"] == "the validation records"


@pytest.mark.parametrize("option", ["validation", "train"])
def test_what_is_judged_may_not_be_chosen_or_learned_on(config: EcomScriptConfig, tmp_path: Path, option: str) -> None:
    rows = [script(k, f"val{k % 4}") for k in range(100, 112)] + [script(99, "test3")]
    with pytest.raises(ValueError, match=r"1 groups are also in .*, first 'test3'; nothing may be chosen or learned"):
        evaluate(replace(config, **{option: write(tmp_path / "v.jsonl", rows)}))  # type: ignore[arg-type]


def pool() -> list[ScriptRecord]:
    return [ScriptRecord.model_validate(script(k, f"g{k % 20}")) for k in range(60)]


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_shots_are_balanced_and_of_groups_that_are_not_judged(count: int) -> None:
    judged = [record for record in pool() if record.group in ("g1", "g2", "g3")]
    for seed in range(20):
        shots = draw_shots(pool(), count, seed, judged)
        assert len(shots) == count
        assert abs(sum(1 if shot.label else -1 for shot in shots)) == count % 2
        assert len({shot.group for shot in shots} - {"g1", "g2", "g3"}) == count
    assert draw_shots(pool(), count, 3, judged) == draw_shots(pool(), count, 3, judged)


def test_shots_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match=r"t.jsonl: 6 shots need 3 records labelled \d, .* there are 2: give fewer"):
        draw_shots(
            pool(), 6, 0, [record for record in pool() if record.group not in ("g1", "g2", "g3", "g4", "g5")], "t.jsonl"
        )


def test_every_prompt_holds_the_shots_that_are_reported(
    config: EcomScriptConfig, where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def remember(scoring: Scoring, rows: Any) -> Any:
        decode = scoring.judge.encoder.tokenizer.decode
        read.extend(decode(scoring.encoded[row]["input_ids"]) for row in rows)
        return np.zeros(len(rows))

    monkeypatch.setattr("models.scoring.Scoring.margins", remember)
    asked = replace(config, checkpoint=str(where / "chat"), limit=5, shots=3, shots_from=str(where / "train.jsonl"))
    results = evaluate(asked)
    assert len(read) == 5
    train = {script(k, "")["goal"] for k in range(200, 230)}
    for text in read:
        assert text.count(f"{SCRIPT_VERIFY.question} Yes\n") + text.count(f"{SCRIPT_VERIFY.question} No\n") == 3
        assert sum(f"Goal: {goal}\n" in text for goal in train) == 3
    assert len({text.rsplit("Goal: ", 1)[0] for text in read}) == 1
    assert results["shots"] | {"ids": 3} == {"min": 3, "mean": 3.0, "max": 3, "asked": 3, "ids": 3}
    assert {line["shots"] for line in lines(tmp_path / "out")} == {3}


def test_shots_that_do_not_fit_are_refused(config: EcomScriptConfig, where: Path) -> None:
    with pytest.raises(ValueError, match=r"5 records do not fit 300 tokens .*give fewer shots \(there are 4\)"):
        evaluate(replace(config, limit=5, shots=4, max_length=300, shots_from=str(where / "train.jsonl")))


def products(folder: Path) -> str:
    long = {"title": "glove", "features": ["very long and warm"] * 40}
    rows = [
        {"id": f"p{k}", "goal": f"bake {k}", "step": STEPS[k % 5], "label": k % 2, "product": {"title": f"oven {k}"}}
        for k in range(6)
    ]
    rows += [
        {"id": "long", "goal": "bake", "step": "heat", "label": 1, "product": long},
        {"id": "hopeless", "goal": "bake", "step": "heat the oven " * 300, "label": 0, "product": long},
    ]
    return write(folder / "products.jsonl", rows)


def test_long_records_lose_product_text_and_what_cannot_fit_is_refused_or_counted(
    config: EcomScriptConfig, where: Path, tmp_path: Path
) -> None:
    asked = replace(config, judgment="step_product", data=products(tmp_path), checkpoint=str(where / "plain"))
    with pytest.raises(
        ValueError, match=r"predictions: 1 records do not fit 512 tokens .*: hopeless \(\d+ tokens\); .*--drop"
    ):
        evaluate(asked)
    results = evaluate(replace(asked, drop_too_long=True, out=str(tmp_path / "dropped")))
    found = {line["id"]: line for line in lines(tmp_path / "dropped")}
    assert set(found) == {*(f"p{k}" for k in range(6)), "long"}
    assert [name for name, line in found.items() if line["shortened"]] == ["long"]
    assert found["long"]["tokens"] <= 512
    assert (results["n"], results["shortened"], results["refused"]["count"]) == (7, 1, 1)
    assert list(results["refused"]["tokens"]) == ["hopeless"]


def test_auto_takes_masked_lm_for_encoders(config: EcomScriptConfig, where: Path, tmp_path: Path) -> None:
    results = evaluate(replace(config, checkpoint=str(where / "encoder"), limit=4))
    assert results["subject"]["method"] == "masked_lm"
    assert results["subject"]["statements"] == ["This is not plausible.", "This is plausible."]


def test_the_folder_is_named_after_judgment_subject_method_and_shots(
    config: EcomScriptConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evaluate(replace(config, out=None, limit=4))
    assert (tmp_path / "results/ecomscript/script_verify/plain-verbalizer-0shot/results.json").is_file()


def test_bag_of_words_learns_what_the_wording_gives_away(config: EcomScriptConfig, tmp_path: Path) -> None:
    def told(numbers: range, group: str) -> list[dict[str, Any]]:
        return [
            {
                **script(k, f"{group}{k}"),
                "script": ["start well" if k % 2 else "fail badly", STEPS[k % 5]],
                "label": k % 2,
            }
            for k in numbers
        ]

    asked = replace(
        config, checkpoint=None, method="bag_of_words", data=write(tmp_path / "t.jsonl", told(range(20), "t"))
    )
    results = evaluate(replace(asked, train=write(tmp_path / "train.jsonl", told(range(100, 141), "train"))))
    assert results["metrics"]["accuracy"]["value"] == 1.0
    assert results["metrics"]["auc"]["value"] == 1.0
    assert results["baselines"]["majority"]["class_from"] == "the training records"
    assert results["baselines"]["majority"]["class"] == 0  # 21 of the 41 numbers are even
    with pytest.raises(ValueError, match="learns from --train FILE"):
        evaluate(asked)


def test_an_untrained_classification_head_is_never_examined(
    config: EcomScriptConfig, where: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"plain is no trained judge .* a head of random weights is not examined"):
        evaluate(replace(config, method="judge"))
    whole = new_judge(
        resolve(str(where / "encoder")), "script_verify", SCRIPT_VERIFY.template_version, ("No", "Yes"),
        LoadSettings(dtype="float32"),
    )  # fmt: skip
    whole.save(tmp_path / "whole")
    evaluate(replace(config, checkpoint=str(tmp_path / "whole"), limit=4))  # its head lies in its file
    BertModel.from_pretrained(where / "encoder").save_pretrained(tmp_path / "whole")
    with pytest.raises(ValueError, match="whole holds no trained classifier: its head would be one of random weights"):
        evaluate(replace(config, checkpoint=str(tmp_path / "whole"), limit=4, overwrite=True))


def test_an_adapter_without_its_head_is_refused(config: EcomScriptConfig, where: Path, tmp_path: Path) -> None:
    folder = adapter(where, tmp_path / "adapter", "plain", "classification")
    weights = load_file(folder / "adapter_model.safetensors")
    save_file(
        {key: value for key, value in weights.items() if "score" not in key}, folder / "adapter_model.safetensors"
    )
    with pytest.raises(ValueError, match="adapter holds no trained classification head; train it first"):
        evaluate(replace(config, adapter=str(folder), dtype=None))


def test_a_judge_of_another_judgment_or_template_is_refused(
    config: EcomScriptConfig, where: Path, tmp_path: Path
) -> None:
    folder = adapter(where, tmp_path / "adapter", "plain", "classification", template_version="script_verify-0")
    with pytest.raises(ValueError, match="template script_verify-0; this version renders script_verify-1"):
        evaluate(replace(config, adapter=str(folder)))
    with pytest.raises(ValueError, match="is a judge for script_verify, not for step_product"):
        evaluate(replace(config, adapter=str(folder), judgment="step_product", data=products(tmp_path)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checkpoint": None}, "nobody to examine"),
        ({"checkpoint": "{where}/encoder", "method": "verbalizer"}, "takes no verbalizer head"),
        ({"checkpoint": "{where}/encoder", "shots": 2}, "only a verbalizer head reads solved examples"),
        ({"checkpoint": "{where}/encoder", "quantization": "nf4"}, "method masked_lm takes no quantization"),
        ({"adapter": "{where}/plain", "method": "nli"}, "method nli takes no adapter"),
        ({"adapter": "{where}/plain"}, "no judge.json"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(
    config: EcomScriptConfig, where: Path, changes: dict[str, Any], message: str
) -> None:
    changes = {key: value.format(where=where) if isinstance(value, str) else value for key, value in changes.items()}
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        evaluate(replace(config, shots_from=str(where / "train.jsonl"), **changes))


def test_another_evaluation_is_not_written_over(config: EcomScriptConfig) -> None:
    evaluate(replace(config, limit=4))
    with pytest.raises(ValueError, match=r"holds another evaluation: data is .* \(and 1 more differences\)"):
        evaluate(replace(config, limit=5, max_length=400))
    assert evaluate(replace(config, limit=5, overwrite=True))["n"] == 5
