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
        # For those who load the saved tokenizer on its own: their batches then end where ours do.
        tokenizer.padding_side = "left" if head == "verbalizer" else "right"

    def encode(self, prompts: Sequence[PromptText]) -> list[Encoded]:
        """Token ids of each prompt, never truncated: what does not fit is the caller's to shorten or refuse.

        Raises:
            ValueError: a text gives no token at all, or ends with the token that pads.
        """
        if not prompts:
            return []
        if self.bidirectional:
            first = ["".join(prompt.prefix).strip() for prompt in prompts]
            second = [prompt.suffix.strip() for prompt in prompts]
            batch = self.tokenizer(first, second, truncation=False, verbose=False)
            keys = [key for key in ("input_ids", "token_type_ids") if key in batch]
            return [{key: batch[key][row] for key in keys} for row in range(len(prompts))]
        return [{"input_ids": self._checked(ids)} for ids in self._ids([self.text(prompt) for prompt in prompts])]

    def _ids(self, texts: list[str]) -> list[list[int]]:
        """Token ids of texts for a decoder. A chat template has written its own special tokens; no end token is added
        behind the place where an answer is to come.
        """
        batch = self.tokenizer(texts, add_special_tokens=not self.chat, truncation=False, verbose=False)
        rows: list[list[int]] = batch["input_ids"]
        if self.head == "verbalizer" and not self.chat:
            eos = self.tokenizer.eos_token_id
            rows = [row[:-1] if row and row[-1] == eos else row for row in rows]
        return rows

    def _checked(self, ids: list[int]) -> list[int]:
        if not ids:
            raise ValueError("a text gives no token at all; give every record a text")
        if self.head == "classification" and ids[-1] == self.tokenizer.pad_token_id:
            raise ValueError(
                f"a text ends with the pad token {self.tokenizer.pad_token!r}; its last position cannot be told from "
                "padding; give the tokenizer a pad token of its own"
            )
        return ids

    def text(self, prompt: PromptText) -> str:
        """The very text that a decoder reads, template included."""
        text = "".join(prompt.prefix) + prompt.suffix
        if self.head == "classification":
            return text.strip()
        if not self.chat:
            return f"{text}\nAnswer:"
        return self._rendered([{"role": "user", "content": text}], add_generation_prompt=True)

    def _rendered(self, messages: list[dict[str, str]], add_generation_prompt: bool) -> str:
        rendered = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=add_generation_prompt, enable_thinking=False
        )
        assert isinstance(rendered, str)
        return rendered

    def lengths(self, prompts: Sequence[PromptText]) -> list[int]:
        """Tokens of each prompt, special tokens and template included."""
        return [len(encoded["input_ids"]) for encoded in self.encode(prompts)]

    def label_ids(self, words: tuple[str, str]) -> tuple[int, int]:
        """Token ids of the label words ("no", "yes") where the answer begins: each is the one token that a prompt
        followed by the answer has more than the prompt alone.

        Raises ValueError where a word is not one token there, or both are the same.
        """
        ids = [self._label_id(word) for word in words]
        if ids[0] == ids[1]:
            raise ValueError(f"label words {words} are the same token; give two different words")
        return ids[0], ids[1]

    def _label_id(self, word: str) -> int:
        question = "Is it so?"
        if self.chat:
            before = self._rendered([{"role": "user", "content": question}], add_generation_prompt=True)
            lead = self._lead(question, before, word)
        else:
            before, lead = f"{question}\nAnswer:", " "
        prompt, answered = self._ids([before, before + lead + word])
        if answered[: len(prompt)] != prompt or len(answered) != len(prompt) + 1:
            count = max(0, len(answered) - len(prompt))
            raise ValueError(
                f"label word {word!r} is {count} tokens after a prompt; the verbalizer head needs words of one token"
            )
        return answered[-1]

    def _lead(self, question: str, before: str, word: str) -> str:
        """The white space that a chat template puts between its prompt and an answer (Llama 2's: one space)."""
        messages = [{"role": "user", "content": question}, {"role": "assistant", "content": word}]
        whole = self._rendered(messages, add_generation_prompt=False)
        answer = whole[len(before) :] if whole.startswith(before) else ""
        bare = answer.lstrip()
        return answer[: len(answer) - len(bare)] if bare.startswith(word) else ""

    def pad(self, encoded: Sequence[Encoded], length: int | None = None) -> dict[str, torch.Tensor]:
        """A batch of tensors, each [rows, longest or ``length``].

        The verbalizer head pads on the left, so that every answer comes at the last position, and counts positions
        from the first real token; the classification head pads on the right.
        """
        pad_id = self.tokenizer.pad_token_id
        longest = max(length or 0, max(len(row["input_ids"]) for row in encoded))
        left = self.head == "verbalizer"
        batch: dict[str, list[list[int]]] = {key: [] for key in (*encoded[0], "attention_mask")}
        for row in encoded:
            missing = longest - len(row["input_ids"])
            mask = [1] * len(row["input_ids"])
            for key, values in {**row, "attention_mask": mask}.items():
                padding = [pad_id if key == "input_ids" else 0] * missing
                batch[key].append(padding + values if left else values + padding)
        tensors = {key: torch.tensor(rows, dtype=torch.long) for key, rows in batch.items()}
        if left:
            tensors["position_ids"] = (tensors["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)
        return tensors
