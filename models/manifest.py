"""Is a folder still what it was when it was written? A manifest of sizes and digests answers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
DIGESTED = (".safetensors", ".json", ".jinja", ".model", ".txt")


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write down the `facts` (`source` among them) and size and sha256 of every file in `folder`; flush all to disk.

    All files get the permissions of a file newly made here (safetensors writes its own for the owner only).
    """
    files = {name: {"size": path.stat().st_size, "sha256": sha256(path)} for name, path in _files(folder).items()}
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps({**facts, "files": files}, indent=2) + "\n", "utf-8")
    for path in _files(folder).values():
        path.chmod(manifest.stat().st_mode & 0o777)
    for path in [*folder.rglob("*"), folder]:
        flush(path)


def problem(folder: Path, source: Mapping[str, Any]) -> str | None:
    """What is wrong with the copy of `source` in `folder`, in words; None if it is whole.

    Every byte is read: half a gigabyte takes a third of a second on a processor with SHA instructions, less than
    loading it does. A file whose name begins with a dot and that the manifest does not name is nobody's business.
    """
    if not folder.is_dir():
        return "not in the cache"
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest["source"] != dict(source):
            return "the copy in the cache is of another version"
        expected = {name: (int(entry["size"]), str(entry["sha256"])) for name, entry in manifest["files"].items()}
        reason = _difference(folder, expected)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        reason = f"{MANIFEST} or a file it names cannot be read"
    return reason and f"the copy in the cache is half-written or altered: {reason}"


def _difference(folder: Path, expected: Mapping[str, tuple[int, str]]) -> str | None:
    found = _files(folder)
    if missing := sorted(expected.keys() - found.keys()):
        return f"{missing[0]} is missing"
    if unknown := sorted(name for name in found.keys() - expected.keys() if not Path(name).name.startswith(".")):
        return f"{unknown[0]} does not belong there"
    for name, (size, _) in expected.items():
        if (actual := found[name].stat().st_size) != size:
            return f"{name} has {actual} bytes, not {size}"
    changed = (name for name, (_, digest) in expected.items() if sha256(found[name]) != digest)
    return next((f"{name} has other content" for name in changed), None)


def _files(folder: Path) -> dict[str, Path]:
    """Every file below `folder` by its relative name, without the manifest."""
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path for name, path in paths.items() if name != MANIFEST}


def sha256(path: Path) -> str:
    """The file's digest in hex, read block by block."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def folder_digest(folder: Path) -> str:
    """One sha256 over the weights, configuration and tokenizer files that lie directly in a model's folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in DIGESTED and not path.name.startswith("."):
            digest.update(f"{path.name} {sha256(path)}\n".encode())
    return digest.hexdigest()


def flush(path: Path) -> None:
    """Make a file, or a folder's list of names, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
