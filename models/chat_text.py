"""From chats to tokens and from tokens to text, through a tokenizer's chat template where it has one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jinja2.exceptions import TemplateError
from transformers import PreTrainedTokenizerBase

from models.generation import Chat

# A reasoning block that the template has opened at the end of the prompt, as DeepSeek-R1's does.
OPENED = re.compile(r"<(?:think|thinking|reasoning|thought)>\s*$")


class ChatText:
    """Writes chats for one tokenizer and reads its answers. Without a template the turns stand one below the other."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        self.template = bool(tokenizer.chat_template)

    def render(self, chat: Chat, thinking: bool | None) -> str:
        """The text that the model continues.

        A template that knows no system turn gets its text at the head of the first user turn.
        """
        turns = [{"role": message.role, "content": message.content} for message in chat.messages]
        if not self.template:
            return "".join(_own_line(turn["content"]) for turn in turns[:-1]) + turns[-1]["content"]
        try:
            return self._apply(turns, thinking)
        except TemplateError:
            if turns[0]["role"] != "system" or len(turns) < 2:
                raise
            merged = {**turns[1], "content": f"{turns[0]['content']}\n\n{turns[1]['content']}"}
            return self._apply([merged, *turns[2:]], thinking)

    def _apply(self, turns: list[dict[str, str]], thinking: bool | None) -> str:
        options = {} if thinking is None else {"enable_thinking": thinking}
        text = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **options)
        assert isinstance(text, str)
        return text

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of rendered chats. A template has written its own special tokens."""
        if not texts:
            return []
        batch = self.tokenizer(list(texts), add_special_tokens=not self.template, truncation=False, verbose=False)
        rows: list[list[int]] = batch["input_ids"]
        end = self.tokenizer.eos_token_id
        return rows if self.template else [row[:-1] if len(row) > 1 and row[-1] == end else row for row in rows]

    def decode(self, ids: Sequence[int]) -> str:
        """Tokens as text, special tokens left out."""
        text = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert isinstance(text, str)
        return text


def opened_block(rendered: str) -> str:
    """The tag of a reasoning block that the prompt leaves open at its end, with its white space; else nothing."""
    found = OPENED.search(rendered)
    return found[0] if found else ""


def _own_line(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
