"""The ways of asking a language model for a written answer (EcomScriptBench, section on its baselines).

Zero-shot and few-shot (``answer``), chain of thought, self-consistency (several chains of thought, the majority), and
self-reflection (answer, critique, answer anew). The paper's prompts are not published; these are this project's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from models.generation import Chat, Message, SamplingSettings, chat
from recipes.base import Judgment

Way = Literal["answer", "chain_of_thought", "self_consistency", "self_reflection"]
WAYS: tuple[Way, ...] = get_args(Way)
ENDING = 'End with a line that says nothing but "Answer: Yes" or "Answer: No".'
THINK = f"Before you answer, think step by step, in a few sentences. {ENDING}"
CRITIQUE = (
    "Doubt what you have just said. Was anything overlooked, or claimed without reason? Name each mistake, or say that "
    "there is none. Do not answer the question again yet."
)
REVISE = f"Answer the question again in the light of that. {ENDING}"

SHORT, LONG = 16, 512  # tokens of an answer alone, and of one with its reasons
SAMPLING = 0.7  # the temperature of self-consistency
OVERHEAD = 160  # tokens of what is asked after the first turn, and of the turns' marks


@dataclass(frozen=True)
class Asking:
    """How every record is asked.

    Attributes:
        samples: chains of thought in self-consistency.
        settings: how each turn is written.
        examples: solved records before the one that is asked (``answer`` alone).
    """

    way: Way
    judgment: Judgment[Any]
    settings: SamplingSettings
    samples: int = 1
    examples: tuple[Any, ...] = ()

    @property
    def turns(self) -> tuple[str, ...]:
        """What the texts of each turn are called."""
        return ("answers", "critiques", "revisions") if self.way == "self_reflection" else ("answers",)

    @property
    def reserve(self) -> int:
        """Tokens that must be left behind a first prompt."""
        count = len(self.turns)
        return count * self.settings.max_tokens + (OVERHEAD if count > 1 else 0)

    def first(self, record: Any, sample: int = 0) -> Chat:
        """The chat that begins it."""
        prompt = self.judgment.render(record, "instruction", self.examples).text
        return chat(prompt if self.way == "answer" else f"{prompt}\n{THINK}", sample=sample)

    def facts(self) -> dict[str, Any]:
        """What fixes the texts, beside the model and the records."""
        prompts = {"answer": [], "self_reflection": [THINK, CRITIQUE, REVISE]}.get(self.way, [THINK])
        settings = {key: getattr(self.settings, key) for key in ("max_tokens", "temperature", "seed")}
        return {**settings, "samples": self.samples, "prompts": prompts}


def make_asking(
    way: Way,
    judgment: Judgment[Any],
    examples: Sequence[Any] = (),
    samples: int = 5,
    max_tokens: int | None = None,
    temperature: float | None = None,
    seed: int = 0,
) -> Asking:
    """A way of asking with its defaults: greedy, but for self-consistency; few tokens for an answer alone.

    Raises ValueError where self-consistency would draw the same text each time, or examples are given where none fit.
    """
    sampled = way == "self_consistency"
    if examples and way != "answer":
        raise ValueError(f"shots: {len(examples)} given, but solved examples show no reasoning; {way} takes none")
    heat = (SAMPLING if sampled else 0.0) if temperature is None else temperature
    if sampled and (samples < 2 or heat <= 0):
        raise ValueError(
            f"self_consistency with {samples} samples at temperature {heat:g}: give at least 2 --samples and a "
            "--sampling_temperature above 0, or --method chain_of_thought"
        )
    tokens = max_tokens or (SHORT if way == "answer" else LONG)
    settings = SamplingSettings(max_tokens=tokens, temperature=heat, seed=seed)
    return Asking(way, judgment, settings, samples if sampled else 1, tuple(examples))


def next_turn(asked: Chat, said: str, turn: str) -> Chat:
    """The chat that goes on behind what was said."""
    words = {"critiques": CRITIQUE, "revisions": REVISE}[turn]
    return replace(asked, messages=(*asked.messages, Message("assistant", said), Message("user", words)))
