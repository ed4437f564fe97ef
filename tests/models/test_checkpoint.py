"""What a checkpoint's name means: a packaged model, a folder, or a hub id; and what is refused."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny_checkpoint
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from models.checkpoint import PACKAGED, Checkpoint, CheckpointError, resolve


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any use of the network fails the test, even where a library swallows the exception."""
    touched: list[str] = []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        touched.append(repr(args))
        raise OSError("no network in this test")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    yield
    assert touched == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config and (not real) safetensors weights; its parent is the working folder."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "mine"
    made.mkdir()
    (made / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (made / "model.safetensors").write_bytes(b"weights")
    return made


@pytest.mark.parametrize("written", ["./mine", "mine", "mine/", "{absolute}", "~/mine", "mine/../mine"])
def test_an_existing_folder_is_local_and_publishes_only_its_own_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    name = written.format(absolute=folder)
    assert resolve(name) == Checkpoint(name, str(folder), revision=None, local=True, identity="mine")


def test_the_working_folder_is_published_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert resolve(".").identity == "mine"


def test_an_existing_folder_wins_over_the_hub_id_it_looks_like(folder: Path) -> None:
    (folder.parent / "org").mkdir()
    folder.rename(folder.parent / "org" / "name")
    found = resolve("org/name")
    assert found.local
    assert found.path == str(folder.parent / "org" / "name")
    assert resolve("org/name@main") == Checkpoint("org/name@main", "org/name", "main", False, "org/name")


def test_a_folder_named_like_a_packaged_model_is_not_published_as_that_model(folder: Path) -> None:
    folder.rename(folder.parent / "minilm")
    found = resolve("./minilm")
    assert found.path == str(folder.parent / "minilm")
    assert found.identity == "./minilm"


@pytest.mark.parametrize(
    ("name", "path", "revision"),
    [
        ("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B", None),
        ("org/name@main", "org/name", "main"),
        ("org/name@refs/pr/3", "org/name", "refs/pr/3"),
        ("a-b_c/d.e-f_9@0123abc", "a-b_c/d.e-f_9", "0123abc"),
    ],
)
def test_a_hub_id_may_carry_a_revision(no_network: None, name: str, path: str, revision: str | None) -> None:
    found = resolve(name)
    assert found == Checkpoint(name, path, revision, local=False, identity=path)
    assert found.tokenizer_kwargs().get("revision") == revision
    assert found.tokenizer_kwargs()["local_files_only"] is False


@pytest.mark.parametrize("name", ["./org/name", "../name", "/org/name", "~/name", "~nobody-here/name", "."])
def test_a_path_that_is_no_checkpoint_is_never_looked_up_on_the_hub(
    no_network: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(CheckpointError, match=r"does not exist; a path is never|no config\.json"):
        resolve(name)


@pytest.mark.parametrize(
    "name", ["", "gpt2", "org/name@", "org/name/", "a/b/c", "org/na me", "org/a..b", "org/a--b", "minilm@main", "-a/b"]
)
def test_any_other_name_is_an_error_that_says_what_is_understood(no_network: None, name: str) -> None:
    with pytest.raises(CheckpointError, match=r"not understood; give a packaged name .* or a hub id") as error:
        resolve(name)
    assert all(known in str(error.value) for known in PACKAGED)


@pytest.mark.parametrize(
    ("typed", "first"), [("smollm", "smollm2-135m, minilm"), ("MiniLM-L6", "minilm, smollm2-135m")]
)
def test_the_nearest_packaged_name_is_named_first(typed: str, first: str) -> None:
    with pytest.raises(CheckpointError, match=rf"packaged name \({first}\)"):
        resolve(typed)


def test_a_folder_with_only_pickled_weights_is_refused_with_the_way_to_convert_it(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"only pickled weights \(pytorch_model\.bin\).*LlamaForCausalLM\.from_"):
        resolve("./mine")


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    with pytest.raises(CheckpointError, match="no weights in"):
        resolve("./mine")


def test_an_adapter_is_not_taken_for_its_backbone(folder: Path) -> None:
    (folder / "config.json").rename(folder / "adapter_config.json")
    with pytest.raises(CheckpointError, match="it is an adapter: give its backbone"):
        resolve("./mine")


def test_a_file_is_refused(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="is a file; give the folder"):
        resolve("mine/model.safetensors")


def test_a_sharded_checkpoint_must_be_whole(folder: Path) -> None:
    names = [f"model-0000{part}-of-00002.safetensors" for part in (1, 2)]
    (folder / "model.safetensors").rename(folder / names[0])
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": names[0], "b": names[1]}}))
    with pytest.raises(CheckpointError, match="lacks model-00002-of-00002"):
        resolve("./mine")
    (folder / names[1]).write_bytes(b"weights")
    assert resolve("./mine").local
    index.write_text("{")
    with pytest.raises(CheckpointError, match=r"index\.json cannot be read"):
        resolve("./mine")


def test_only_a_model_is_told_to_use_safetensors_and_remote_code_is_off_unless_asked_for() -> None:
    found = Checkpoint("org/name", "org/name", "main", local=False, identity="org/name")
    common = {"revision": "main", "local_files_only": False}
    assert found.tokenizer_kwargs() == {**common, "trust_remote_code": False}
    assert found.model_kwargs() == {**common, "trust_remote_code": False, "use_safetensors": True}
    assert found.model_kwargs(trust_remote_code=True)["trust_remote_code"] is True


def test_a_local_checkpoint_loads_without_touching_the_network(no_network: None, tmp_path: Path) -> None:
    found = resolve(str(tiny_checkpoint(tmp_path / "tiny")))
    AutoConfig.from_pretrained(found.path, **found.tokenizer_kwargs())
    tokenizer = AutoTokenizer.from_pretrained(found.path, **found.tokenizer_kwargs())
    model = AutoModelForCausalLM.from_pretrained(found.path, **found.model_kwargs())
    logits = model(**tokenizer("bake bread", return_tensors="pt")).logits
    assert torch.isfinite(logits).all()
