"""Which models are taken, with which head, in which precision, and what pads their texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import DECODERS, ENCODERS, tiny_checkpoint, tiny_tokenizer
from transformers import AutoConfig, AutoModelForSequenceClassification, BitsAndBytesConfig

from models.backbone import (
    LoadSettings,
    head_modules,
    is_encoder,
    load_backbone,
    load_tokenizer,
    position_limit,
    resolve_dtype,
)
from models.checkpoint import resolve
from models.judge import Judge

HEADS = {
    "llama": ["score"],
    "mistral": ["score"],
    "qwen2": ["score"],
    "qwen3": ["score"],
    "gemma": ["score"],
    "bert": ["pooler", "classifier"],
    "roberta": ["classifier"],
    "deberta-v2": ["pooler", "classifier"],
    "modernbert": ["head", "classifier"],
}


@pytest.mark.parametrize("kind", [*DECODERS, "gemma2", "gemma3_text", "smollm3", "gpt2", "modernbert-decoder"])
def test_decoders_read_from_left_to_right(kind: str) -> None:
    assert not is_encoder(AutoConfig.for_model(kind))


@pytest.mark.parametrize("kind", [*ENCODERS, "deberta", "distilbert", "electra", "mpnet", "xlm-roberta", "longformer"])
def test_encoders_read_in_both_directions(kind: str) -> None:
    assert is_encoder(AutoConfig.for_model(kind))


def test_a_bert_made_a_decoder_is_one() -> None:
    assert not is_encoder(AutoConfig.for_model("bert", is_decoder=True))


@pytest.mark.parametrize(
    ("loaders", "encoder"),
    [(["AutoModel", "AutoModelForCausalLM"], False), (["AutoModel", "AutoModelForMaskedLM"], True)],
)
def test_remote_code_is_known_by_the_classes_it_brings(loaders: list[str], encoder: bool) -> None:
    config = AutoConfig.for_model("llama" if encoder else "bert")
    config.auto_map = dict.fromkeys(["AutoConfig", *loaders], "modeling.Model")
    config.auto_map["AutoConfig"] = "configuration.Config"
    assert is_encoder(config) == encoder


@pytest.mark.parametrize("architecture", [*DECODERS, *ENCODERS])
def test_a_classification_head_has_two_named_classes_and_known_modules(
    base: Callable[..., Path], architecture: str
) -> None:
    model = load_backbone(resolve(str(base(architecture))), LoadSettings(dtype="float32"), 0)
    assert head_modules(model) == HEADS[architecture]
    assert model.config.id2label == {0: "no", 1: "yes"}
    assert model.config.label2id == {"no": 0, "yes": 1}
    # Every parameter that decides between two classes is in those modules: all others are in the published file.
    published = {name.split(".", 1)[-1] for name in load_file(base(architecture) / "model.safetensors")}
    fresh = {name for name, _ in model.named_parameters() if name.split(".", 1)[-1] not in published}
    assert all(any(part in HEADS[architecture] for part in name.split(".")) for name in fresh)


def config_only(folder: Path, kind: str, **fields: Any) -> str:
    """A checkpoint's folder as far as its configuration goes; weights are never reached."""
    folder.mkdir()
    AutoConfig.for_model(kind, **fields).save_pretrained(folder)
    (folder / "model.safetensors").write_bytes(b"none")
    return str(folder)


