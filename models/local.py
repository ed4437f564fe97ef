"""A local checkpoint as a generator: what many chats begin with is read once, and rows come and go as they finish.

A text is what transformers' ``generate`` writes for its chat alone, but for the last bits of the arithmetic, and for
what a checkpoint's generation configuration asks beside its end tokens (a repetition penalty, say), which is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from models.backbone import position_limit
from models.chat_text import ChatText, opened_block
from models.decoding import Layer, read_beginning, use_slots
from models.generation import Chat, Completion, SamplingSettings
from models.writing import Row, Writing, dice_of

ROWS, ROWS_ON_CPU = 128, 32  # texts written side by side, where nothing is said
SLOT_TOKENS = 32_768  # tokens of keys and values held at most: 1.5 GB for SmolLM2-135M in float32
ROUNDS = 4  # a batch holds as many rows as are written side by side, so many times


class LocalGenerator:
    """A causal language model of transformers, on one device.

    Args:
        facts: what fixes outputs; see models.generation.Generator.
        rows: texts written side by side.

    Raises ValueError for an architecture that it cannot write with.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        facts: dict[str, Any],
        rows: int = ROWS_ON_CPU,
    ) -> None:
        use_slots(model.eval(), name)
        self.model, self.name, self.facts, self.rows = model, name, facts, rows
        self.text = ChatText(tokenizer)
        self.context = position_limit(model)
        self.ends = _end_tokens(model, tokenizer)

    def prompt_tokens(self, chats: Sequence[Chat]) -> list[int]:
        """Tokens of each prompt, template included, with the template's own choice about thinking."""
        return [len(ids) for ids in self.text.encode([self.text.render(chat, None) for chat in chats])]

    def plan(self, chats: Sequence[Chat], settings: SamplingSettings) -> list[list[int]]:
        """Batches of chats, those with one system prompt side by side; they follow from chats and settings alone."""
        return self._plan(self._encode(self._render(chats, settings), settings), _groups(chats), settings)

    def generate(
        self, chats: Sequence[Chat], settings: SamplingSettings, batches: Sequence[Sequence[int]] | None = None
    ) -> Iterator[tuple[int, Completion]]:
        """(row, completion), each as soon as it is written.

        Raises ValueError where a prompt and its answer do not fit the model's positions.
        """
        texts = self._render(chats, settings)
        encoded, groups = self._encode(texts, settings), _groups(chats)
        group_of = {row: number for number, group in enumerate(groups) for row in group}
        shared = [common_prefix([encoded[row] for row in group]) for group in groups]
        held: dict[int, list[Layer]] = {}
        for batch in self._plan(encoded, groups, settings) if batches is None else batches:
            numbers = list(dict.fromkeys(group_of[row] for row in batch))
            held = {number: held[number] for number in numbers if number in held}
            for number in numbers:
                if number not in held:
                    held[number] = read_beginning(self.model, encoded[groups[number][0]][: shared[number]])
            rows = [
                Row(
                    row,
                    encoded[row][shared[group_of[row]] :],
                    dice_of(chats[row], settings),
                    beginning=numbers.index(group_of[row]),
                )
                for row in batch
            ]
            slots = self._slots(max(len(row.own) for row in rows) + settings.max_tokens)
            writing = Writing(self.model, [held[number] for number in numbers], rows, slots, settings)
            for row in writing.run(lambda row: self._finished(row, settings)):
                text, ended = self._read(row, settings)
                opened = opened_block(texts[row.number])
                prompt = len(encoded[row.number])
                yield row.number, Completion(opened + text, len(row.written), prompt, "stop" if ended else "length")

    def _render(self, chats: Sequence[Chat], settings: SamplingSettings) -> list[str]:
        return [self.text.render(chat, settings.thinking) for chat in chats]

    def _encode(self, texts: Sequence[str], settings: SamplingSettings) -> list[list[int]]:
        encoded = self.text.encode(texts)
        longest = max(map(len, encoded), default=0)
        if self.context is not None and longest + settings.max_tokens > self.context:
            raise ValueError(
                f"{self.name} takes {self.context} tokens; the longest prompt has {longest}, and max_tokens is "
                f"{settings.max_tokens}: give fewer max_tokens, shorter prompts, or another model"
            )
        return encoded

    def _plan(
        self, encoded: Sequence[list[int]], groups: Sequence[Sequence[int]], settings: SamplingSettings
    ) -> list[list[int]]:
        """Rows of a group lie side by side, the longest first, and groups by their longest row."""
        own = {
            row: len(encoded[row]) - shared
            for group in groups
            for shared in [common_prefix([encoded[row] for row in group])]
            for row in group
        }
        ordered = sorted(groups, key=lambda group: -max(own[row] for row in group))
        batches: list[list[int]] = []
        longest = 0
        for row in [row for group in ordered for row in sorted(group, key=lambda row: (-own[row], row))]:
            most = ROUNDS * self._slots(max(longest, own[row]) + settings.max_tokens)
            if not batches or len(batches[-1]) >= most:
                batches.append([])
                longest = 0
            batches[-1].append(row)
            longest = max(longest, own[row])
        return batches

    def _slots(self, capacity: int) -> int:
        """How many slots of ``capacity`` tokens are held at once."""
        return max(1, min(self.rows, SLOT_TOKENS // capacity))

    def _finished(self, row: Row, settings: SamplingSettings) -> bool:
        """Whether a row has come to an end token, the limit, or a stop text."""
        if row.written[-1] in self.ends or len(row.written) >= settings.max_tokens:
            return True
        if not settings.stop:
            return False
        # A token is one byte at least: a stop text that ends now lies within as many tokens as it has bytes.
        tail = self.text.decode(row.written[-1 - max(len(stop.encode()) for stop in settings.stop) :])
        return any(stop in tail for stop in settings.stop)

    def _read(self, row: Row, settings: SamplingSettings) -> tuple[str, bool]:
        """A finished row's text up to its end, and whether it has one (or was cut by the limit)."""
        ended = row.written[-1] in self.ends
        text = self.text.decode(row.written[:-1] if ended else row.written)
        stops = [place for stop in settings.stop if (place := text.find(stop)) >= 0]
        return text[: min(stops, default=len(text))], ended or bool(stops) or len(row.written) < settings.max_tokens


def common_prefix(rows: Sequence[list[int]]) -> int:
    """Tokens that all rows begin with; each keeps its last token to itself. 0 for a single row."""
    if len(rows) < 2:
        return 0
    first, last = min(rows), max(rows)
    length = min(map(len, rows)) - 1
    return next((place for place in range(length) if first[place] != last[place]), length)


def _groups(chats: Sequence[Chat]) -> list[list[int]]:
    """Rows of chats with the same system prompt (or none), in the order of their first row."""
    groups: dict[str, list[int]] = {}
    for row, chat in enumerate(chats):
        head = chat.messages[0]
        groups.setdefault(head.content if head.role == "system" else "", []).append(row)
    return list(groups.values())


def _end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Tokens that end an answer: those of the generation configuration, and the tokenizer's."""
    told: Any = getattr(model.generation_config, "eos_token_id", None)
    named = told if isinstance(told, list) else [told]
    return {int(token) for token in [*named, tokenizer.eos_token_id] if token is not None}
