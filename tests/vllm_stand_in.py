"""The part of vLLM's interface that models.vllm_engine uses, over transformers' own greedy generate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from transformers import AutoModelForCausalLM


class SamplingParams:
    def __init__(self, *, max_tokens: int, temperature: float, top_p: float, stop: list[str], seed: int | None) -> None:
        self.max_tokens, self.temperature, self.top_p, self.stop, self.seed = max_tokens, temperature, top_p, stop, seed


class LoRARequest:
    def __init__(self, lora_name: str, lora_int_id: int, lora_path: str) -> None:
        self.lora_name, self.lora_int_id, self.lora_path = lora_name, lora_int_id, lora_path


class LLM:
    """``asked`` and ``calls`` keep what it was made with and what it was asked."""

    made: ClassVar[list[LLM]] = []

    def __init__(self, model: str, **asked: Any) -> None:
        self.asked, self.calls = asked, []
        self.model: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        self.model_config = SimpleNamespace(max_model_len=self.model.config.max_position_embeddings)
        LLM.made.append(self)

    def generate(
        self, prompts: list[dict[str, list[int]]], params: list[SamplingParams], use_tqdm: bool, lora_request: Any
    ) -> list[Any]:
        self.calls.append((len(prompts), params, lora_request))
        return [self._answer(prompt["prompt_token_ids"], one) for prompt, one in zip(prompts, params, strict=True)]

    def _answer(self, ids: list[int], params: SamplingParams) -> Any:
        given = torch.tensor([ids])
        out = self.model.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=params.max_tokens, do_sample=False
        )
        new = out[0, len(ids) :].tolist()
        told = self.model.generation_config.eos_token_id
        ended = new[-1] in (told if isinstance(told, list) else [told])
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=new, finish_reason="stop" if ended else "length")])