@pytest.mark.parametrize(
    ("kind", "head", "said"),
    [
        ("t5", "classification", "is an encoder-decoder (t5); a judge is a decoder"),
        ("bart", "classification", "is an encoder-decoder (bart)"),
        ("t5", "verbalizer", "is an encoder-decoder (t5)"),
        ("gemma3", "verbalizer", "(gemma3) reads more than text; take a model of text alone"),
        ("bert", "verbalizer", "is an encoder (bert): it predicts no next token, so it takes no verbalizer head"),
        ("vit", "classification", "(vit) is no architecture that transformers gives a classification head to"),
        ("granite", "classification", "(granite) is no architecture that transformers gives a classification head to"),
        ("canine", "classification", "(canine) is no architecture that transformers gives a classification head to"),
        ("vit", "verbalizer", "(vit) is no architecture that transformers gives a verbalizer head to"),
    ],
)
def test_other_architectures_are_refused_in_words(tmp_path: Path, kind: str, head: str, said: str) -> None:
    checkpoint = resolve(config_only(tmp_path / "other", kind))
    with pytest.raises(ValueError) as caught:
        load_backbone(checkpoint, LoadSettings(head=head), 0)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_a_checkpoint_stored_in_four_bits_is_refused_unless_that_is_asked_for(tmp_path: Path) -> None:
    quantized = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    checkpoint = resolve(config_only(tmp_path / "other", "llama", quantization_config=quantized))
    with pytest.raises(ValueError, match="is stored in 4 bits; give the checkpoint in full precision, or set quant"):
        load_backbone(checkpoint, LoadSettings(), 0)


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, {"format": "pt"})


@pytest.mark.parametrize("head", ["classification", "verbalizer"])
def test_a_checkpoint_that_lacks_weights_outside_the_head_is_refused(tmp_path: Path, head: str) -> None:
    folder = tiny_checkpoint(tmp_path / "llama", "llama")
    rewrite(folder, lambda tensors: {name: t for name, t in tensors.items() if "layers.1.mlp.up_proj" not in name})
    with pytest.raises(ValueError, match=r"lacks weights that are not part of a new head: .*layers.1.mlp.up_proj"):
        load_backbone(resolve(str(folder)), LoadSettings(head=head, dtype="float32"), 0)  # type: ignore[arg-type]


def test_a_classifier_has_no_next_token_to_verbalize(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "llama", "llama", head="classification")
    with pytest.raises(ValueError, match=r"lacks weights .*: lm_head.weight"):
        load_backbone(resolve(str(folder)), LoadSettings(head="verbalizer", dtype="float32"), 0)


def test_a_head_of_another_task_makes_room_for_a_new_one_and_the_rest_is_kept(
    base: Callable[..., Path], tmp_path: Path
) -> None:
    nli = AutoModelForSequenceClassification.from_pretrained(base("bert"), num_labels=3)
    nli.save_pretrained(tmp_path / "nli")
    tiny_tokenizer("encoder").save_pretrained(tmp_path / "nli")
    model = load_backbone(resolve(str(tmp_path / "nli")), LoadSettings(dtype="float32"), 0)
    assert model.classifier.weight.shape == (2, 32)
    assert torch.equal(model.bert.pooler.dense.weight, nli.bert.pooler.dense.weight)
    assert torch.equal(model.bert.encoder.layer[1].output.dense.weight, nli.bert.encoder.layer[1].output.dense.weight)


def test_a_checkpoint_of_other_sizes_than_its_configuration_says_is_refused(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "bert", "bert")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 128}))
    with pytest.raises(ValueError, match=r"lacks weights that are not part of a new head: .*intermediate.dense"):
        load_backbone(resolve(str(folder)), LoadSettings(dtype="float32"), 0)


def test_auto_is_what_this_machine_is_fastest_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for dtype in (torch.bfloat16, torch.float32):
        monkeypatch.setattr("models.backbone.fastest", lambda dtype=dtype: dtype)
        assert resolve_dtype("auto") == dtype
    assert resolve_dtype("float16") == torch.float16
    assert resolve_dtype("exact") == torch.float32


# Padding


