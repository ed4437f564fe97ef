"""How questions are put to a model, and what does not fit it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from benchmarks.completions import Line, Work
from benchmarks.ecomqa.data import Question
from models.generation import Chat, Generator, SamplingSettings, chat

TooLong = Literal["refuse", "no_shots", "not_attempted"]
UNASKED = "too_long"  # the ``finish`` of a question that was not asked
# With what the next question of an instruction's examples begins: where a model without a chat template, which goes on
# in the examples' manner, has ended its answer.
NEXT_QUESTION = tuple(
    f"***{marker}***" for marker in ("query", "问题", "电商网页", "商品标题", "用户评论", "个性化偏好")
)
REMEDY = "give --too_long no_shots (ask those without their examples), --too_long not_attempted, or fewer --max_tokens"
_WITHOUT: Line = {"shots": False}
# Solved examples: a heading, and what follows up to the lines that close an instruction. Any number of #, emphasis.
_SHOTS = re.compile(
    r"(?:^|\n)[ \t]*(?:#{1,6}|\*\*)[ \t]*[^\n]{0,12}?(?:示例|例子|样例|范例|examples?)[^\n]{0,6}(?:\n|\Z).*?"
    r"(?=\n[ \t#*]*(?:说明|要求|注意|规则)[ \t*]*[:：]|\n[ \t]*(?:现在)?(?:请作答|请回答|让我们开始)|\Z)",
    re.DOTALL | re.IGNORECASE,
)


def without_shots(system_prompt: str) -> str:
    """An instruction without its solved examples; what stands behind them stays. A cut-off example goes with them."""
    return _SHOTS.sub("", system_prompt)


def question_chat(question: Question, shots: bool = True) -> Chat:
    """The question as it is put: its own instruction as system turn, its prompt as the user's."""
    return chat(question.prompt, question.system_prompt if shots else without_shots(question.system_prompt))


def stop_texts(stop: str | None, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts that end an answer: those given (commas between), else what suits the generator with these facts."""
    if stop is not None:
        return tuple(filter(None, stop.split(",")))
    return NEXT_QUESTION if facts.get("template") == "none" else ()


def fit(
    questions: Sequence[Question], shots: bool, generator: Generator, settings: SamplingSettings, too_long: TooLong
) -> Work:
    """The chats of those questions that fit the generator, by id; the others are settled. What a server finds too long
    once it is asked is settled alike.

    Raises ValueError where some do not fit and ``too_long`` is refuse.
    """
    chats = {question.id: question_chat(question, shots) for question in questions}
    shorter = {question.id: question_chat(question, False) for question in questions}
    over = _over(chats, generator, settings)
    if over and too_long == "refuse":
        worst = max(over, key=lambda one: over[one])
        raise ValueError(
            f"{len(over)} of {len(questions)} questions do not fit the {generator.context} tokens of {generator.name} "
            f"together with {settings.max_tokens} for the answer, the longest ({worst}) with {over[worst]}; {REMEDY}"
        )
    notes: dict[str, Line] = {} if shots else dict.fromkeys(chats, _WITHOUT)
    if over and too_long == "no_shots":
        tried = {one: shorter[one] for one in over}
        over = _over(tried, generator, settings)
        chats.update(tried)
        notes |= {one: _WITHOUT for one in tried if one not in over}
    settled = {one: _unasked(tokens) for one, tokens in over.items()}
    otherwise = Work({}, {one: _unasked(0) for one in chats})
    if too_long == "no_shots":
        otherwise = Work(shorter, notes=dict.fromkeys(shorter, _WITHOUT), otherwise=otherwise)
    asked = {one: asked for one, asked in chats.items() if one not in over}
    if too_long == "refuse":
        return Work(asked, notes=notes, remedy=f"{REMEDY}, with another --out (what was answered is kept in the cache)")
    return Work(asked, settled, notes, otherwise)


def _unasked(tokens: int) -> Line:
    return {"text": "", "tokens": 0, "prompt_tokens": tokens, "finish": UNASKED}


def _over(chats: Mapping[str, Chat], generator: Generator, settings: SamplingSettings) -> dict[str, int]:
    """Tokens of the prompts that leave a generator no room for the answer; of none where it cannot say."""
    room = None if generator.context is None else generator.context - settings.max_tokens
    lengths = None if room is None else generator.prompt_tokens(list(chats.values()))
    if lengths is None or room is None:
        return {}
    return {one: length for one, length in zip(chats, lengths, strict=True) if length > room}
