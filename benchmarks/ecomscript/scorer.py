"""Who is examined: anything that gives each record a margin; here the judges, trained or zero-shot."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open

from models.backbone import HEAD_MODULES, LoadSettings, head_modules, resolve_dtype
from models.checkpoint import Checkpoint
from models.judge import Judge, JudgeSpec, load_judge, new_judge
from models.rescoring import Rescoring
from models.scoring import Scoring
from recipes.base import Judgment, Prompt

Floats = NDArray[np.float64]
UNCHOSEN = "the default; none was chosen"


class Scorer(Protocol):
    """Gives each record a margin; ``p_yes = sigmoid(margin / temperature)``, yes at ``p_yes >= threshold``.

    Attributes:
        max_length: tokens allowed in the longest row that a record becomes.
        shots: solved examples in each prompt.
    """

    max_length: int
    temperature: float
    threshold: float
    threshold_from: str
    shots: int

    def lengths(self, records: Sequence[Any]) -> list[int]:
        """Tokens of the longest row that each record becomes."""

    def plan(self, records: Sequence[Any], lengths: Sequence[int], token_budget: int | None, threshold: float) -> Plan:
        """How records that fit are judged; ``lengths`` are those of `lengths`, ``threshold`` decides their verdicts."""


class Plan(Protocol):
    """Records in batches (of their numbers), each record in one of them; ``rescored`` are those judged so far whose
    margins were made again in float32, being near the threshold; ``computed`` are the tokens computed so far, padding
    included, or None where nobody counts them."""

    @property
    def batches(self) -> list[list[int]]: ...
    @property
    def rescored(self) -> Collection[int]: ...
    @property
    def computed(self) -> int | None: ...

    def margins(self, rows: Sequence[int]) -> Floats:
        """The margins of one batch, [rows]."""


@dataclass(frozen=True)
class EachAlone:
    """The plan of a scorer whose records share nothing: batches by the tokens that each record takes."""

    records: Sequence[Any]
    batches: list[list[int]]
    of: Callable[[Sequence[Any]], Floats]
    rescored: Collection[int] = ()
    computed: int | None = None

    def margins(self, rows: Sequence[int]) -> Floats:
        return self.of([self.records[row] for row in rows])


@dataclass
class JudgeScorer:
    """A judge of models.judge: a trained one, or a language model that answers with its yes/no words.

    ``exact`` loads the same judge in float32, where verdicts near the threshold are to be float32's.
    """

    judgment: Judgment[Any]
    judge: Judge
    examples: tuple[Any, ...] = ()
    threshold_from: str = UNCHOSEN
    exact: Callable[[], Judge] | None = None

    def __post_init__(self) -> None:
        self.max_length = self.judge.max_length
        self.temperature = self.judge.spec.temperature
        self.threshold = self.judge.spec.threshold
        self.shots = len(self.examples)

    def prompts(self, records: Sequence[Any]) -> list[Prompt]:
        """The records as this judge reads them, behind the solved examples."""
        return [self.judgment.render(record, self.judge.style, self.examples) for record in records]

    def lengths(self, records: Sequence[Any]) -> list[int]:
        return self.judge.encoder.lengths(self.prompts(records))

    def plan(
        self, records: Sequence[Any], lengths: Sequence[int], token_budget: int | None, threshold: float
    ) -> Scoring | Rescoring:
        encoded = self.judge.encoder.encode(self.prompts(records))
        scoring = Scoring(self.judge, encoded, token_budget)
        make = self.exact
        if make is None or not 0 < threshold < 1:
            return scoring
        decision = self.temperature * math.log(threshold / (1 - threshold))
        return Rescoring(scoring, lambda: Scoring(make(), encoded, token_budget), decision)


def rescores(settings: LoadSettings, device: torch.device) -> bool:
    """Whether verdicts near the threshold are made in float32: where `auto` chose 16 bits, on a CPU. A GPU may have no
    room for a second copy of the model."""
    sixteen = settings.dtype == "auto" and resolve_dtype("auto") != torch.float32
    return sixteen and settings.quantization == "none" and device.type == "cpu"


def trained_judge(
    judgment: Judgment[Any],
    folder: Path,
    checkpoint: str | None,
    settings: LoadSettings,
    max_length: int | None,
    examples: tuple[Any, ...],
    device: torch.device,
) -> JudgeScorer:
    """The judge that training wrote to ``folder``, with its own threshold and temperature."""
    if settings.head == "classification" and not head_words(folder):
        raise ValueError(f"{folder} holds no trained classification head; train it first")

    def load(settings: LoadSettings) -> Judge:
        judge = load_judge(folder, checkpoint, settings)
        to_device(judge.model, device)
        return judge

    judge = load(settings)
    if settings.head == "classification" and (missing := set(head_modules(judge.model)) - head_words(folder)):
        raise ValueError(
            f"{folder} holds no trained {', '.join(sorted(missing))}: its head would be one of random weights"
        )
    if max_length is not None:
        judge = judge.with_spec(max_length=max_length)
    exact = partial(load, replace(settings, dtype="float32")) if rescores(settings, device) else None
    return JudgeScorer(judgment, judge, examples, "judge.json", exact)


def verbalizer(
    judgment: Judgment[Any],
    checkpoint: Checkpoint,
    settings: LoadSettings,
    max_length: int | None,
    examples: tuple[Any, ...],
    device: torch.device,
) -> JudgeScorer:
    """A language model as it is: the logit of the "yes" word less that of the "no" word where the answer begins."""

    def load(settings: LoadSettings) -> Judge:
        judge = new_judge(
            checkpoint, judgment.name, judgment.template_version, judgment.label_words, settings, max_length=max_length
        )
        to_device(judge.model, device)
        return judge

    exact = partial(load, replace(settings, dtype="float32")) if rescores(settings, device) else None
    return JudgeScorer(judgment, load(settings), examples, exact=exact)


def to_device(model: Any, device: torch.device) -> None:
    """Move a model, unless it is quantized: bitsandbytes has put it in its place."""
    if not getattr(model, "is_quantized", False):
        model.to(device)


def check_spec(spec: JudgeSpec, judgment: Judgment[Any], folder: Path) -> None:
    """Raises ValueError where the judge of ``folder`` was taught another judgment, or another text of this one."""
    if spec.judgment != judgment.name:
        raise ValueError(
            f"{folder} is a judge for {spec.judgment}, not for {judgment.name}; give --judgment {spec.judgment}"
        )
    if spec.template_version != judgment.template_version:
        raise ValueError(
            f"{folder} was trained on the text of template {spec.template_version}; this version renders "
            f"{judgment.template_version}: train it again, or evaluate it with the version that trained it"
        )


def head_words(folder: Path) -> set[str]:
    """Names of head modules among the weights that lie in a judge's folder."""
    words: set[str] = set()
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            words.update(word for key in file.keys() for word in key.split("."))  # noqa: SIM118
    return words.intersection(HEAD_MODULES)