def saved_tokenizer(folder: Path, **changes: Any) -> Any:
    """A decoder's tokenizer with some of its special tokens changed, as `load_tokenizer` sees it."""
    tokenizer = tiny_tokenizer("decoder")
    if extra := changes.pop("added", None):
        tokenizer.add_tokens(extra, special_tokens=True)
    for name, token in changes.items():
        setattr(tokenizer, name, token)
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(b"none")
    return load_tokenizer(resolve(str(folder)))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "<pad>"),  # its own
        ({"pad_token": None}, "<pad>"),  # in the vocabulary, though not set
        ({"pad_token": "</s>"}, "<pad>"),  # set to eos, as most published decoders have it
        ({"pad_token": "</s>", "eos_token": "<pad>"}, "</s>"),  # odd, but different from eos
        ({"pad_token": "<|im_end|>", "eos_token": "<|im_end|>"}, "<pad>"),
        ({"eos_token": "<pad>"}, "<unk>"),  # a name like pad does not help the token that ends
        ({"pad_token": "<unk>"}, "<unk>"),  # odd, but the publisher's word
    ],
)
def test_what_pads_is_not_what_ends(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    tokenizer = saved_tokenizer(tmp_path / "tokenizer", **changes)
    assert tokenizer.pad_token == expected
    assert len(tokenizer) == 400


def without_pad(folder: Path, **changes: Any) -> Any:
    """The same for a vocabulary in which no token is called anything like pad."""
    tokenizer = tiny_tokenizer("decoder")
    state = json.loads(tokenizer.backend_tokenizer.to_str().replace("<pad>", "<fim>"))
    folder.mkdir()
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>", **changes}
    (folder / "tokenizer.json").write_text(json.dumps(state))
    kept = {name: token for name, token in names.items() if token is not None}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **kept}))
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(b"none")
    return load_tokenizer(resolve(str(folder)))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "<unk>"),
        ({"unk_token": "</s>"}, "<s>"),  # GPT-2 calls its end token unknown; no text ends with its beginning
        ({"unk_token": None}, "<s>"),
        ({"unk_token": "</s>", "bos_token": "</s>"}, "</s>"),  # nothing is left; texts that end so are then refused
        ({"extra_special_tokens": ["<|im_start|>", "<|reserved_special_token_0|>"]}, "<|reserved_special_token_0|>"),
    ],
)
def test_where_nothing_is_called_pad_a_token_that_ends_no_text_pads(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    assert without_pad(tmp_path / "tokenizer", **changes).pad_token == expected


def test_a_tokenizer_without_any_such_token_is_refused(tmp_path: Path) -> None:
    changes = {"bos_token": None, "eos_token": None, "unk_token": None, "pad_token": None}
    with pytest.raises(ValueError, match="has no pad, unknown, begin or end token; add a pad token to it first"):
        without_pad(tmp_path / "tokenizer", **changes)


def test_the_model_is_told_what_pads(fresh: Callable[..., Judge]) -> None:
    assert fresh("llama").model.config.pad_token_id == fresh("llama").encoder.tokenizer.pad_token_id == 0


def test_a_pad_token_beyond_the_model_s_vocabulary_is_refused(base: Callable[..., Path]) -> None:
    with pytest.raises(ValueError, match="pads with token 400, but the model has embeddings for 400 tokens only"):
        load_backbone(resolve(str(base("llama"))), LoadSettings(dtype="float32"), 400)


# Positions


@pytest.mark.parametrize(("architecture", "expected"), [("llama", 512), ("bert", 512), ("modernbert", 512)])
def test_a_model_takes_as_many_tokens_as_it_has_positions(
    fresh: Callable[..., Judge], architecture: str, expected: int
) -> None:
    judge = fresh(architecture)
    assert judge.max_length == expected
    assert judge.with_spec(max_length=64).max_length == 64
    assert judge.with_spec(max_length=100_000).max_length == expected


def test_roberta_counts_positions_from_behind_its_pad_token(base: Callable[..., Path], tmp_path: Path) -> None:
    """With pad token 1, as published, 514 positions serve 512 tokens: the 513th has no place in the table."""
    config = AutoConfig.from_pretrained(base("roberta"))
    config.pad_token_id = 1
    model = AutoModelForSequenceClassification.from_config(config).eval()
    assert position_limit(model) == 512
    for length, fits in ((512, True), (513, False)):
        ids = torch.full((1, length), 7)
        if fits:
            model(input_ids=ids, attention_mask=torch.ones_like(ids))
        else:
            with pytest.raises((IndexError, RuntimeError), match="out of"):
                model(input_ids=ids, attention_mask=torch.ones_like(ids))


@pytest.mark.parametrize("fields", [{}, {"max_position_embeddings": None}, {"max_position_embeddings": -1}])
def test_a_model_without_a_limit_has_none(fields: dict[str, Any]) -> None:
    model = torch.nn.Linear(1, 1)
    model.config = SimpleNamespace(**fields)  # type: ignore[assignment]
    assert position_limit(model) is None
