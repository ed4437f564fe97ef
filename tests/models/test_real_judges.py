"""The packaged models as judges: what tiny random ones promise holds for trained weights of everyday size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import plain
import pytest
import torch
from tiny_judges import PROMPTS, WORDS, logits_of, shake

from models.backbone import LoadSettings, load_tokenizer
from models.checkpoint import resolve
from models.judge import Judge, load_judge, new_judge
from models.lora import LoraSettings
from models.merge import merge

pytestmark = pytest.mark.slow

JUDGES = [("minilm", "classification"), ("smollm2-135m", "classification"), ("smollm2-135m", "verbalizer")]


def judge_on(name: str, head: str, **settings: str) -> Judge:
    torch.manual_seed(0)
    load = LoadSettings(head, **{"dtype": "float32", **settings})  # type: ignore[arg-type]
    judge = new_judge(resolve(name), "script_verify", "script_verify-1", WORDS, load, LoraSettings(rank=8, alpha=16))
    shake(judge)
    with torch.no_grad():  # far smaller than a tiny model's: these weights mean something
        for parameter_name, parameter in judge.model.named_parameters():
            if "lora_" in parameter_name:
                parameter.mul_(0.2)
    return judge


def test_smollm2_pads_with_a_token_that_neither_begins_nor_ends_a_text() -> None:
    """It is published with pad = eos."""
    tokenizer = load_tokenizer(resolve("smollm2-135m"))
    assert (tokenizer.eos_token, tokenizer.bos_token) == ("<|im_end|>", "<|im_start|>")
    assert tokenizer.pad_token == "<|endoftext|>"


@pytest.mark.parametrize(("name", "head"), JUDGES)
def test_no_batch_changes_a_logit_and_a_fresh_load_or_a_merge_gives_the_same(
    name: str, head: str, tmp_path: Path
) -> None:
    judge = judge_on(name, head)
    rows = judge.encoder.encode(PROMPTS)
    alone = torch.cat([logits_of(judge, [row]) for row in rows])
    for found in (logits_of(judge, rows), logits_of(judge, rows[::-1]).flip(0), logits_of(judge, rows, length=200)):
        assert (found - alone).abs().max() < 1e-5 * max(1.0, float(alone.abs().max()))
    judge.save(tmp_path / "adapter")
    assert torch.equal(logits_of(load_judge(tmp_path / "adapter"), rows), logits_of(judge, rows))
    if head == "classification":
        tokenizer, model = plain.load(str(tmp_path / "adapter"), resolve(name).path, head)
        expected = plain.logits(tokenizer, model, plain.texts_of(PROMPTS, head, name == "minilm"))
        assert np.abs(np.array(expected) - alone.numpy()).max() < 1e-5 * max(1.0, float(alone.abs().max()))
    for dtype in ("float32", "bfloat16"):
        found = merge(tmp_path / "adapter", tmp_path / dtype, dtype=dtype)  # type: ignore[arg-type]
        print(name, head, dtype, found)
        assert found.merging < 1e-5 * max(1.0, found.size)
        assert found.saving < (1e-5 if dtype == "float32" else 0.1) * max(1.0, found.size)


@pytest.mark.parametrize("quantization", ["nf4", "int8"])
@pytest.mark.parametrize(("name", "head"), JUDGES)
def test_a_quantized_judge_learns_and_is_loaded_the_same(
    name: str, head: str, quantization: str, tmp_path: Path
) -> None:
    judge = judge_on(name, head, quantization=quantization)
    rows = judge.encoder.encode(PROMPTS[:2])
    logits_of(judge, rows)
    judge.model.train()
    torch.nn.functional.cross_entropy(judge.logits(judge.encoder.pad(rows)), torch.tensor([0, 1])).backward()
    trained = [parameter for parameter in judge.model.parameters() if parameter.requires_grad]
    assert all(parameter.grad is not None and parameter.grad.abs().max() > 0 for parameter in trained)
    torch.optim.AdamW(trained, lr=1e-4).step()
    judge.save(tmp_path / "adapter")
    assert torch.equal(logits_of(load_judge(tmp_path / "adapter"), rows), logits_of(judge, rows))
