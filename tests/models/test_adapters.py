"""Several judges over one backbone say, to the bit, what each says alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_judges import PROMPTS, WORDS, logits_of, shake

from models.adapters import SharingJudge, load_judges
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import Judge, load_judge, new_judge
from models.lora import LoraSettings
from models.scoring import margins


def saved(base: Path, folder: Path, seed: int, head: str = "classification", **lora: object) -> Path:
    """A judge as if trained, over ``base``; every seed another one."""
    torch.manual_seed(seed)
    settings = LoraSettings(**{"rank": 4, "alpha": 8, **lora})  # type: ignore[arg-type]
    judge = new_judge(
        resolve(str(base)), "step_product", "step_product-1", WORDS, LoadSettings(head=head, dtype="float32"), settings
    )  # type: ignore[arg-type]
    judge = judge.with_spec(threshold=0.1 * (seed + 1), max_length=100 + seed)
    shake(judge, seed)
    judge.save(folder)
    return folder


def found(judge: Judge) -> torch.Tensor:
    return logits_of(judge, judge.encoder.encode(PROMPTS[:2]))


@pytest.mark.parametrize(
    ("architecture", "head"),
    [("llama", "classification"), ("llama", "verbalizer"), ("bert", "classification")],
)
def test_adapters_over_one_backbone_say_what_they_say_alone(
    base: Callable[..., Path], tmp_path: Path, architecture: str, head: str
) -> None:
    folders = [saved(base(architecture), tmp_path / f"a{seed}", seed, head, rank=4 * (seed + 1)) for seed in range(3)]
    judges = load_judges(folders, str(base(architecture)))
    alone = [load_judge(folder, str(base(architecture))) for folder in folders]
    assert len({id(judge.model) for judge in judges}) == 1
    expected = [found(judge) for judge in alone]
    assert not torch.allclose(expected[0], expected[1], atol=1e-2)
    for number in (2, 0, 1, 1, 0, 2):
        assert torch.equal(found(judges[number]), expected[number])
    for judge, one in zip(judges, alone, strict=True):
        rows = judge.encoder.encode(PROMPTS[:2] * 2)
        assert margins(judge, rows).tolist() == margins(one, rows).tolist()  # packed, with a shared prefix
        assert judge.spec == one.spec
        assert judge.with_spec(temperature=2.0).spec.temperature == 2.0
    assert torch.equal(found(judges[1].with_spec(threshold=0.9)), expected[1])


def test_an_adapter_of_other_layers_stands_beside_one_of_all(base: Callable[..., Path], tmp_path: Path) -> None:
    folders = [
        saved(base("llama"), tmp_path / "few", 0, targets=("q_proj",), top_layers=1),
        saved(base("llama"), tmp_path / "all", 1),
    ]
    judges = load_judges(folders, str(base("llama")))
    for judge, folder in zip(judges, folders, strict=True):
        assert torch.equal(found(judge), found(load_judge(folder, str(base("llama")))))


def test_a_backbone_in_bfloat16_leaves_each_adapter_and_head_exact(base: Callable[..., Path], tmp_path: Path) -> None:
    folders = [saved(base("llama", "bfloat16"), tmp_path / f"a{seed}", seed) for seed in range(2)]
    settings = LoadSettings(dtype="bfloat16")
    judges = load_judges(folders, str(base("llama", "bfloat16")), [settings] * 2)
    for judge, folder in zip(judges, folders, strict=True):
        assert torch.equal(found(judge), found(load_judge(folder, str(base("llama", "bfloat16")), settings)))


def test_other_heads_and_whole_models_are_loaded_apart(base: Callable[..., Path], tmp_path: Path) -> None:
    folders = [saved(base("llama"), tmp_path / "head", 0), saved(base("llama"), tmp_path / "words", 1, "verbalizer")]
    whole = new_judge(
        resolve(str(base("bert"))), "step_product", "step_product-1", WORDS, LoadSettings(dtype="float32")
    )
    whole.save(tmp_path / "whole")
    judges = load_judges([*folders, tmp_path / "whole"], str(base("llama")))
    assert len({id(judge.model) for judge in judges}) == 3
    assert not any(isinstance(judge, SharingJudge) for judge in judges)


def test_half_an_adapter_is_refused_and_a_sharing_judge_is_not_saved(base: Callable[..., Path], tmp_path: Path) -> None:
    folders = [saved(base("llama"), tmp_path / f"a{seed}", seed) for seed in range(2)]
    judges = load_judges(folders, str(base("llama")))
    with pytest.raises(RuntimeError, match="shares its backbone"):
        judges[0].save(tmp_path / "again")
    path = folders[1] / "adapter_model.safetensors"
    weights = load_file(path)
    save_file({key: tensor for key, tensor in weights.items() if "score" not in key}, path)
    with pytest.raises(ValueError, match=r"a1: .*score"):
        load_judges(folders, str(base("llama")))
