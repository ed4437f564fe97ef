"""A judge says the same alone and in any batch, saved and loaded, here and with peft and transformers alone."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plain
import pytest
import torch
from tiny import DECODERS, ENCODERS, tiny_checkpoint
from tiny_judges import COMBINATIONS, PROMPTS, Made, Prompt, edit, logits_of, shake

from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import Judge, load_judge, new_judge
from models.lora import LoraSettings

FLOAT32 = LoadSettings(dtype="float32")


@pytest.fixture(scope="module")
def elsewhere(made: Callable[..., Made], tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], Any]:
    """What a fresh process with peft and transformers alone says of every judge."""
    jobs = {}
    for architecture, head in COMBINATIONS:
        for dtype in ("float32", "bfloat16"):
            judge = made(architecture, head, dtype)
            texts = plain.texts_of(PROMPTS, head, architecture in ENCODERS)
            paths = {"adapter": str(judge.folder), "base": str(judge.base)}
            jobs[architecture, head, dtype] = {**paths, "head": head, "texts": texts}
    path = tmp_path_factory.mktemp("jobs") / "jobs.json"
    path.write_text(json.dumps(list(jobs.values())))
    command = [sys.executable, plain.__file__, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=path.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(jobs, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_a_fresh_process_without_us_gives_the_same_logits_and_the_very_same_head(
    made: Callable[..., Made], elsewhere: dict[Any, Any], architecture: str, head: str, dtype: str
) -> None:
    judge, found = made(architecture, head, dtype), elsewhere[architecture, head, dtype]
    ours = judge.logits(load_judge(judge.folder, str(judge.base), FLOAT32))
    assert np.abs(np.array(found["logits"]) - ours.numpy()).max() < 1e-5
    assert ours.std(dim=0).max() > 1e-3  # the texts are told apart, so that the line above says something
    in_memory = plain.head_digests(judge.judge.model)
    assert found["head"] == in_memory
    assert bool(in_memory) == (head == "classification")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_a_judge_is_loaded_as_it_was_trained_and_says_the_same_to_the_last_bit(
    made: Callable[..., Made], architecture: str, head: str, dtype: str
) -> None:
    judge = made(architecture, head, dtype)
    loaded = load_judge(judge.folder, str(judge.base))
    assert loaded.spec == judge.judge.spec
    assert next(loaded.model.parameters()).dtype == getattr(torch, dtype)
    assert torch.equal(judge.logits(), judge.logits(loaded))
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert [loaded.encoder.encode(PROMPTS), loaded.max_length] == [judge.encoded, judge.judge.max_length]


@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_no_batch_and_no_padding_changes_a_logit(made: Callable[..., Made], architecture: str, head: str) -> None:
    judge = made(architecture, head)
    tokenizer, model = plain.load(str(judge.folder), str(judge.base), head)
    words = [" No", " Yes"] if head == "verbalizer" else None
    alone = torch.tensor(plain.logits(tokenizer, model, plain.texts_of(PROMPTS, head, architecture in ENCODERS), words))
    rows = judge.encoded
    pairs = torch.cat([logits_of(judge.judge, [rows[2], row])[1:] for row in rows])
    batches = {
        "together": logits_of(judge.judge, rows),
        "backwards": logits_of(judge.judge, rows[::-1]).flip(0),
        "padded further": logits_of(judge.judge, rows, length=300),
        "beside the longest": pairs,
    }
    for name, found in batches.items():
        assert (found - alone).abs().max() < 1e-5, name


@pytest.mark.parametrize(("architecture", "head"), [pair for pair in COMBINATIONS if pair[0] in DECODERS])
def test_the_other_side_of_padding_gives_the_same_logits(
    made: Callable[..., Made], architecture: str, head: str
) -> None:
    judge = made(architecture, head)
    tokenizer = judge.judge.encoder.tokenizer
    ids = [row["input_ids"] for row in judge.encoded]
    tokenizer.padding_side = {"verbalizer": "right", "classification": "left"}[head]
    batch = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
    tokenizer.padding_side = {"verbalizer": "left", "classification": "right"}[head]
    with torch.inference_mode():
        if head == "classification":
            found = judge.judge.model(**batch).logits
        else:
            hidden = judge.judge.model.get_base_model().model(**batch).last_hidden_state
            last = hidden[range(len(ids)), [len(row) - 1 for row in ids]]
            words = judge.judge.model.get_output_embeddings().weight[list(judge.judge.label_ids or ())]
            found = last @ words.T
    assert (found - judge.logits()).abs().max() < 1e-5


@pytest.mark.parametrize("head", ["classification", "verbalizer"])
def test_a_backbone_that_is_published_padding_with_its_end_token_gets_another(tmp_path: Path, head: str) -> None:
    folder = tiny_checkpoint(tmp_path / "llama")
    edit(folder / "config.json", pad_token_id=2, eos_token_id=2)
    edit(folder / "tokenizer_config.json", pad_token="</s>")
    torch.manual_seed(0)
    settings = LoadSettings(head=head, dtype="float32")  # type: ignore[arg-type]
    judge = new_judge(resolve(str(folder)), "j", "j-1", ("No", "Yes"), settings, LoraSettings(rank=2))
    shake(judge)
    endings = [*PROMPTS, Prompt(("Check.",), "It ends here.</s>")]  # pooled at its end, not before it
    rows = judge.encoder.encode(endings)
    judge.save(tmp_path / "adapter")
    tokenizer, model = plain.load(str(tmp_path / "adapter"), str(folder), head)
    assert (tokenizer.pad_token, judge.model.config.pad_token_id) == ("<pad>", 0)
    words = [" No", " Yes"] if head == "verbalizer" else None
    alone = torch.tensor(plain.logits(tokenizer, model, plain.texts_of(endings, head, False), words))
    assert (logits_of(judge, rows, length=300) - alone).abs().max() < 1e-5


@pytest.mark.parametrize("architecture", DECODERS)
def test_the_verbalizer_s_logits_are_those_of_a_plain_pass_over_the_whole_vocabulary(
    base: Callable[..., Path], fresh: Callable[..., Judge], architecture: str
) -> None:
    judge = fresh(architecture, "verbalizer", lora=None)
    tokenizer, model = plain.load_whole(str(base(architecture)), "verbalizer", dtype="float32")
    expected = plain.logits(tokenizer, model, plain.texts_of(PROMPTS, "verbalizer", False), [" No", " Yes"])
    found = logits_of(judge, judge.encoder.encode(PROMPTS))
    assert (found - torch.tensor(expected)).abs().max() < 1e-5
    assert (judge.style, found.shape) == ("instruction", (len(PROMPTS), 2))


@pytest.mark.parametrize(
    ("architecture", "head"), [("llama", "classification"), ("llama", "verbalizer"), ("bert", "classification")]
)
def test_a_whole_model_is_saved_and_loaded_and_is_an_ordinary_checkpoint(
    fresh: Callable[..., Judge], tmp_path: Path, architecture: str, head: str
) -> None:
    judge = fresh(architecture, head, lora=None)
    assert all(parameter.requires_grad for parameter in judge.model.parameters())
    judge.model.train()
    rows = judge.encoder.encode(PROMPTS)
    torch.nn.functional.cross_entropy(judge.logits(judge.encoder.pad(rows)), torch.tensor([0, 1, 1, 0])).backward()
    torch.optim.SGD(judge.model.parameters(), lr=0.1).step()
    trained = logits_of(judge, rows)
    judge.save(tmp_path / "adapter")
    assert torch.equal(logits_of(load_judge(tmp_path / "adapter"), rows), trained)
    tokenizer, model = plain.load_whole(str(tmp_path / "adapter"), head)
    words = [" No", " Yes"] if head == "verbalizer" else None
    alone = plain.logits(tokenizer, model, plain.texts_of(PROMPTS, head, architecture in ENCODERS), words)
    assert (torch.tensor(alone) - trained).abs().max() < 1e-5
    if head == "classification":
        assert model.config.id2label == {0: "no", 1: "yes"}


def test_a_whole_judge_in_bfloat16_still_has_fine_logits(fresh: Callable[..., Judge], tmp_path: Path) -> None:
    fresh("roberta", lora=None, dtype="bfloat16").save(tmp_path / "whole")
    judge = load_judge(tmp_path / "whole")
    logits = logits_of(judge, judge.encoder.encode(PROMPTS))
    assert judge.model.classifier.out_proj.weight.dtype == torch.float32
    assert not torch.equal(logits, logits.bfloat16().float())


def test_a_verbalizer_in_bfloat16_has_fine_logits_too(made: Callable[..., Made]) -> None:
    logits = made("qwen2", "verbalizer", "bfloat16").logits()
    assert not torch.equal(logits, logits.bfloat16().float())


def test_loading_in_another_folder_than_that_of_the_same_name_needs_no_network(
    made: Callable[..., Made], fresh: Callable[..., Judge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the network was used")

    judge = made("llama")
    shutil.copytree(judge.folder, tmp_path / "minilm")
    monkeypatch.chdir(tmp_path)  # a judge's folder called like a packaged model is still that folder
    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    assert torch.equal(judge.logits(), judge.logits(load_judge(Path("minilm"), str(judge.base))))
    whole = fresh("llama", lora=None)
    whole.save(Path("smollm2-135m"))
    assert torch.equal(judge.logits(whole), judge.logits(load_judge(Path("smollm2-135m"))))


def test_new_heads_and_adapters_follow_the_seed(base: Callable[..., Path]) -> None:
    def weights(seed: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(seed)
        judge = new_judge(
            resolve(str(base("roberta"))),
            "j",
            "j-1",
            ("No", "Yes"),
            LoadSettings(dtype="float32"),
            LoraSettings(rank=2),
        )
        return {name: p.clone() for name, p in judge.model.named_parameters() if p.requires_grad}

    one, same, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one if "lora_A" in name or "out_proj.weight" in name)
