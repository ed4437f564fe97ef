"""A checkpoint in vLLM's engine: asked in tokens, read like a local one. A stand-in has vLLM's interface."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from types import ModuleType

import pytest
import vllm_stand_in
from peft import LoraConfig, get_peft_model
from tiny import tiny_checkpoint
from transformers import AutoModelForCausalLM

from models.backbone import LoadSettings
from models.generation import SamplingSettings, chat
from models.generators import find_generator, open_generator
from models.vllm_engine import VllmGenerator

CHATS = [chat(f"Goal: bake {'bread ' * (number % 3)}{number}", system) for number in range(4) for system in ("b", "a")]
FLOAT32 = LoadSettings(dtype="float32")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("vllm") / "llama", "llama", chat=True)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> type[vllm_stand_in.LLM]:
    package, request = ModuleType("vllm"), ModuleType("vllm.lora.request")
    package.__dict__.update(LLM=vllm_stand_in.LLM, SamplingParams=vllm_stand_in.SamplingParams)
    package.__spec__ = sys.__spec__
    request.__dict__.update(LoRARequest=vllm_stand_in.LoRARequest)
    for name, module in {"vllm": package, "vllm.lora": ModuleType("vllm.lora"), "vllm.lora.request": request}.items():
        monkeypatch.setitem(sys.modules, name, module)
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.1" if name == "vllm" else version(name))
    vllm_stand_in.LLM.made.clear()
    return vllm_stand_in.LLM


def test_it_writes_what_the_local_checkpoint_writes(checkpoint: Path, engine: type[vllm_stand_in.LLM]) -> None:
    settings = SamplingSettings(max_tokens=12)
    found = find_generator(f"vllm:{checkpoint}", settings=FLOAT32)
    local = find_generator(str(checkpoint), settings=FLOAT32)
    generator = found.open()
    assert dict(generator.generate(CHATS, settings)) == dict(local.open().generate(CHATS, settings))
    assert found.facts == {**{k: v for k, v in local.facts.items() if k != "rows"}, "engine": "vllm 0.1"}
    assert generator.prompt_tokens(CHATS) == local.open().prompt_tokens(CHATS)
    assert generator.context == local.open().context
    assert engine.made[0].asked["dtype"] == "float32" and engine.made[0].asked["enable_prefix_caching"]


def test_chats_of_one_instruction_lie_side_by_side_and_batches_can_be_chosen(
    checkpoint: Path, engine: type[vllm_stand_in.LLM]
) -> None:
    generator = open_generator(f"vllm:{checkpoint}", settings=FLOAT32)
    settings = SamplingSettings(max_tokens=2)
    assert generator.plan(CHATS, settings) == [[1, 3, 5, 7, 0, 2, 4, 6]]  # "a" before "b"
    assert [row for row, _ in generator.generate(CHATS, settings, [[6], [2, 1]])] == [6, 2, 1]
    assert [count for count, _, _ in engine.made[0].calls] == [1, 2]


def test_a_draw_follows_from_the_seed_and_the_chat_alone(checkpoint: Path, engine: type[vllm_stand_in.LLM]) -> None:
    generator = open_generator(f"vllm:{checkpoint}", settings=FLOAT32)
    settings = SamplingSettings(max_tokens=2, temperature=0.7, top_p=0.9, seed=3)
    list(generator.generate(CHATS, settings))
    list(generator.generate(CHATS[2:3], settings))
    (_, many, _), (_, one, _) = engine.made[0].calls
    by_row = dict(zip([1, 3, 5, 7, 0, 2, 4, 6], many, strict=True))
    assert one[0].seed == by_row[2].seed != by_row[4].seed
    assert (one[0].temperature, one[0].top_p) == (0.7, 0.9)


def test_what_stands_behind_a_stop_text_is_cut_off(checkpoint: Path, engine: type[vllm_stand_in.LLM]) -> None:
    generator = open_generator(f"vllm:{checkpoint}", settings=FLOAT32)
    whole = dict(generator.generate(CHATS[:1], SamplingSettings(max_tokens=12)))[0].text
    stop = whole[len(whole) // 2 :][:2]
    cut = dict(generator.generate(CHATS[:1], SamplingSettings(max_tokens=12, stop=(stop,))))[0].text
    assert cut == whole[: whole.find(stop)]


def test_an_adapter_goes_to_the_engine_with_its_rank(
    checkpoint: Path, tmp_path: Path, engine: type[vllm_stand_in.LLM]
) -> None:
    model = AutoModelForCausalLM.from_pretrained(checkpoint)
    get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=4)).save_pretrained(tmp_path / "adapter")
    generator = open_generator(f"vllm:{checkpoint}", str(tmp_path / "adapter"), FLOAT32)
    assert engine.made[0].asked["max_lora_rank"] == 4
    assert isinstance(generator, VllmGenerator) and generator.adapter.lora_path == str(tmp_path / "adapter")


def test_without_vllm_and_for_what_it_does_not_do_there_are_words(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.vllm_engine.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"vLLM is not installed here; .* or let it serve"):
        find_generator(f"vllm:{checkpoint}")
    monkeypatch.setattr("models.vllm_engine.find_spec", lambda name: True)
    with pytest.raises(ValueError, match="quantization nf4 is not done in vLLM"):
        find_generator(f"vllm:{checkpoint}", settings=LoadSettings(quantization="nf4"))
