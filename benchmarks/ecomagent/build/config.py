"""The configuration of a construction: every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from benchmarks.ecomagent.tasks import INTENTS
from models.backbone import Dtype, Quantization
from models.limits import SEEDS, Limits


@dataclass(frozen=True)
class EcomAgentBuildConfig:
    """Build shopping tasks from a catalogue.

    A writer or judge is a packaged name (smollm2-135m), a folder, a hub id (org/name[@revision]), or a served model
    (http://host:port/v1#model).

    Attributes:
        catalogue: a file that scripts/build.py ecomagent-catalogue wrote, or sample.
        intents: the intents to build for.
        tasks: tasks of each intent (review_driven looks at 1.3 times as many products, as more drop out).
        generator: who words the tasks; None words them from templates, without a language model.
        judge: who reads each task as a second gate; None has none, and tasks then say nothing of a judge.
        min_features: requirements that a task has at least, its kind of product and budget not counted.
        max_features: and at most.
        name: what ids begin with; a number follows.
        seed: fixes everything that is drawn.
        rows: texts that a local checkpoint writes side by side.
        concurrency: requests that a server gets at once.
        dtype: of local checkpoints; see models.backbone.
        quantization: of local checkpoints.
        out: the folder; None is results/ecomagent-tasks/<catalogue>-<writer>. What was stopped goes on there.
        overwrite: forget what is there and start anew.
    """

    catalogue: str = "sample"
    intents: list[str] = field(default_factory=lambda: list(INTENTS))
    tasks: Annotated[int, Limits(1)] = 25
    generator: str | None = None
    judge: str | None = None
    min_features: Annotated[int, Limits(8)] = 8
    max_features: Annotated[int, Limits(9)] = 12
    name: str = "task"
    seed: Annotated[int, SEEDS] = 42
    rows: Annotated[int, Limits(1)] | None = None
    concurrency: Annotated[int, Limits(1)] | None = None
    dtype: Dtype = "auto"
    quantization: Quantization | None = None
    trust_remote_code: bool = False
    out: str | None = None
    overwrite: bool = False
