"""The judges of a command: found, checked before anything is loaded, and loaded over as few backbones as they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from judging.config import JudgesConfig
from models.adapters import load_judges
from models.backbone import LoadSettings
from models.judge import Judge, JudgeSpec
from models.manifest import folder_digest
from recipes.base import Judgment
from recipes.judgments import get_judgment


@dataclass(frozen=True)
class FoundJudge:
    """A judge's folder, read but not loaded. ``name`` tells it from the others of the command."""

    name: str
    folder: Path
    spec: JudgeSpec
    judgment: Judgment[Any]

    @property
    def facts(self) -> dict[str, str]:
        """What fixes its answers; no path among it."""
        return {"name": self.name, "judgment": self.judgment.name, "files": folder_digest(self.folder)}


@dataclass(frozen=True)
class NamedJudge:
    """A judge with the judgment that it makes."""

    name: str
    judgment: Judgment[Any]
    judge: Judge


def find_judges(folders: Sequence[str]) -> list[FoundJudge]:
    """The judges of folders.

    Raises FileNotFoundError or ValueError where one is none, is named twice, or was trained on a text that this version
    does not render.
    """
    paths = [Path(folder).expanduser() for folder in folders]
    if len({path.resolve() for path in paths}) < len(paths):
        raise ValueError("adapter: one folder is named twice; give each judge once")
    if not paths:
        raise ValueError("adapter: nobody to judge; give --adapter FOLDER")
    found = []
    for name, path in zip(names_of(paths), paths, strict=True):
        spec = JudgeSpec.read(path)
        judgment = get_judgment(spec.judgment, spec.template_version)
        if spec.template_version != judgment.template_version:
            raise ValueError(
                f"{path} was trained on the text of template {spec.template_version}; this version renders "
                f"{judgment.template_version}: train it again, or judge with the version that trained it"
            )
        found.append(FoundJudge(name, path, spec, judgment))
    return found


def names_of(folders: Sequence[Path]) -> list[str]:
    """A name for each judge: that of its run, with as many folders above it as tell it from the others."""
    parts = []
    for folder in folders:
        own = folder.absolute()
        parts.append((own.parent if own.name == "adapter" else own).parts[1:])
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(one[-length:]) for one in parts]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def load(found: Sequence[FoundJudge], config: JudgesConfig, device: torch.device) -> list[NamedJudge]:
    """The judges on a device, with the settings of the command where it gives some.

    Raises FileNotFoundError or ValueError as models.judge.load_judge does.
    """
    settings = [
        LoadSettings(
            head=one.spec.head,
            dtype=config.dtype or one.spec.base.dtype,
            quantization=config.quantization or one.spec.base.quantization,
            attention=config.attention,
            trust_remote_code=config.trust_remote_code,
        )
        for one in found
    ]
    changes = {"threshold": config.threshold, "max_length": config.max_length}
    changes = {name: value for name, value in changes.items() if value is not None}
    judges = []
    loaded = load_judges([one.folder for one in found], config.checkpoint, settings)
    for one, judge in zip(found, loaded, strict=True):
        if not getattr(judge.model, "is_quantized", False):  # bitsandbytes has put a quantized one in its place
            judge.model.to(device)
        judges.append(NamedJudge(one.name, one.judgment, judge.with_spec(**changes)))
    return judges


def settings_facts(found: Sequence[FoundJudge], config: JudgesConfig) -> dict[str, Any]:
    """Settings that fix the answers; what is not given is the judges' own, which their files fix."""
    names = ("dtype", "quantization", "attention", "threshold", "max_length", "token_budget")
    given = {name: getattr(config, name) for name in names}
    return given | ({"products_per_step": config.products_per_step} if reads_plans(found) else {})


def reads_plans(judges: Sequence[FoundJudge] | Sequence[NamedJudge]) -> bool:
    """Whether rows are plans: where the judges make more than one judgment."""
    return len({one.judgment.name for one in judges}) > 1


def by_judgment(judges: Sequence[NamedJudge]) -> Mapping[str, NamedJudge]:
    """The one judge for each judgment. Raises ValueError where there are two for one."""
    found: dict[str, NamedJudge] = {}
    for one in judges:
        if one.judgment.name in found:
            both = f"{found[one.judgment.name].name} and {one.name}"
            raise ValueError(f"{both} both judge {one.judgment.name}; a plan takes one adapter for each judgment")
        found[one.judgment.name] = one
    return found
