"""How fast questions are answered, beside transformers' plain ``generate``, with the same texts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from models.backbone import LoadSettings, load_backbone, load_tokenizer
from models.chat_text import ChatText
from models.checkpoint import resolve
from models.generation import Chat, SamplingSettings, open_generator


@dataclass(frozen=True)
class Speed:
    """Seconds and tokens (read, written) of two ways to the same answers, and how many answers are the same.

    ``differing`` are answers that part somewhere: where two tokens are equally likely but for the last bits, another
    order of the same sums decides for the other.
    """

    chats: int
    prompt_tokens: int
    tokens: int
    plain_tokens: int
    seconds: float
    plain_seconds: float
    differing: int

    @property
    def ratio(self) -> float:
        """Answers a second of ours, over those of plain generate."""
        return self.plain_seconds / self.seconds


def compare_generation(checkpoint: str, chats: Sequence[Chat], max_tokens: int, batch: int = 8) -> Speed:
    """Answer the same chats in float32 by a generator of ours and by ``generate`` as it comes (its own attention,
    torch's own products), in the order given, padded, ``batch`` at a time.

    Both are loaded beforehand and read one chat to warm up; loading and warming up are not counted.
    """
    sampling = SamplingSettings(max_tokens=max_tokens)
    generator = open_generator(checkpoint, settings=LoadSettings(dtype="float32"))
    list(generator.generate(chats[:1], SamplingSettings(max_tokens=2)))
    started = time.perf_counter()
    ours = dict(generator.generate(chats, sampling))
    seconds = time.perf_counter() - started
    del generator

    found = resolve(checkpoint)
    tokenizer = load_tokenizer(found)
    as_it_comes = LoadSettings(head="verbalizer", dtype="exact", attention="sdpa")
    model = load_backbone(found, as_it_comes, int(tokenizer.pad_token_id)).eval()
    plain_generate(model, tokenizer, chats[:1], 2, batch)
    started = time.perf_counter()
    plain = plain_generate(model, tokenizer, chats, max_tokens, batch)
    plain_seconds = time.perf_counter() - started
    return Speed(
        chats=len(chats),
        prompt_tokens=sum(completion.prompt_tokens for completion in ours.values()),
        tokens=sum(completion.tokens for completion in ours.values()),
        plain_tokens=sum(tokens for _, tokens in plain),
        seconds=seconds,
        plain_seconds=plain_seconds,
        differing=sum(ours[row].text != text for row, (text, _) in enumerate(plain)),
    )


@torch.inference_mode()
def plain_generate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, chats: Sequence[Chat], max_tokens: int, batch: int
) -> list[tuple[str, int]]:
    """(text, tokens) of each chat by transformers' greedy ``generate``, padded on the left, in the order given."""
    text = ChatText(tokenizer)
    ends = {int(tokenizer.eos_token_id)}
    written: list[tuple[str, int]] = []
    for start in range(0, len(chats), batch):
        rows = text.encode([text.render(chat, None) for chat in chats[start : start + batch]])
        longest = max(map(len, rows))
        ids = torch.tensor([[int(tokenizer.pad_token_id)] * (longest - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        out = model.generate(
            ids, attention_mask=mask, max_new_tokens=max_tokens, do_sample=False, eos_token_id=sorted(ends)
        )
        for row in out[:, longest:].tolist():
            end = next((place for place, token in enumerate(row) if token in ends), None)
            written.append((text.decode(row[:end]), len(row) if end is None else end + 1))
    return written
