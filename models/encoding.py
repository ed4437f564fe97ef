"""From a prompt's text to tokens, and from tokens to a padded batch: the one place that knows how a head reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from transformers import PreTrainedTokenizerBase

from models.backbone import Head

Encoded = dict[str, list[int]]


class PromptText(Protocol):
    """What a prompt must have: text segments from the most to the least shared, then the record's own."""

    @property
    def prefix(self) -> tuple[str, ...]: ...
    @property
    def suffix(self) -> str: ...


class Encoder:
    """Encodes prompts for one tokenizer and head.

    Three ways of reading: encoders take (prefix, suffix) as a text pair; decoders with a classification head take
    the text with the tokenizer's own special tokens; the verbalizer head takes it through the chat template where the
    tokenizer has one, else followed by "Answer:", so that the next token is the label word.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, head: Head, bidirectional: bool) -> None:
        self.tokenizer = tokenizer
        self.head = head
        self.bidirectional = bidirectional
        self.chat = head == "verbalizer" and bool(tokenizer.chat_template)

    def encode(self, prompts: Sequence[PromptText]) -> list[Encoded]:
        """Token ids of each prompt, never truncated: what does not fit is the caller's to shorten or refuse."""
        if not prompts:
            return []
        if self.bidirectional:
            first = ["".join(prompt.prefix).strip() for prompt in prompts]
            second = [prompt.suffix.strip() for prompt in prompts]
            batch = self.tokenizer(first, second, truncation=False, verbose=False)
        else:
            batch = self.tokenizer(
                [self.text(prompt) for prompt in prompts],
                add_special_tokens=not self.chat,
                truncation=False,
                verbose=False,
            )
        keys = [key for key in ("input_ids", "token_type_ids") if key in batch]
        return [{key: batch[key][row] for key in keys} for row in range(len(prompts))]

    def text(self, prompt: PromptText) -> str:
        """The very text that a decoder reads, template included."""
        text = "".join(prompt.prefix) + prompt.suffix
        if self.head == "classification":
            return text.strip()
        if not self.chat:
            return f"{text}\nAnswer:"
        rendered = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        assert isinstance(rendered, str)
        return rendered

    def lengths(self, prompts: Sequence[PromptText]) -> list[int]:
        """Tokens of each prompt, special tokens and template included."""
        return [len(encoded["input_ids"]) for encoded in self.encode(prompts)]

    def label_ids(self, words: tuple[str, str]) -> tuple[int, int]:
        """Token ids of the label words ("no", "yes") where the answer begins.

        Raises ValueError where a word is not one token there, or both are the same.
        """
        lead = "" if self.chat else " "
        ids = []
        for word in words:
            tokens = self.tokenizer(lead + word, add_special_tokens=False)["input_ids"]
            if len(tokens) == 2 and lead and self.tokenizer.decode(tokens[:1]).strip() == "":
                tokens = tokens[1:]  # a sentencepiece space mark on its own
            if len(tokens) != 1:
                raise ValueError(f"label word {word!r} is {len(tokens)} tokens; the verbalizer head needs words of one token")
            ids.append(int(tokens[0]))
        if ids[0] == ids[1]:
            raise ValueError(f"label words {words} are the same token; give two different words")
        return ids[0], ids[1]

    def pad(self, encoded: Sequence[Encoded], length: int | None = None) -> dict[str, torch.Tensor]:
        """A batch of tensors, each [rows, longest or ``length``].

        The verbalizer head pads on the left, so that every answer comes at the last position, and counts positions
        from the first real token; the classification head pads on the right.
        """
        pad_id = self.tokenizer.pad_token_id
        longest = max(length or 0, max(len(row["input_ids"]) for row in encoded))
        left = self.head == "verbalizer"
        batch = {key: [] for key in (*encoded[0], "attention_mask")}  # type: dict[str, list[list[int]]]
        for row in encoded:
            ids = row["input_ids"]
            if ids[-1] == pad_id and not self.bidirectional and self.head == "classification":
                raise ValueError(
                    f"a text ends with the pad token {self.tokenizer.pad_token!r}; its last position cannot be told from "
                    "padding; give the tokenizer a pad token of its own"
                )
            missing = longest - len(ids)
            for key, fill in (("input_ids", pad_id), ("token_type_ids", 0)):
                if key in row:
                    batch[key].append([fill] * missing + row[key] if left else row[key] + [fill] * missing)
            mask = [1] * len(ids)
            batch["attention_mask"].append([0] * missing + mask if left else mask + [0] * missing)
        tensors = {key: torch.tensor(rows, dtype=torch.long) for key, rows in batch.items()}
        if left:
            tensors["position_ids"] = (tensors["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)
        return tensors
