"""Which generator a reference names: a local checkpoint (see models.checkpoint), with or without an adapter, the same
in vLLM's engine as ``vllm:CHECKPOINT``, or a served model as ``http://host:port/v1#model``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.generation import Found, Generator
from models.packaged import cache_folder

if TYPE_CHECKING:
    import torch

    from models.backbone import LoadSettings

VLLM = "vllm:"  # what a reference to a checkpoint in vLLM's engine begins with


def find_generator(
    reference: str,
    adapter: str | None = None,
    settings: LoadSettings | None = None,
    rows: int | None = None,
    device: torch.device | str = "cpu",
    concurrency: int | None = None,
    anew: bool = False,
) -> Found:
    """Find the generator that a reference names; a local checkpoint's weights are read when it is opened.

    Args:
        reference: a checkpoint (see models.checkpoint.resolve), ``vllm:`` and a checkpoint, or
            ``http://host:port/v1#model``. Empty (or ``vllm:``) where the adapter names its backbone.
        adapter: a folder with a LoRA adapter for the checkpoint.
        settings: precision, quantization and the like of a local checkpoint.
        rows: texts that a local checkpoint writes side by side.
        concurrency: requests that a server gets at once.
        anew: ask a server even what it has answered before, and keep the new answers.

    Raises ValueError or FileNotFoundError in words.
    """
    if is_served(reference):
        from models.served import CONCURRENCY, ServerGenerator

        url, _, model = reference.partition("#")
        if not model or adapter:
            what = "an adapter is the server's to load" if adapter else "no model is named"
            raise ValueError(f"{reference}: {what}; give http://host:port/v1#model, with a name that the server lists")
        served = ServerGenerator(url, model, cache_folder() / "served.sqlite", concurrency or CONCURRENCY, anew=anew)
        return Found(served.name, served.facts, lambda: served)
    if reference.startswith(VLLM):
        from models.vllm_engine import find_vllm

        return find_vllm(reference, adapter, settings)
    from models.language_model import find_local

    return find_local(reference, adapter, settings, rows, device)


def open_generator(
    reference: str,
    adapter: str | None = None,
    settings: LoadSettings | None = None,
    rows: int | None = None,
    device: torch.device | str = "cpu",
    concurrency: int | None = None,
) -> Generator:
    """The generator that a reference names, ready to write; see `find_generator`."""
    return find_generator(reference, adapter, settings, rows, device, concurrency).open()


def is_served(reference: str) -> bool:
    """Whether a reference names a served model."""
    return reference.startswith(("http://", "https://"))
