"""What is written down of a judge beside its weights: ``judge.json``."""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

from models.backbone import Dtype, Head, Quantization

SPEC_FILE = "judge.json"


@dataclass(frozen=True)
class Base:
    """The backbone that an adapter was trained on; ``id`` is publishable (never a path). Sizes tell a wrong base, and
    ``fingerprint`` one of the same sizes (see models.backbone.fingerprint)."""

    id: str
    revision: str | None
    model_type: str
    hidden_size: int
    num_hidden_layers: int
    dtype: Dtype
    quantization: Quantization = "none"
    fingerprint: str | None = None


@dataclass(frozen=True)
class JudgeSpec:
    """What ``judge.json`` holds: everything beside weights and tokenizer that a judge needs to say the same again.

    ``p_yes = sigmoid((logit_yes - logit_no) / temperature)``; the verdict is yes at ``p_yes >= threshold``.
    ``label_ids`` are the tokens of the label words that a verbalizer head was taught.
    """

    judgment: str
    template_version: str
    label_words: tuple[str, str]
    head: Head
    base: Base
    threshold: float = 0.5
    temperature: float = 1.0
    max_length: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    label_ids: tuple[int, int] | None = None

    @classmethod
    def read(cls, folder: Path) -> JudgeSpec:
        """The spec of a judge's folder. Raises FileNotFoundError or ValueError in words."""
        path = folder / SPEC_FILE
        if not path.is_file():
            raise FileNotFoundError(f"{folder}: no {SPEC_FILE}; give the folder that training wrote (runs/.../adapter)")
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            base = Base(**_known(Base, data.get("base")))
            spec = cls(**{**_known(cls, data), "base": base})
            ids = spec.label_ids
            spec = replace(spec, label_words=_pair(spec.label_words), label_ids=ids and _pair(ids))
            _check_spec(spec)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}; restore the file, or train again") from error
        return spec

    def write(self, folder: Path) -> None:
        """Write the spec into a judge's folder."""
        text = json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"
        (folder / SPEC_FILE).write_text(text, encoding="utf-8")


def _known(kind: type, data: Any) -> dict[str, Any]:
    """``data`` as arguments of the dataclass ``kind``. Raises ValueError for what is absent or not known here."""
    if not isinstance(data, dict):
        raise ValueError(f"{json.dumps(data)[:40]} stands where the description of a {kind.__name__} belongs")
    required = {entry.name for entry in fields(kind) if entry.default is MISSING and entry.default_factory is MISSING}
    if unknown := sorted(data.keys() - {entry.name for entry in fields(kind)}):
        raise ValueError(f"{', '.join(unknown)}: not known here; if a newer ecomjudge wrote it, update this one")
    if absent := sorted(required - data.keys()):
        raise ValueError(f"{', '.join(absent)}: absent")
    return data


def _pair(values: Any) -> tuple[Any, Any]:
    first, second = values
    return first, second


def _check_spec(spec: JudgeSpec) -> None:
    """Raises ValueError for a value that no version writes."""
    base = spec.base
    choices: list[tuple[str, str, Any]] = [("head", spec.head, Head)]
    choices += [("dtype", base.dtype, Dtype), ("quantization", base.quantization, Quantization)]
    for name, value, allowed in choices:
        if value not in get_args(allowed):
            raise ValueError(f"{name} is {value!r}, not one of {', '.join(get_args(allowed))}")
    if not 0 <= spec.threshold <= 1:
        raise ValueError(f"threshold is {spec.threshold!r}, not between 0 and 1")
    if not 0 < spec.temperature < float("inf"):
        raise ValueError(f"temperature is {spec.temperature!r}, not above 0")
