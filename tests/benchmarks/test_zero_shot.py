"""Zero-shot routes for encoders, each against the same model used by hand, one text at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import tiny_checkpoint, tiny_tokenizer
from tokenizers import processors
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertModel,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

from benchmarks.ecomscript.zero_shot import Vera, load_zero_shot
from models.backbone import LoadSettings
from models.checkpoint import resolve
from recipes.judgments import get_judgment
from recipes.step_product import STEP_PRODUCT, StepProductRecord

CPU = torch.device("cpu")
FLOAT32 = LoadSettings(dtype="float32")
RECORDS = [
    StepProductRecord.model_validate(
        {
            "id": "1",
            "goal": "bake bread",
            "step": "heat the oven",
            "product": {"title": "oven glove", "features": ["red"]},
        }
    ),
    StepProductRecord.model_validate(
        {"id": "2", "goal": "plan a party at home", "step": "hang lights", "product": {"title": "string lights (10 m)"}}
    ),
    StepProductRecord.model_validate({"id": "3", "goal": "rise", "step": "mix", "product": {"title": "flour"}}),
]
ITEMS = [
    "Goal: bake bread\nStep: heat the oven\nProduct: oven glove - red",
    "Goal: plan a party at home\nStep: hang lights\nProduct: string lights (10 m)",
    "Goal: rise\nStep: mix\nProduct: flour",
]
STATEMENT = "The product serves the step."


def load(method: str, folder: Path, **options: Any) -> Any:
    length = options.pop("max_length", None)
    return load_zero_shot(
        method, STEP_PRODUCT, resolve(str(folder)), LoadSettings(dtype="float32", **options), length, CPU
    )


@pytest.mark.parametrize("architecture", ["bert", "roberta", "deberta-v2", "modernbert"])
def test_masked_lm_margins_are_those_of_a_naive_loop(tmp_path: Path, architecture: str) -> None:
    folder = tiny_checkpoint(tmp_path / "m", architecture)
    scorer = load("masked_lm", folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    expected = []
    for item in ITEMS:
        scores = []
        for candidate in ("This is not plausible.", "This is plausible."):
            head = tokenizer(item, add_special_tokens=False)["input_ids"]
            tail = tokenizer(f" {candidate}", add_special_tokens=False)["input_ids"]
            ids = [tokenizer.cls_token_id, *head, *tail, tokenizer.sep_token_id]
            total = 0.0
            for place in range(1 + len(head), 1 + len(head) + len(tail)):
                hidden = torch.tensor([[*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]])
                with torch.no_grad():
                    total += model(hidden).logits[0, place].log_softmax(-1)[ids[place]].item()
            scores.append(total / len(tail))
        expected.append(scores[1] - scores[0])
    assert scorer.margins(RECORDS) == pytest.approx(expected, abs=1e-4)
    assert scorer.margins(RECORDS[1:2]) == pytest.approx(expected[1:2], abs=1e-4)
    assert min(abs(value) for value in expected) > 1e-2  # the comparison means something


def test_a_record_costs_a_row_for_each_hidden_token(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "m", "bert")
    scorer = load("masked_lm", folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    lengths, hidden = [], []
    for candidate in ("This is not plausible.", "This is plausible."):
        lengths.append(len(tokenizer(f"{ITEMS[0]} {candidate}")["input_ids"]))
        hidden.append(len(tokenizer(f" {candidate}", add_special_tokens=False)["input_ids"]))
    assert scorer.lengths(RECORDS[:1]) == [max(lengths)]
    assert scorer.costs(RECORDS[:1]) == [lengths[0] * hidden[0] + lengths[1] * hidden[1]]


def test_an_encoder_without_a_masked_lm_head_is_refused(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "m", "bert")
    BertModel.from_pretrained(folder).save_pretrained(tmp_path / "bare")
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "bare")
    with pytest.raises(ValueError, match=r"bare cannot be used with method masked_lm: it lacks .*random weights"):
        load("masked_lm", tmp_path / "bare")


def test_a_tokenizer_without_a_mask_is_refused(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "m", "bert")
    tiny_tokenizer("decoder").save_pretrained(folder)
    with pytest.raises(ValueError, match="no mask token"):
        load("masked_lm", folder)


def classifier(folder: Path, labels: list[str], architecture: str = "bert") -> Path:
    """A tiny sequence classifier with these label names, in this order."""
    tiny_checkpoint(folder, architecture)
    torch.manual_seed(7)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=len(labels), id2label=dict(enumerate(labels)), label2id={n: k for k, n in enumerate(labels)}
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1 and parameter.std() < 0.05:
                parameter.mul_(10)
    model.save_pretrained(folder)
    return folder


def nli_logits(folder: Path) -> torch.Tensor:
    """[records, labels]: item and statement as premise and hypothesis, one pair at a time."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        return torch.cat([model(**tokenizer(item, STATEMENT, return_tensors="pt")).logits for item in ITEMS])


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
@pytest.mark.parametrize(
    "labels", [["contradiction", "neutral", "entailment"], ["ENTAILMENT", "NEUTRAL", "CONTRADICTION"]]
)
def test_nli_margins_follow_the_label_names_of_the_checkpoint(
    tmp_path: Path, architecture: str, labels: list[str]
) -> None:
    folder = classifier(tmp_path / "nli", labels, architecture)
    scorer = load("nli", folder)
    logits = nli_logits(folder)
    place = {label.lower(): k for k, label in enumerate(labels)}
    assert scorer.margins(RECORDS) == pytest.approx((logits[:, place["entailment"]] - logits[:, 1]).numpy(), abs=1e-4)
    scorer.against = "contradiction"
    expected = logits[:, place["entailment"]] - logits[:, place["contradiction"]]
    assert scorer.margins(RECORDS) == pytest.approx(expected.numpy(), abs=1e-4)
    assert expected.abs().max() > 1e-2


