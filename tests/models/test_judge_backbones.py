"""Which backbone a judge's folder means, and that nothing is guessed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import tiny_checkpoint
from tiny_judges import Made, shake

from models.backbone import LoadSettings
from models.checkpoint import PACKAGED, Checkpoint, resolve
from models.judge import Base, Judge, JudgeSpec, base_checkpoint, load_judge, new_judge
from models.lora import LoraSettings, attach_lora


def base_of(name: str, revision: str | None = None) -> Base:
    return Base(name, revision, "llama", 32, 2, "float32")


@pytest.mark.parametrize("name", ["llama", "./minilm", "/srv/llama", "~/llama", "../llama", "a/b/c", "a/", "/a"])
def test_a_local_folder_is_never_guessed_from_its_name(
    made: Callable[..., Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    judge = made("llama")
    shutil.copytree(judge.folder, tmp_path / "adapter")
    spec = JudgeSpec.read(judge.folder)
    replace(spec, base=replace(spec.base, id=name)).write(tmp_path / "adapter")
    shutil.copytree(judge.base, tmp_path / "llama")  # the very backbone lies there, and is still not taken
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"trained on a local folder called .*; give that folder as the checkpoint"):
        load_judge(Path("adapter"))
    assert load_judge(Path("adapter"), "llama").spec.base.id == name


def test_a_hub_id_means_the_hub_even_where_a_folder_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_checkpoint(tmp_path / "org" / "name")
    monkeypatch.chdir(tmp_path)
    found = base_checkpoint(base_of("org/name", "a" * 40), tmp_path)
    assert found == Checkpoint("org/name", "org/name", revision="a" * 40, local=False, identity="org/name")


def test_a_packaged_name_is_fetched_where_the_cache_lacks_it(
    base: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def fetch(name: str, may_fetch: bool = True) -> Path:
        assert may_fetch
        fetched.append(name)
        return base("llama")

    monkeypatch.setattr("models.checkpoint.cached", fetch)
    name = next(iter(PACKAGED))
    judge = new_judge(resolve(name), "j", "j-1", ("No", "Yes"), LoadSettings(dtype="float32"))
    judge = Judge(attach_lora(judge.model, "classification", LoraSettings(rank=2)), judge.encoder, judge.spec)  # type: ignore[arg-type]
    shake(judge)
    judge.save(tmp_path / "adapter")
    fetched.clear()
    assert load_judge(tmp_path / "adapter").spec.base.id == name
    assert fetched == [name]
