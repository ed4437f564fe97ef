"""vLLM inside this process as a generator: ``vllm:CHECKPOINT``. Optional; see the extra in pyproject.toml."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from models.backbone import LoadSettings
from models.chat_text import ChatText, opened_block
from models.generation import Chat, Completion, Found, SamplingSettings
from models.writing import dice_of

BATCH = 256  # chats that the engine gets at once, and schedules as it likes


class VllmGenerator:
    """A checkpoint in vLLM's engine, with a LoRA adapter or without.

    Chats are rendered and counted as for local checkpoints, and the engine gets tokens. It shares the work of what
    chats begin with. How it groups texts follows from the chats of a batch, so that a batch comes out the same again as
    far as the engine's kernels are deterministic.

    Args:
        engine: ``vllm.LLM``.
        adapter: what its ``generate`` takes as ``lora_request``.
    """

    def __init__(
        self, engine: Any, tokenizer: PreTrainedTokenizerBase, name: str, facts: dict[str, Any], adapter: Any = None
    ) -> None:
        self.engine, self.adapter, self.name, self.facts = engine, adapter, name, facts
        self.text = ChatText(tokenizer)
        self.context: int | None = int(engine.model_config.max_model_len)

    def prompt_tokens(self, chats: Sequence[Chat]) -> list[int]:
        """Tokens of each prompt, template included, with the template's own choice about thinking."""
        return [len(ids) for ids in self.text.encode([self.text.render(chat, None) for chat in chats])]

    def plan(self, chats: Sequence[Chat], settings: SamplingSettings) -> list[list[int]]:
        """Batches of chats, those with one first turn side by side, so that the engine finds it in its cache."""
        rows = sorted(range(len(chats)), key=lambda row: (chats[row].messages[0].content, row))
        return [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]

    def generate(
        self, chats: Sequence[Chat], settings: SamplingSettings, batches: Sequence[Sequence[int]] | None = None
    ) -> Iterator[tuple[int, Completion]]:
        """(row, completion), a batch at a time."""
        for batch in self.plan(chats, settings) if batches is None else batches:
            texts = [self.text.render(chats[row], settings.thinking) for row in batch]
            prompts = self.text.encode(texts)
            written = self.engine.generate(
                [{"prompt_token_ids": ids} for ids in prompts],
                [_sampling(chats[row], settings) for row in batch],
                use_tqdm=False,
                lora_request=self.adapter,
            )
            for row, rendered, ids, found in zip(batch, texts, prompts, written, strict=True):
                yield row, self._completion(rendered, len(ids), found.outputs[0], settings)

    def _completion(self, rendered: str, read: int, output: Any, settings: SamplingSettings) -> Completion:
        text = self.text.decode(output.token_ids)
        stops = [place for stop in settings.stop if (place := text.find(stop)) >= 0]
        return Completion(
            text=opened_block(rendered) + text[: min(stops, default=len(text))],
            tokens=len(output.token_ids),
            prompt_tokens=read,
            finish="length" if output.finish_reason == "length" else "stop",
        )


def _sampling(chat: Chat, settings: SamplingSettings) -> Any:
    """One chat's settings in vLLM's words; draws follow from the seed and the chat, wherever it stands."""
    from vllm import SamplingParams

    if settings.grammar is not None:
        raise ValueError("a grammar guides local checkpoints alone, not vLLM's engine")
    dice = dice_of(chat, settings)
    return SamplingParams(
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        stop=list(settings.stop),
        seed=dice.getrandbits(31) if dice else None,
    )


def find_vllm(reference: str, adapter: str | None = None, settings: LoadSettings | None = None) -> Found:
    """The checkpoint behind ``vllm:`` as a generator of vLLM's; see models.generators.find_generator.

    Raises ValueError where vLLM is not installed, or cannot do what is asked.
    """
    if find_spec("vllm") is None:
        raise ValueError(
            f"{reference}: vLLM is not installed here; pip install vllm where it can share an environment with this "
            "toolkit (see docs/ecomqa.md), or let it serve and give http://host:port/v1#model"
        )
    from models.language_model import describe

    described = describe(reference.partition(":")[2], adapter, settings)
    if described.settings.quantization != "none":
        raise ValueError(f"{reference}: quantization {described.settings.quantization} is not done in vLLM; give none")
    facts = {**described.facts, "engine": f"vllm {importlib.metadata.version('vllm')}"}
    checkpoint, folder = described.checkpoint, described.adapter

    def load() -> VllmGenerator:
        from vllm import LLM

        lora = {"enable_lora": True, "max_lora_rank": _rank(folder)} if folder else {}
        engine = LLM(
            model=checkpoint.path,
            revision=checkpoint.revision,
            dtype="float32" if facts["dtype"] == "exact" else facts["dtype"],
            trust_remote_code=described.settings.trust_remote_code,
            enable_prefix_caching=True,
            seed=0,
            **lora,
        )
        return VllmGenerator(engine, described.tokenizer, described.name, facts, _adapter(folder))

    return Found(described.name, facts, load)


def _rank(folder: Path) -> int:
    from peft import PeftConfig

    return int(getattr(PeftConfig.from_pretrained(str(folder)), "r", 16))


def _adapter(folder: Path | None) -> Any:
    if folder is None:
        return None
    from vllm.lora.request import LoRARequest

    return LoRARequest(folder.name, 1, str(folder.absolute()))