@pytest.mark.parametrize("labels", [["LABEL_0", "LABEL_1", "LABEL_2"], ["entailment", "not_entailment"]])
def test_a_classifier_that_does_not_name_the_three_labels_is_refused(tmp_path: Path, labels: list[str]) -> None:
    with pytest.raises(ValueError, match=f"its labels are {labels[0]}, .* needs entailment, neutral and contradiction"):
        load("nli", classifier(tmp_path / "nli", labels))


def test_label_names_without_a_trained_head_are_refused(tmp_path: Path) -> None:
    folder = classifier(tmp_path / "nli", ["contradiction", "neutral", "entailment"])
    weights = load_file(folder / "model.safetensors")
    save_file(
        {k: v for k, v in weights.items() if "classifier" not in k}, folder / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(ValueError, match=r"it lacks classifier\.bias, classifier\.weight"):
        load("nli", folder)


def test_a_one_label_classifier_gives_its_logit(tmp_path: Path) -> None:
    folder = classifier(tmp_path / "one", ["plausible"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        expected = [model(**tokenizer(f"{item} {STATEMENT}", return_tensors="pt")).logits.item() for item in ITEMS]
    assert load("plausibility", folder).margins(RECORDS) == pytest.approx(expected, abs=1e-4)


def tiny_vera(folder: Path, temperature: float = 2.5, model_class: Any = T5EncoderModel) -> Path:
    """A T5 of random weights; the rows of three reserved tokens hold head, bias and temperature as VERA's do."""
    tokenizer = tiny_tokenizer("decoder")
    tokenizer.add_tokens(["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"], special_tokens=True)
    end = tokenizer.convert_tokens_to_ids("</s>")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        "$A </s>", special_tokens=[("</s>", end)]
    )
    torch.manual_seed(3)
    config = T5Config(
        vocab_size=len(tokenizer) + 5, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, pad_token_id=0
    )
    model = model_class(config)
    with torch.no_grad():
        first = tokenizer.convert_tokens_to_ids("<extra_id_0>")
        model.shared.weight[first] = torch.randn(32)
        model.shared.weight[first + 1, 0] = 0.75
        model.shared.weight[first + 2, 0] = temperature
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_vera_is_the_published_formula(tmp_path: Path) -> None:
    folder = tiny_vera(tmp_path / "vera")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = T5EncoderModel.from_pretrained(folder, dtype=torch.float32).eval()
    table = model.shared.weight.detach()
    head = table[tokenizer.convert_tokens_to_ids("<extra_id_0>")]
    expected = []
    for item in ITEMS:
        ids = tokenizer(f"{item} {STATEMENT}")["input_ids"]
        assert ids[-1] == tokenizer.convert_tokens_to_ids("</s>")
        with torch.no_grad():
            last = model(torch.tensor([ids])).last_hidden_state[0, -1]
        expected.append(float(last @ head) + 0.75)
    scorer = load("plausibility", folder)
    assert isinstance(scorer, Vera)
    assert scorer.margins(RECORDS) == pytest.approx(expected, abs=1e-4)
    assert (scorer.temperature, scorer.threshold, scorer.max_length) == (2.5, 0.5, 128)
    assert load("plausibility", folder, max_length=300).max_length == 300


def test_a_t5_encoder_without_a_head_in_its_reserved_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="its temperature would be -1; this encoder holds no plausibility head"):
        load("plausibility", tiny_vera(tmp_path / "t5", temperature=-1.0))


def test_a_plain_t5_has_no_plausibility_head(tmp_path: Path) -> None:
    folder = tiny_vera(tmp_path / "t5", model_class=T5ForConditionalGeneration)
    with pytest.raises(ValueError, match="needs a T5 encoder with VERA's head or a sequence classifier of one label"):
        load("plausibility", folder)


@pytest.mark.parametrize("judgment", ["script_verify", "step_product", "holistic_verify"])
def test_every_judgment_has_its_statement(tmp_path: Path, judgment: str) -> None:
    folder = tiny_vera(tmp_path / "vera")
    scorer = load_zero_shot("plausibility", get_judgment(judgment), resolve(str(folder)), FLOAT32, None, CPU)
    step = {"step": "x", "products": [{"title": "oven"}]}
    record = {"id": "1", "goal": "g", "step": "s", "product": {"title": "oven"}, "script": [step]}
    if judgment == "script_verify":
        record["script"] = ["x"]
    assert scorer.margins([get_judgment(judgment).record.model_validate(record)]).shape == (1,)
