"""Attention over packed batches gives what each row gives alone, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny_checkpoint
from tiny_judges import PROMPTS, Prompt, shake
from transformers import Gemma3TextConfig, Phi3Config

from models import attention, packing, pieces
from models.attention import PACKABLE
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import Judge, new_judge
from models.lora import LoraSettings
from models.packing import Packed, pack
from models.scoring import Scoring, margins

# A window shorter than the prompts, where an architecture has one.
WINDOWS: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": 16},
    "gemma3_text": {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]},
}
MORE = [Prompt(("You check plans.\n", "Goal: bake bread at home\n"), f"Script: 1. mix {what}") for what in "abc"]
ROWS = [*PROMPTS, *MORE, PROMPTS[0]]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], tuple[Judge, Judge]]:
    """``pair(architecture, head)``: the same judge with packed attention, and with transformers' SDPA attention."""

    def make(architecture: str, head: str) -> tuple[Judge, Judge]:
        folder = tiny_checkpoint(
            tmp_path_factory.mktemp("attention") / architecture, architecture, **WINDOWS.get(architecture, {})
        )
        judges = []
        for how in (None, "sdpa"):
            settings = LoadSettings(head=head, dtype="float32", attention=how)  # type: ignore[arg-type]
            torch.manual_seed(0)
            judge = new_judge(
                resolve(str(folder)), "j", "j-1", ("No", "Yes"), settings, LoraSettings(rank=4, alpha=8, dropout=0.0)
            )
            shake(judge)
            judges.append(judge)
        return judges[0], judges[1]

    return make


COMBINATIONS = [(name, head) for name in PACKABLE for head in ("classification", "verbalizer")]


@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_logits_and_gradients_are_those_of_each_row_alone(
    pair: Callable[[str, str], tuple[Judge, Judge]], architecture: str, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MIN_SHARED", 3)
    packs, plain = pair(architecture, head)
    assert packs.packs and not plain.packs
    encoded = packs.encoder.encode(ROWS)
    batch = packs.collate(encoded)
    assert isinstance(batch, Packed)
    assert batch.prefix >= 3
    assert len(batch.trees) > 1 and batch.filling and batch.tokens < batch.unshared * 0.9
    assert sum(len(like.places) for like in batch.trees) < len(ROWS)  # some trees branch
    alone = torch.cat([plain.logits(plain.collate([row])) for row in encoded])
    together = packs.logits(batch)
    assert (together - alone).abs().max() < 1e-5
    assert (alone[0] - alone[1]).abs().max() > 1e-3  # rows differ, so that a mix-up would show
    for logits in (together, alone):
        (logits[:, 1] - logits[:, 0]).cumsum(0).sum().backward()
    for (name, ours), (_, theirs) in zip(packs.model.named_parameters(), plain.model.named_parameters(), strict=True):
        if ours.requires_grad:
            assert ours.grad is not None and theirs.grad is not None
            scale = theirs.grad.abs().max().clamp(min=1e-3)
            assert ((ours.grad - theirs.grad) / scale).abs().max() < 1e-4, name


@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_a_prefix_computed_once_serves_every_batch(
    pair: Callable[[str, str], tuple[Judge, Judge]], architecture: str, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MIN_SHARED", 3)
    packs, plain = pair(architecture, head)
    encoded = packs.encoder.encode(ROWS)
    scoring = Scoring(packs, encoded, token_budget=30)
    assert len(scoring.batches) > 2 and scoring.prefix >= 3
    found = dict(enumerate(margins(packs, encoded, token_budget=30)))
    with torch.inference_mode():
        alone = torch.cat([plain.logits(plain.collate([row])) for row in encoded])
    expected = dict(enumerate((alone[:, 1] - alone[:, 0]).tolist()))
    assert found == pytest.approx(expected, abs=1e-5)
    # Large trees one after the other, in pieces of a few queries.
    monkeypatch.setattr(attention, "LARGE", 0)
    monkeypatch.setattr(pieces, "TABLE", 0)
    monkeypatch.setattr(pieces, "FEWEST", 4)
    assert dict(enumerate(margins(packs, encoded, token_budget=30))) == pytest.approx(expected, abs=1e-5)


def test_gradient_checkpointing_computes_the_same_layout_again(
    pair: Callable[[str, str], tuple[Judge, Judge]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MIN_SHARED", 3)
    packs, _ = pair("llama", "verbalizer")
    packs.model.train()
    batch = packs.collate(packs.encoder.encode(ROWS))
    found = []
    for checkpointing in (False, True):
        if checkpointing:
            packs.model.gradient_checkpointing_enable({"use_reentrant": False})
        packs.model.zero_grad()
        packs.logits(batch).square().sum().backward()
        found.append([p.grad.clone() for p in packs.model.parameters() if p.requires_grad])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_other_architectures_and_a_chosen_attention_read_padded_batches(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "bert", "bert")
    judge = new_judge(resolve(str(folder)), "j", "j-1", ("No", "Yes"), LoadSettings(dtype="float32"))
    assert not judge.packs
    assert isinstance(judge.collate(judge.encoder.encode(PROMPTS)), dict)


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_rows_do_not_share_a_batch_whose_longest_row_turns_all(kind: str) -> None:
    ordinary = {"rope_type": "default", "rope_theta": 10000.0}
    assert attention.packs(Phi3Config(rope_parameters=ordinary))
    assert attention.packs(Gemma3TextConfig())  # one set of parameters for each type of layer
    turned = Phi3Config()
    turned.rope_parameters = {**ordinary, "rope_type": kind}
    assert not attention.packs(turned)


def test_without_a_layout_it_is_transformers_own_attention(pair: Callable[[str, str], tuple[Judge, Judge]]) -> None:
    packs, plain = pair("llama", "verbalizer")
    batch = packs.encoder.pad(packs.encoder.encode(PROMPTS))
    with torch.inference_mode():
        assert torch.equal(packs.logits(batch), plain.logits(batch))


def test_keys_and_values_are_kept_layer_by_layer(pair: Callable[[str, str], tuple[Judge, Judge]]) -> None:
    packs, _ = pair("llama", "verbalizer")
    kept: list[Any] = []
    packs.logits(replace(pack([[5, 6, 7, 8]]), keep=kept))
    assert [tuple(side.shape for side in layer) for layer in kept] == [((1, 2, 4, 8), (1, 2, 4, 8))] * 2
