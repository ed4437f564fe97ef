"""The configuration of a speed comparison: every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from models.limits import THREADS, Limits

Part = Literal["scoring", "encoders", "training", "generation", "growth"]
Peer = Literal["harness", "vllm", "cross-encoder"]


@dataclass(frozen=True)
class SpeedConfig:
    """What is compared, and how often. A whole run takes hours on two cores; each part can be run alone.

    Attributes:
        parts: scoring (beside the peers), encoders (the same for encoders), training (beside Trainer and PEFT),
            generation (answers to questions, beside transformers' plain generate), growth (cost by records, length,
            products and examples).
        peers: harness (lm-evaluation-harness), vllm (its CPU build), cross-encoder (sentence-transformers'); each is
            installed once into the cache.
        checkpoint: a decoder: a packaged name, a folder or a hub id.
        encoder: what the encoders part scores with.
        judgments: what is scored.
        shots: solved examples in the prompts.
        records: prompts scored in each round.
        alone: prompts that the harness scores, which shares nothing between them and is as fast on few.
        tools: those of scoring and encoders that take part, by the names of their tables ("ecomjudge auto"); None is
            all. "ecomjudge exact", which all scores are compared with, scores as many prompts as ``alone`` says where
            it is not among them.
        questions: what is answered: files of questions (see benchmarks.ecomqa), or sample.
        limit: questions of each sub-concept at most, the first ones; None is all.
        max_tokens: tokens of an answer at most.
        rounds: how often each tool has its turn; medians are told.
        threads: CPU threads of every tool; None takes all cores.
        out: the folder of bench.json and the workloads, in which no other bench's are; None is a new one below
            results/speed, named by the time at which the command began.
    """

    parts: tuple[Part, ...] = ("scoring", "encoders", "training", "generation", "growth")
    peers: tuple[Peer, ...] = ("harness", "vllm", "cross-encoder")
    checkpoint: str = "smollm2-135m"
    encoder: str = "minilm"
    judgments: tuple[str, ...] = ("script_verify", "step_product")
    shots: tuple[int, ...] = (0, 5)
    records: Annotated[int, Limits(1)] = 192
    alone: Annotated[int, Limits(1)] = 24
    tools: tuple[str, ...] | None = None
    questions: tuple[str, ...] = ("sample",)
    limit: Annotated[int, Limits(1)] | None = None
    max_tokens: Annotated[int, Limits(1)] = 64
    rounds: Annotated[int, Limits(1)] = 3
    threads: Annotated[int, THREADS] | None = None
    out: str | None = None
