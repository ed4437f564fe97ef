"""The configuration of a speed comparison: every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["scoring", "training", "growth"]
Peer = Literal["harness", "vllm"]


@dataclass(frozen=True)
class SpeedConfig:
    """What is compared, and how often. A whole run takes hours on two cores; each part can be run alone.

    Attributes:
        parts: scoring (beside the peers), training (beside Trainer and PEFT), growth (cost by records, length,
            products and examples).
        peers: harness (lm-evaluation-harness), vllm (its CPU build); each is installed once into the cache.
        checkpoint: a decoder: a packaged name, a folder or a hub id.
        judgments: what is scored.
        shots: solved examples in the prompts.
        records: prompts scored in each round.
        rounds: how often each tool has its turn; medians are told.
        threads: CPU threads of every tool; None takes all cores.
        out: where bench.json and the workloads go.
    """

    parts: tuple[Part, ...] = ("scoring", "training", "growth")
    peers: tuple[Peer, ...] = ("harness", "vllm")
    checkpoint: str = "smollm2-135m"
    judgments: tuple[str, ...] = ("script_verify", "step_product")
    shots: tuple[int, ...] = (0, 5)
    records: int = 64
    rounds: int = 3
    threads: int | None = None
    out: str = "results/speed"
