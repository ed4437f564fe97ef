"""Who shops: a reference agent, a local checkpoint or a served model, found before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.ecomagent import prompts
from benchmarks.ecomagent.agents import ReferenceAgent
from benchmarks.ecomagent.config import EcomAgentConfig
from benchmarks.ecomagent.playing import Player
from benchmarks.ecomagent.tools import TOOLS
from models.backbone import LoadSettings
from models.generation import Found, SamplingSettings
from models.generators import VLLM, find_generator, is_served


@dataclass(frozen=True)
class FoundPlayer:
    """A player that is not loaded yet. ``facts`` fix what it does, together with the rules of the episode."""

    name: str
    facts: dict[str, Any]
    open: Callable[[], Player]


def find_player(config: EcomAgentConfig, device: torch.device) -> FoundPlayer:
    """The player that a configuration names. Raises ValueError or FileNotFoundError in words."""
    if config.agent is not None:
        if config.checkpoint or config.adapter:
            raise ValueError("agent and checkpoint are both given; one of them shops: leave the other out")
        reference = ReferenceAgent(config.agent, config.seed)
        return FoundPlayer(reference.name, reference.facts, lambda: reference)
    if not config.checkpoint and not config.adapter:
        raise ValueError("nobody to shop: give --checkpoint, --adapter, or --agent oracle|thorough|visible-only|random")
    if config.trials > 1 and config.temperature == 0:
        raise ValueError("trials of a greedy model are all the same; give a --temperature, or one trial")
    if (config.checkpoint or "").startswith(VLLM):
        raise ValueError(
            f"{config.checkpoint}: shoppers are no engine's work: each keeps what it has read from turn to turn; leave "
            f"{VLLM} out, or start `vllm serve` and give --checkpoint http://host:port/v1#model"
        )
    found = find_generator(
        config.checkpoint or "", config.adapter, load_settings(config), config.lanes, device, config.lanes
    )
    sampling = SamplingSettings(
        config.max_new_tokens, config.temperature, config.top_p, seed=config.seed, thinking=config.thinking
    )
    facts = {**found.facts, "prompt": prompts.VERSION, "sampling": vars(sampling), "tool_format": config.tool_format}
    if is_served(config.checkpoint or ""):
        if config.guided or config.tool_format:
            raise ValueError("a server writes calls in its own way; leave --guided and --tool_format out")
        return FoundPlayer(found.name, facts, lambda: _served(found, sampling))
    facts |= {"context": config.context, "keep": config.keep, "guided": config.guided}
    return FoundPlayer(found.name, facts, lambda: _local(found, sampling, config))


def load_settings(config: EcomAgentConfig) -> LoadSettings:
    """How local checkpoints are loaded."""
    return LoadSettings(
        dtype=config.dtype,
        quantization=config.quantization or "none",
        attention=config.attention,
        trust_remote_code=config.trust_remote_code,
    )


def _served(found: Found, sampling: SamplingSettings) -> Player:
    from benchmarks.ecomagent.server_agent import ServerAgent
    from models.served import ServerGenerator

    generator = found.open()
    assert isinstance(generator, ServerGenerator)
    return ServerAgent(generator, sampling)


def _local(found: Found, sampling: SamplingSettings, config: EcomAgentConfig) -> Player:
    from benchmarks.ecomagent.local_agent import LocalAgent, LocalSettings
    from models.local import LocalGenerator

    generator = found.open()
    assert isinstance(generator, LocalGenerator)
    schemas = [tool.schema(config.mode) for tool in TOOLS.values()]
    settings = LocalSettings(config.lanes, config.tool_format, config.context, config.keep, config.guided)
    return LocalAgent(generator, schemas, sampling, settings)
