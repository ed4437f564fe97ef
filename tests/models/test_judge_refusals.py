"""Folders that are no judge, or not the one that was trained, are refused in words."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_judges import Made, edit

from models.backbone import LoadSettings
from models.judge import Judge, JudgeSpec, load_judge
from models.spec import SPEC_FILE

FLOAT32 = LoadSettings(dtype="float32")


@pytest.fixture
def copy(made: Callable[..., Made], tmp_path: Path) -> Callable[..., tuple[Path, str]]:
    """``copy(head)``: a judge's folder to spoil, and its backbone."""

    def make(head: str = "classification") -> tuple[Path, str]:
        judge = made("llama", head)
        shutil.copytree(judge.folder, tmp_path / "adapter")
        return tmp_path / "adapter", str(judge.base)

    return make


@pytest.mark.parametrize(
    ("architecture", "said"),
    [("mistral", "model_type llama.*mistral has model_type mistral"), ("bert", "model_type")],
)
def test_a_backbone_of_another_architecture_is_refused(
    copy: Callable[..., tuple[Path, str]], base: Callable[..., Path], architecture: str, said: str
) -> None:
    with pytest.raises(ValueError, match=rf"(?s){said}.*wrong base"):
        load_judge(copy()[0], str(base(architecture)))


def test_a_backbone_of_the_same_sizes_but_other_weights_is_refused(
    copy: Callable[..., tuple[Path, str]], base: Callable[..., Path]
) -> None:
    with pytest.raises(ValueError, match=r"llama has the same sizes but other weights: wrong base"):
        load_judge(copy()[0], str(base("llama", seed=1)))


@pytest.mark.parametrize("trained", [{}, {"dtype": "bfloat16"}, {"dtype": "float16"}, {"quantization": "nf4"}])
def test_the_same_backbone_is_known_in_any_precision(
    base: Callable[..., Path], fresh: Callable[..., Judge], tmp_path: Path, trained: dict[str, Any]
) -> None:
    fresh("llama", **trained).save(tmp_path / "adapter")
    for settings in (FLOAT32, LoadSettings(dtype="bfloat16"), LoadSettings(dtype="float16", quantization="int8")):
        load_judge(tmp_path / "adapter", str(base("llama")), settings)


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
def test_half_an_adapter_is_refused(copy: Callable[..., tuple[Path, str]], name: str) -> None:
    folder, backbone = copy()
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"adapter: {name} is missing; copy the whole folder again"):
        load_judge(folder, backbone)


@pytest.mark.parametrize("kept", [0, 4, 500, 10_000])
def test_cut_weights_are_refused(copy: Callable[..., tuple[Path, str]], kept: int) -> None:
    folder, backbone = copy()
    path = folder / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"adapter_model.safetensors: cut short or altered .*; copy it again"):
        load_judge(folder, backbone)


def test_an_adapter_s_configuration_that_is_cut_is_refused(copy: Callable[..., tuple[Path, str]]) -> None:
    folder, backbone = copy()
    (folder / "adapter_config.json").write_text('{"r": 4,')
    with pytest.raises(ValueError, match=r"adapter_config.json: cut short or altered"):
        load_judge(folder, backbone)


def without(part: str) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    return lambda tensors: {name: tensor for name, tensor in tensors.items() if part not in name}


def narrower(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {
        name: tensor[:2].clone() if "layers.0.mlp.up_proj.lora_A" in name else tensor
        for name, tensor in tensors.items()
    }


@pytest.mark.filterwarnings("ignore:Found missing adapter keys")
@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (without("score"), "adapter holds no trained score: its head would be one of random weights"),
        (without("layers.1.self_attn.q_proj.lora_B"), "do not belong together or were altered"),
        (narrower, "do not belong together or were altered"),
        (lambda tensors: {**tensors, "base_model.model.extra.lora_A.weight": torch.ones(1)}, "extra.lora_A"),
    ],
)
def test_weights_without_a_part_or_of_other_shapes_are_refused(
    copy: Callable[..., tuple[Path, str]], alter: Callable[[Any], Any], said: str
) -> None:
    folder, backbone = copy()
    path = folder / "adapter_model.safetensors"
    save_file(alter(load_file(path)), path)
    with pytest.raises(ValueError, match=said):
        load_judge(folder, backbone)


def test_a_head_that_is_not_the_weights_own_is_refused(copy: Callable[..., tuple[Path, str]]) -> None:
    folder, backbone = copy("verbalizer")
    edit(folder / SPEC_FILE, head="classification", label_ids=None)
    with pytest.raises(ValueError, match="holds no trained score"):
        load_judge(folder, backbone)


@pytest.mark.parametrize("words", [["Yes", "No"], ["Yes", "yes"], ["Yes"], "Yes"])
def test_other_label_words_are_refused(copy: Callable[..., tuple[Path, str]], words: Any) -> None:
    folder, backbone = copy("verbalizer")
    edit(folder / SPEC_FILE, label_words=words)
    with pytest.raises(ValueError, match=r"the judge was taught tokens|unpack|tokens after a prompt"):
        load_judge(folder, backbone)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"calibration": "isotonic"}, "calibration: not known here; if a newer ecomjudge wrote it, update this one"),
        ({"base": {"id": "x"}}, "dtype, hidden_size, model_type, num_hidden_layers, revision: absent"),
        ({"base": "llama"}, '"llama" stands where the description of a Base belongs'),
        ({"head": "regression"}, "head is 'regression', not one of classification, verbalizer"),
        ({"threshold": float("nan")}, "threshold is nan, not between 0 and 1"),
        ({"threshold": "0.5"}, "judge.json"),
        ({"temperature": 0}, "temperature is 0, not above 0"),
    ],
)
def test_a_description_that_says_something_else_is_refused_by_the_name_of_the_part(
    copy: Callable[..., tuple[Path, str]], changes: dict[str, Any], said: str
) -> None:
    folder, _ = copy()
    edit(folder / SPEC_FILE, **changes)
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        JudgeSpec.read(folder)
    assert str(folder / SPEC_FILE) in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"judge"'])
def test_a_description_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / SPEC_FILE).write_text(text)
    with pytest.raises(ValueError, match=r"judge.json: .*; restore the file, or train again"):
        JudgeSpec.read(tmp_path)


def test_a_folder_without_a_description_is_no_judge(base: Callable[..., Path]) -> None:
    with pytest.raises(FileNotFoundError, match=r"no judge.json; give the folder that training wrote"):
        load_judge(base("llama"))


def test_a_whole_judge_without_its_head_is_refused(fresh: Callable[..., Judge], tmp_path: Path) -> None:
    fresh("llama", lora=None).save(tmp_path / "whole")
    path = tmp_path / "whole" / "model.safetensors"
    save_file(without("score")(load_file(path)), path, {"format": "pt"})
    with pytest.raises(ValueError, match=r"whole holds no trained score: its head would be one of random weights"):
        load_judge(tmp_path / "whole")
