"""A local checkpoint as the agent: many episodes over one model, every turn of theirs one batch.

Each lane keeps the keys and values of its episode between turns (models.conversations), so a turn costs its new tokens.
What the model reads is always the whole conversation as its chat template writes it now; where that differs from what
was read before, it is read again from there on, so keeping changes the cost of a turn and not its outcome.

A conversation that leaves no room for a turn in the model's context is shortened by `Episode.shorten` until it does,
and ends when nothing more can be left out. A context in which no conversation can begin is refused.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jinja2.exceptions import TemplateError

from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.formats import FORMATS, FormatName, Messages, Schemas, ToolFormat, format_of
from benchmarks.ecomagent.guided_calls import call_grammar
from benchmarks.ecomagent.replies import Reply
from models.conversations import Answer, Conversations, Guide, Turn
from models.generation import SamplingSettings
from models.local import LocalGenerator

# Templates that print today's date (Llama 3's) print this one, so that a run can be repeated tomorrow.
TEMPLATE_DATE = "1 January 2026"


@dataclass(frozen=True)
class LocalSettings:
    """How a local checkpoint plays.

    Attributes:
        lanes: episodes in flight.
        form: how it writes calls; None reads that off its chat template.
        context: tokens that a conversation and its next turn may have; None is the model's own limit.
        keep: whether turns build on the keys and values of earlier ones.
        guided: whether a grammar holds turns to a short thought and one well-formed call.
    """

    lanes: int = 8
    form: FormatName | None = None
    context: int | None = None
    keep: bool = True
    guided: bool = False


class LocalAgent:
    """Plays episodes with a causal language model."""

    batched = True

    def __init__(
        self, generator: LocalGenerator, schemas: Schemas, sampling: SamplingSettings, settings: LocalSettings
    ) -> None:
        self.generator, self.schemas, self.sampling, self.settings = generator, schemas, sampling, settings
        self.tokenizer = generator.text.tokenizer
        self.form = FORMATS[settings.form] if settings.form else self._own_format()
        self.context = settings.context or generator.context
        self.name = generator.name
        self.facts: dict[str, Any] = {**generator.facts, "tool_format": self.form.name, "context": self.context}
        self.talks: Conversations | None = None
        self._guide = self._guides() if settings.guided else None
        self._playing: dict[int, Episode] = {}

    def _own_format(self) -> ToolFormat:
        question: Messages = [{"role": "user", "content": "?"}]
        template = self.tokenizer.chat_template
        text = "".join(template.values()) if isinstance(template, dict) else template
        return format_of(text, lambda tools: self._apply(question, tools), self.schemas)

    def reply(self, turns: Sequence[tuple[int, Episode]]) -> list[Reply]:
        """The next turn of each episode, computed together.

        Raises ValueError where the context has no room for even the tools, the system prompt and one turn.
        """
        started = time.perf_counter()
        talks = self._begun(turns[0][1])
        asked: list[Turn] = []
        for lane, episode in turns:
            if self._playing.get(lane) is not episode:
                talks.restart(lane)
                self._playing[lane] = episode
            if (ids := self._fitting(episode)) is not None:
                asked.append(Turn(lane, ids, self._dice(episode), self._guide() if self._guide else None))
        answers = {turn.slot: (turn, answer) for turn, answer in zip(asked, self._answers(talks, asked), strict=True)}
        seconds = time.perf_counter() - started
        return [
            self._read(episode, *answers[lane], seconds) if lane in answers else Reply(overflow=True)
            for lane, episode in turns
        ]

    def _answers(self, talks: Conversations, asked: Sequence[Turn]) -> list[Answer]:
        return talks.answer(asked, self.sampling, self._finished) if asked else []

    def _begun(self, episode: Episode) -> Conversations:
        """The conversations, once they have read what all of them begin with: the tools and the system prompt, or as
        far as two conversations with different queries are the same."""
        if self.talks is None:
            system = episode.history[0]
            one, other = (self._encode([system, {"role": "user", "content": word}]) for word in ("A", "7"))
            if not self._fits(one):
                raise ValueError(
                    f"{self.name}: a context of {self.context} tokens; the tools and the system prompt have "
                    f"{len(one)}, a turn may have {self.sampling.max_tokens}: give fewer --max_new_tokens, a larger "
                    "--context, or another model"
                )
            self.talks = Conversations(self.generator.model, self.settings.lanes, self.settings.keep)
            alike = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
            self.talks.begin_with(one[:alike])
        return self.talks

    def _fitting(self, episode: Episode) -> list[int] | None:
        """The conversation as tokens, shortened until a turn fits behind it; None where it never does."""
        while True:
            ids = self._encode(episode.view())
            if self._fits(ids):
                return ids
            if not episode.shorten():
                return None

    def _fits(self, ids: Sequence[int]) -> bool:
        """Whether a turn fits behind a conversation."""
        return self.context is None or len(ids) + self.sampling.max_tokens <= self.context

    def _encode(self, messages: Messages) -> list[int]:
        tools = self.schemas if self.form.templated else None
        text = self._apply(self.form.show(messages, self.schemas), tools)
        return self.generator.text.encode([text])[0]

    def _apply(self, messages: Messages, tools: Schemas | None) -> str:
        """Messages as the chat template writes them, ready for the model's turn.

        A template that knows no system turn gets its text at the head of the first user turn.
        """
        if not self.tokenizer.chat_template:
            return "".join(f"{message['role']}: {message['content']}\n\n" for message in messages) + "assistant:"
        thinking = {} if self.sampling.thinking is None else {"enable_thinking": self.sampling.thinking}
        options = {"tools": tools, "date_string": TEMPLATE_DATE, "add_generation_prompt": True, **thinking}
        try:
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, **options)
        except TemplateError:
            if messages[0]["role"] != "system":
                raise
            merged = {"role": "user", "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
            text = self.tokenizer.apply_chat_template([merged, *messages[2:]], tokenize=False, **options)
        assert isinstance(text, str)
        return text

    def _guides(self) -> Callable[[], Guide]:
        """Makes a guide for each turn."""
        from models.guiding import Guides

        vocabulary = self.generator.model.config.get_text_config().vocab_size
        guides = Guides(self.tokenizer, vocabulary, self.generator.ends)
        special = {str(token): number for number, token in self.tokenizer.added_tokens_decoder.items() if token.special}
        grammar = call_grammar(
            self.form.name,
            self.schemas,
            lambda mark: f"<[{special[mark]}]>" if mark in special else json.dumps(mark),
            self.sampling.max_tokens,
        )
        return lambda: guides.guide(grammar)

    def _dice(self, episode: Episode) -> random.Random | None:
        """Random numbers of a turn, the same whichever episodes are under way."""
        if self.sampling.temperature == 0:
            return None
        return random.Random(f"{self.sampling.seed}:{episode.task.id}:{episode.trial}:{episode.steps}")

    def _finished(self, written: list[int]) -> bool:
        """Whether a turn is over: by its end token, or by a call behind which nothing matters."""
        if written[-1] in self.generator.ends:
            return True
        # Every call ends with a brace or a tag: only then is the whole text worth looking at.
        return any(mark in self._decode(written[-1:]) for mark in "}>") and self.form.closed(
            self._decode(written).rstrip()
        )

    def _decode(self, ids: Sequence[int]) -> str:
        """Tokens as text, special ones too: the marks of calls are special tokens in some vocabularies."""
        text = self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        assert isinstance(text, str)
        return text

    def _read(self, episode: Episode, turn: Turn, answer: Answer, seconds: float) -> Reply:
        ended = answer.written[-1] in self.generator.ends
        text = self._decode(answer.written[:-1] if ended else answer.written)
        return replace(
            self.form.read(text, episode.steps + 1),
            input_tokens=len(turn.ids),
            computed_tokens=answer.computed,
            output_tokens=len(answer.written),
            seconds=seconds,
        )
