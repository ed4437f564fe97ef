"""The configuration of an evaluation: every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from benchmarks.ecomagent.episodes import MAX_STEPS
from benchmarks.ecomagent.formats import FormatName
from benchmarks.ecomagent.grading.grade import Scope
from benchmarks.ecomagent.tools import Mode
from models.backbone import Dtype, Quantization
from models.limits import SEEDS, THREADS, Limits

Reference = Literal["oracle", "thorough", "visible-only", "random"]


@dataclass(frozen=True)
class EcomAgentConfig:
    """An evaluation on EComAgentBench, or on tasks of one's own in its format.

    Attributes:
        tasks: a JSONL file of tasks (the published one, or what scripts/build.py ecomagent wrote), or sample.
        catalogue: the file that the tasks shop in (scripts/build.py ecomagent-catalogue wrote it, or the published
            product.db), or sample.
        checkpoint: who shops: a packaged name (smollm2-135m), a folder, a hub id (org/name[@revision]), or a served
            model (http://host:port/v1#model). May be left out where the adapter names its backbone.
        adapter: a folder with a LoRA adapter.
        agent: a reference agent in place of a checkpoint: oracle, thorough, visible-only or random.
        predictions: a file of predictions that were made elsewhere, in the published form, to be graded only.
        mode: strict (tools without the published oddities) or compat (with them).
        limit: play at most so many tasks of each intent, the first ones.
        trials: how often each task is played; pass^k is told for every k up to it. Needs a temperature.
        lanes: episodes in flight: over one local model, or at a server.
        max_steps: turns of an episode at most.
        max_new_tokens: tokens of a turn at most, reasoning included.
        temperature, top_p: how turns are drawn; 0 is greedy.
        thinking: switch a chat template's reasoning on or off; None leaves it to the template.
        tool_format: how a local checkpoint writes calls (hermes, qwen_xml, llama3, mistral, plain); None reads that off
            its chat template.
        guided: hold a local checkpoint's turns by a grammar to a short thought and one well-formed call.
        context: tokens that a conversation and its next turn may have; None is the model's own limit.
        keep: keep keys and values between turns; off (--no_keep) is for comparison only.
        judge: a model that decides what only meaning decides (named like a checkpoint); None compares words.
        judge_scope: open (ask the judge where code cannot tell) or all (about everything, to see how far it agrees).
        retry_errors: play episodes again that ended with an error.
        resamples: bootstrap resamples of the tasks.
        seed: draws turns, the reference agents' chances and the bootstrap's resamples.
        threads: CPU threads a process; None shares the machine's cores among the processes on it.
        out: the results' folder; None is results/ecomagent/<who>. What was stopped goes on there.
        overwrite: forget what is there and start anew.
    """

    tasks: str = "sample"
    catalogue: str = "sample"
    checkpoint: str | None = None
    adapter: str | None = None
    agent: Reference | None = None
    predictions: str | None = None
    mode: Mode = "strict"
    limit: Annotated[int, Limits(1)] | None = None
    trials: Annotated[int, Limits(1, 1000)] = 1
    lanes: Annotated[int, Limits(1, 1024)] = 8
    max_steps: Annotated[int, Limits(1)] = MAX_STEPS
    max_new_tokens: Annotated[int, Limits(1)] = 512
    temperature: Annotated[float, Limits(0)] = 0.0
    top_p: Annotated[float, Limits(above=0, most=1)] = 1.0
    thinking: bool | None = None
    tool_format: FormatName | None = None
    guided: bool = False
    context: Annotated[int, Limits(1)] | None = None
    keep: bool = True
    judge: str | None = None
    judge_scope: Scope = "open"
    retry_errors: bool = False
    dtype: Dtype = "auto"
    quantization: Quantization | None = None
    attention: str | None = None
    trust_remote_code: bool = False
    resamples: Annotated[int, Limits(1)] = 2000
    seed: Annotated[int, SEEDS] = 0
    threads: Annotated[int, THREADS] | None = None
    out: str | None = None
    overwrite: bool = False
