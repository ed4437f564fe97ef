"""A local checkpoint as a generator: what many chats begin with is read once, and rows come and go as they finish.

A text is what transformers' ``generate`` writes for its chat alone, but for the last bits of the arithmetic, and for
what a checkpoint's generation configuration asks beside its end tokens (a repetition penalty, say), which is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from models.backbone import position_limit
from models.chat_text import ChatText, opened_block
from models.decoding import Layer, read_beginning, use_slots
from models.generation import Chat, Completion, SamplingSettings
from models.writing import Guide, Row, Writing, dice_of

ROWS, ROWS_ON_CPU = 128, 32  # texts written side by side, where nothing is said
SLOT_TOKENS = 32_768  # tokens of keys and values held at most: 1.5 GB for SmolLM2-135M in float32
ROUNDS = 4  # a batch holds as many rows as are written side by side, so many times


@dataclass(frozen=True)
class Prompts:
    """Rendered chats and their tokens. Those with the same system prompt (or none) are a group: ``beginnings`` are the
    tokens that all of a group begin with."""

    texts: list[str]
    ids: list[list[int]]
    groups: list[int]
    beginnings: list[list[int]]

    def own(self, row: int) -> list[int]:
        """A row's tokens behind its group's beginning."""
        return self.ids[row][len(self.beginnings[self.groups[row]]) :]


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
        return self._plan(self._prompts(chats, settings), settings)

    def generate(
        self, chats: Sequence[Chat], settings: SamplingSettings, batches: Sequence[Sequence[int]] | None = None
    ) -> Iterator[tuple[int, Completion]]:
        """(row, completion), each as soon as it is written.

        Raises ValueError where a prompt and its answer do not fit the model's positions, or for a faulty grammar.
        """
        prompts = self._prompts(chats, settings)
        guide = self._guide(settings.grammar)
        held: dict[int, list[Layer]] = {}
        for batch in self._plan(prompts, settings) if batches is None else batches:
            groups = list(dict.fromkeys(prompts.groups[row] for row in batch))
            # What the next batch goes on with is kept, and no more.
            held = {group: held.get(group) or read_beginning(self.model, prompts.beginnings[group]) for group in groups}
            rows = [
                Row(
                    row,
                    prompts.own(row),
                    dice_of(chats[row], settings),
                    groups.index(prompts.groups[row]),
                    guide=guide(),
                )
                for row in batch
            ]
            slots = self._slots(max(len(row.own) for row in rows) + settings.max_tokens)
            writing = Writing(self.model, list(held.values()), rows, slots, settings)
            for row in writing.run(lambda row: self._finished(row, settings)):
                yield row.number, self._completion(row, prompts, settings)

    def _prompts(self, chats: Sequence[Chat], settings: SamplingSettings) -> Prompts:
        texts = [self.text.render(chat, settings.thinking) for chat in chats]
        ids = self.text.encode(texts)
        longest = max(map(len, ids), default=0)
        if self.context is not None and longest + settings.max_tokens > self.context:
            raise ValueError(
                f"{self.name} takes {self.context} tokens; the longest prompt has {longest}, and max_tokens is "
                f"{settings.max_tokens}: give fewer max_tokens, shorter prompts, or another model"
            )
        heads = [chat.messages[0].content if chat.messages[0].role == "system" else "" for chat in chats]
        names = list(dict.fromkeys(heads))
        groups = [names.index(head) for head in heads]
        beginnings = []
        for group in range(len(names)):
            members = [row for row, own in zip(ids, groups, strict=True) if own == group]
            beginnings.append(members[0][: common_prefix(members)])
        return Prompts(texts, ids, groups, beginnings)

    def _plan(self, prompts: Prompts, settings: SamplingSettings) -> list[list[int]]:
        """Rows of a group lie side by side, the longest first, and groups by their longest row."""
        own = [len(prompts.own(row)) for row in range(len(prompts.ids))]
        most = [0] * len(prompts.beginnings)
        for row, group in enumerate(prompts.groups):
            most[group] = max(most[group], own[row])
        batches: list[list[int]] = []
        longest = 0
        for row in sorted(
            range(len(own)), key=lambda row: (-most[prompts.groups[row]], prompts.groups[row], -own[row])
        ):
            longest = max(longest, own[row])
            if not batches or len(batches[-1]) >= ROUNDS * self._slots(longest + settings.max_tokens):
                batches.append([])
                longest = own[row]
            batches[-1].append(row)
        return batches

    def _slots(self, capacity: int) -> int:
        """How many slots of ``capacity`` tokens are held at once."""
        return max(1, min(self.rows, SLOT_TOKENS // capacity))

    def _guide(self, grammar: str | None) -> Callable[[], Guide | None]:
        """Makes each text's guide through a grammar; none without one. Raises ValueError for a faulty grammar."""
        if grammar is None:
            return lambda: None
        from models.guiding import Guides

        vocabulary = self.model.config.get_text_config().vocab_size
        guides = Guides(self.text.tokenizer, vocabulary, self.ends)
        return lambda: guides.guide(grammar)

    def _finished(self, row: Row, settings: SamplingSettings) -> bool:
        """Whether a row has come to an end token, the limit, or a stop text."""
        if row.written[-1] in self.ends or len(row.written) >= settings.max_tokens:
            return True
        if not settings.stop:
            return False
        # A token is one byte at least: a stop text that ends now lies within as many tokens as it has bytes.
        tail = self.text.decode(row.written[-1 - max(len(stop.encode()) for stop in settings.stop) :])
        return any(stop in tail for stop in settings.stop)

    def _completion(self, row: Row, prompts: Prompts, settings: SamplingSettings) -> Completion:
        """A finished row's text up to its end; without one, the limit has cut it."""
        ended = row.written[-1] in self.ends
        text = self.text.decode(row.written[:-1] if ended else row.written)
        stops = [place for stop in settings.stop if (place := text.find(stop)) >= 0]
        cut = not ended and not stops and len(row.written) >= settings.max_tokens
        return Completion(
            text=opened_block(prompts.texts[row.number]) + text[: min(stops, default=len(text))],
            tokens=len(row.written),
            prompt_tokens=len(prompts.ids[row.number]),
            finish="length" if cut else "stop",
        )


def common_prefix(rows: Sequence[list[int]]) -> int:
    """Tokens that all rows begin with; each keeps its last token to itself. 0 for a single row."""
    if len(rows) < 2:
        return 0
    first, last = min(rows), max(rows)
    length = min(map(len, rows)) - 1
    return next((place for place in range(length) if first[place] != last[place]), length)


def _end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Tokens that end an answer: those of the generation configuration, and the tokenizer's."""
    told: Any = getattr(model.generation_config, "eos_token_id", None)
    named = told if isinstance(told, list) else [told]
    return {int(token) for token in [*named, tokenizer.eos_token_id] if token is not None}
