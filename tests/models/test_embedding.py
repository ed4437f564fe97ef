"""Sentence embeddings: equal to a plain computation of one text at a time, whatever stands beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from models.checkpoint import resolve
from models.embedding import Embedder, pool

TEXTS = ["bake bread", "hang the lights in the garden and call the guests", "oven", "mix flour and water " * 6, ""]


def plain(folder: Path, text: str, pooling: str = "mean", max_length: int = 512) -> np.ndarray:
    """One text through transformers alone: no padding, no batch."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder, dtype=torch.float32)
    batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=max_length)
    with torch.no_grad():
        states = model.eval()(**batch).last_hidden_state[0]
    vector = {"mean": states.mean(dim=0), "cls": states[0], "last": states[-1]}[pooling]
    return (vector / vector.norm()).numpy()


def copy_with(folder: Path, target: Path, files: dict[str, object]) -> Path:
    shutil.copytree(folder, target)
    for name, content in files.items():
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_text(json.dumps(content))
    return target


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert", "qwen3"])
def test_vectors_equal_a_plain_computation_of_each_text(base: Callable[..., Path], architecture: str) -> None:
    folder, texts = base(architecture), TEXTS[:4]
    vectors = Embedder(resolve(str(folder)), dtype="float32").embed(texts, token_budget=64)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [plain(folder, text) for text in texts], atol=1e-5)


def test_a_vector_depends_neither_on_the_batch_nor_on_the_order(base: Callable[..., Path]) -> None:
    embedder = Embedder(resolve(str(base("bert"))), dtype="float32")
    whole = embedder.embed(TEXTS, token_budget=10_000)
    np.testing.assert_allclose(embedder.embed(TEXTS[::-1], token_budget=8)[::-1], whole, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(("key", "pooling"), [("pooling_mode_cls_token", "cls"), ("pooling_mode_lasttoken", "last")])
def test_the_pooling_that_a_checkpoint_declares_is_used(
    base: Callable[..., Path], tmp_path: Path, key: str, pooling: str
) -> None:
    declared = {"pooling_mode_mean_tokens": False, key: True, "word_embedding_dimension": 32}
    folder = copy_with(base("bert"), tmp_path / "declared", {"1_Pooling/config.json": declared})
    vectors = Embedder(resolve(str(folder)), dtype="float32").embed(TEXTS)
    np.testing.assert_allclose(vectors, [plain(folder, text, pooling) for text in TEXTS], atol=1e-5)


def test_a_pooling_that_is_not_known_is_refused_by_name(base: Callable[..., Path], tmp_path: Path) -> None:
    files = {"1_Pooling/config.json": {"pooling_mode_weightedmean_tokens": True}}
    folder = copy_with(base("bert"), tmp_path / "odd", files)
    with pytest.raises(ValueError, match="asks for pooling_mode_weightedmean_tokens; known are the mean"):
        Embedder(resolve(str(folder)))


def test_texts_are_cut_where_the_checkpoint_says_and_that_is_told(
    base: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = copy_with(base("bert"), tmp_path / "short", {"sentence_bert_config.json": {"max_seq_length": 6}})
    embedder = Embedder(resolve(str(folder)), dtype="float32")
    vectors = embedder.embed(TEXTS)
    np.testing.assert_allclose(vectors[1], plain(folder, TEXTS[1], max_length=6), atol=1e-5)
    lengths = [len(ids) for ids in AutoTokenizer.from_pretrained(folder)(TEXTS)["input_ids"]]
    longer = sum(length > 6 for length in lengths)
    assert 0 < longer < len(TEXTS)
    assert f"{longer} of 5 texts were cut at 6 tokens" in caplog.text
    assert Embedder(resolve(str(folder)), max_length=9).max_length == 9  # what is asked for wins over what is declared


def test_no_more_tokens_than_the_model_has_positions_for(base: Callable[..., Path]) -> None:
    embedder = Embedder(resolve(str(base("roberta"))), dtype="float32", max_length=100_000)
    assert embedder.max_length == 514 - 1  # RoBERTa counts positions from behind its pad token, here the first
    assert np.isfinite(embedder.embed(["bread " * 3000])).all()


def test_vectors_stream_to_a_file_that_holds_the_same(
    base: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.embedding.CHUNK", 2)
    embedder = Embedder(resolve(str(base("bert"))), dtype="float32")
    stored = embedder.embed_to(tmp_path / "vectors.npy", TEXTS)
    assert isinstance(stored, np.memmap)
    np.testing.assert_allclose(stored, embedder.embed(TEXTS), atol=1e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.npy"]


def test_bfloat16_points_the_same_way(base: Callable[..., Path]) -> None:
    exact = Embedder(resolve(str(base("bert"))), dtype="float32").embed(TEXTS)
    rounded = Embedder(resolve(str(base("bert"))), dtype="bfloat16").embed(TEXTS)
    assert rounded.dtype == np.float32
    assert ((exact * rounded).sum(axis=1) > 0.99).all()


def test_an_incomplete_checkpoint_is_refused(base: Callable[..., Path], tmp_path: Path) -> None:
    folder = copy_with(base("bert"), tmp_path / "deeper", {})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ValueError, match=r"lacks weights \(.*layer\.2.*incomplete"):
        Embedder(resolve(str(folder)))


def test_pooling_leaves_padding_out() -> None:
    states = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [90.0, 90.0]]])
    mask = torch.tensor([[1, 1, 0]])
    assert pool(states, mask, "mean").tolist() == [[2.0, 3.0]]
    assert pool(states, mask, "last").tolist() == [[3.0, 4.0]]
    assert pool(states, mask, "cls").tolist() == [[1.0, 2.0]]


@pytest.mark.slow
def test_the_packaged_encoder_finds_what_belongs_together() -> None:
    """Cosines of the model's card: 0.61 to what is meant, 0.06 to something else."""
    texts = ["a tent for camping in the woods", "lightweight backpacking tent for two people", "how to file my taxes"]
    tent, other_tent, taxes = Embedder(resolve("minilm"), dtype="float32").embed(texts)
    assert tent @ other_tent == pytest.approx(0.61, abs=0.02)
    assert tent @ taxes == pytest.approx(0.06, abs=0.02)
