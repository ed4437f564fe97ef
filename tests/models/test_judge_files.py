"""What the folder of a judge holds: nothing of this machine, the same bytes again, all of it or what was there."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_judges import COMBINATIONS, Made

from models.judge import Judge


def judge_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_adapter_s_folder_holds_peft_s_files_the_tokenizer_and_the_description(made: Callable[..., Made]) -> None:
    judge = made("llama", "verbalizer", "bfloat16")
    assert judge_files(judge.folder) == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "judge.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    spec = json.loads((judge.folder / "judge.json").read_text())
    yes, no = (judge.judge.encoder.tokenizer.convert_tokens_to_ids(word) for word in ("ĠYes", "ĠNo"))
    assert spec == {
        "judgment": "script_verify",
        "template_version": "script_verify-1",
        "label_words": ["No", "Yes"],
        "label_ids": [no, yes],
        "head": "verbalizer",
        "threshold": 0.4,
        "temperature": 1.5,
        "max_length": None,
        "versions": {},
        "base": {
            "id": "llama",
            "revision": None,
            "model_type": "llama",
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "dtype": "bfloat16",
            "quantization": "none",
            "fingerprint": spec["base"]["fingerprint"],
        },
    }
    assert re.fullmatch("[0-9a-f]{16}", spec["base"]["fingerprint"])
    assert json.loads((judge.folder / "adapter_config.json").read_text())["base_model_name_or_path"] == "llama"
    assert json.loads((judge.folder / "tokenizer_config.json").read_text())["padding_side"] == "left"


def assert_names_no_machine(folder: Path) -> None:
    """No path in any text: neither those of this run nor anything that looks like one. (In weights only the former.)"""
    home, here = str(Path.home()), os.getcwd()
    for path in folder.iterdir():
        data = path.read_bytes()
        for private in (str(folder.parent), home, here, "/tmp", f"/{os.environ.get('USER') or 'home'}/"):
            assert private.encode() not in data, (path.name, private)
        if path.suffix == ".json":
            assert not re.search(rb'"(file:/)?/\w[^"]*/|[A-Z]:\\\\|local_files_only|is_local', data), path.name


@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_no_file_of_an_adapter_names_the_machine(made: Callable[..., Made], architecture: str, head: str) -> None:
    assert_names_no_machine(made(architecture, head).folder)


def test_no_file_of_a_whole_judge_names_the_machine(fresh: Callable[..., Judge], tmp_path: Path) -> None:
    for head in ("classification", "verbalizer"):
        fresh("qwen2", head, lora=None).save(tmp_path / head)
        assert_names_no_machine(tmp_path / head)


def test_saving_the_same_judge_twice_gives_the_same_bytes(made: Callable[..., Made], tmp_path: Path) -> None:
    judge = made("mistral")
    judge.judge.save(tmp_path / "again")
    for path in judge.folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_a_save_that_fails_leaves_the_earlier_judge_as_it_was(
    made: Callable[..., Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = made("llama")
    shutil.copytree(judge.folder, tmp_path / "adapter")
    before = {path.name: path.read_bytes() for path in (tmp_path / "adapter").iterdir()}

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(judge.judge.encoder.tokenizer, "save_pretrained", full)
    with pytest.raises(OSError, match="No space left"):
        judge.judge.with_spec(threshold=0.9).save(tmp_path / "adapter")
    assert {path.name: path.read_bytes() for path in (tmp_path / "adapter").iterdir()} == before
    assert list(tmp_path.iterdir()) == [tmp_path / "adapter"]


def test_a_save_that_wrote_other_tensors_is_noticed(
    made: Callable[..., Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = made("llama").judge
    write = judge.model.save_pretrained

    def write_empty(folder: str, **options: Any) -> None:  # as under a sharded optimizer (peft#2450)
        write(folder, **options)
        path = Path(folder) / "adapter_model.safetensors"
        tensors = load_file(path)
        name = next(name for name in tensors if "score" in name)
        save_file({**tensors, name: torch.empty(0)}, path)

    monkeypatch.setattr(judge.model, "save_pretrained", write_empty)
    with pytest.raises(RuntimeError, match=r"score.weight is empty or not what the model holds"):
        judge.save(tmp_path / "adapter")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_other_things_is_not_replaced(made: Callable[..., Made], tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"thesis holds other things \(no judge.json"):
        made("llama").judge.save(tmp_path / "thesis")
    with pytest.raises(ValueError, match=r"chapter.tex is a file"):
        made("llama").judge.save(tmp_path / "thesis" / "chapter.tex")
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"
