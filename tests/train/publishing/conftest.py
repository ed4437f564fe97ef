"""A hub on loopback, and a judge over a backbone that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
from hub_server import TOKEN, HubServer
from trained import Trained, make_trained

from train.config import TrainConfig


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub that this process speaks to, with a token that may write under ``me`` and ``org``."""
    with HubServer() as server:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)  # its server is another one
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture
def trained(tiny_config: TrainConfig, tiny_llama: Path, hub: HubServer) -> Trained:
    """A judge over ``org/tiny-llama``, which the hub holds, at a commit."""
    return make_trained(tiny_config, id="org/tiny-llama", revision=hub.add("org/tiny-llama", tiny_llama))
