"""Answers beside transformers' plain ``generate``: in turn, several rounds, medians, and how many texts agree."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.ecomqa.answering import question_chat
from benchmarks.ecomqa.data import read_questions
from benchmarks.progress import doing
from models.backbone import Dtype, LoadSettings, load_backbone, load_tokenizer
from models.chat_text import ChatText
from models.checkpoint import resolve
from models.generation import Chat, SamplingSettings
from models.generators import open_generator

BATCH = 8  # chats that plain generate pads to one length
WARMING = SamplingSettings(max_tokens=2)


@dataclass(frozen=True)
class Questions:
    """Chats of a question set that fit the model, and how many did not."""

    name: str
    chats: list[Chat]
    prompt_tokens: int
    left_out: int


@dataclass(frozen=True)
class Turn:
    """One tool's answers to all chats, in their order: texts, tokens written, and seconds without loading."""

    texts: list[str]
    tokens: int
    seconds: float


def read_chats(checkpoint: str, reference: str, limit: int | None, max_tokens: int) -> Questions:
    """The questions of a file, or of the ``sample``, as they are put to a model, in the file's order.

    Args:
        limit: so many of each sub-concept at most, the first ones.
    """
    generator = open_generator(checkpoint)
    taken: dict[str, int] = {}
    chats = []
    for question in read_questions(reference):
        taken[question.task] = taken.get(question.task, 0) + 1
        if limit is None or taken[question.task] <= limit:
            chats.append(question_chat(question))
    lengths = generator.prompt_tokens(chats)
    assert lengths is not None
    room = float("inf") if generator.context is None else generator.context - max_tokens
    fitting = [row for row, length in enumerate(lengths) if length <= room]
    return Questions(
        name=reference,
        chats=[chats[row] for row in fitting],
        prompt_tokens=sum(lengths[row] for row in fitting),
        left_out=len(chats) - len(fitting),
    )


def ours(checkpoint: str, chats: Sequence[Chat], sampling: SamplingSettings, dtype: Dtype) -> Turn:
    """A generator of ours, loaded and warmed up beforehand."""
    generator = open_generator(checkpoint, settings=LoadSettings(dtype=dtype))
    list(generator.generate(chats[:1], WARMING))
    started = time.perf_counter()
    written = dict(generator.generate(chats, sampling))
    seconds = time.perf_counter() - started
    return Turn(
        [written[row].text for row in range(len(chats))],
        sum(completion.tokens for completion in written.values()),
        seconds,
    )


def plain(checkpoint: str, chats: Sequence[Chat], sampling: SamplingSettings) -> Turn:
    """``generate`` as it comes (float32, its own attention, torch's own products), padded, in the order given."""
    found = resolve(checkpoint)
    tokenizer = load_tokenizer(found)
    as_it_comes = LoadSettings(head="verbalizer", dtype="exact", attention="sdpa")
    model = load_backbone(found, as_it_comes, int(tokenizer.pad_token_id)).eval()
    plain_generate(model, tokenizer, chats[:1], WARMING.max_tokens)
    started = time.perf_counter()
    written = plain_generate(model, tokenizer, chats, sampling.max_tokens)
    seconds = time.perf_counter() - started
    return Turn([text for text, _ in written], sum(tokens for _, tokens in written), seconds)


PLAIN = f"generate float32, batch {BATCH}"
WRITERS: dict[str, Callable[[str, Sequence[Chat], SamplingSettings], Turn]] = {
    "ecomjudge float32": partial(ours, dtype="float32"),
    PLAIN: plain,
    "ecomjudge auto": partial(ours, dtype="auto"),
}


def compare(checkpoint: str, questions: Questions, max_tokens: int, rounds: int, say: Console) -> dict[str, Any]:
    """Every tool answers all questions in turn, ``rounds`` times."""
    sampling = SamplingSettings(max_tokens=max_tokens)
    turns: dict[str, list[Turn]] = {name: [] for name in WRITERS}
    for number in range(rounds):
        for name, write in WRITERS.items():
            with doing(say, f"{len(questions.chats)} answers, round {number + 1} of {rounds}: {name}"):
                turns[name].append(write(checkpoint, questions.chats, sampling))
    return {
        "questions": questions.name,
        "answers": len(questions.chats),
        "left_out": questions.left_out,
        "prompt_tokens": questions.prompt_tokens,
        "max_tokens": max_tokens,
        "tools": {name: summary(made, turns[PLAIN][0].texts) for name, made in turns.items()},
    }


def summary(turns: Sequence[Turn], reference: Sequence[str]) -> dict[str, Any]:
    """Medians over rounds, and how many texts are those of plain ``generate``.

    Two float32 texts part where two tokens are equally likely but for the last bits: another order of the same sums
    decides for the other one.
    """
    rates = [len(turn.texts) / turn.seconds for turn in turns]
    return {
        "answers_per_second": statistics.median(rates),
        "all_rates": rates,
        "tokens": turns[0].tokens,
        "same": sum(own == other for own, other in zip(turns[0].texts, reference, strict=True)),
        "steady": all(turn.texts == turns[0].texts for turn in turns),
    }


@torch.inference_mode()
def plain_generate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, chats: Sequence[Chat], max_tokens: int
) -> list[tuple[str, int]]:
    """(text, tokens) of each chat by transformers' greedy ``generate``, padded on the left, in the order given."""
    text = ChatText(tokenizer)
    end_token, padding = int(tokenizer.eos_token_id), int(tokenizer.pad_token_id)
    written: list[tuple[str, int]] = []
    for start in range(0, len(chats), BATCH):
        rows = text.encode([text.render(chat, None) for chat in chats[start : start + BATCH]])
        longest = max(map(len, rows))
        ids = torch.tensor([[padding] * (longest - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        out = model.generate(
            ids, attention_mask=mask, max_new_tokens=max_tokens, do_sample=False, eos_token_id=end_token
        )
        for row in out[:, longest:].tolist():
            end = row.index(end_token) if end_token in row else None
            written.append((text.decode(row[:end]), len(row) if end is None else end + 1))
    return written


def table(found: Mapping[str, Any]) -> Table:
    """Rates of every tool, and whether they wrote the same."""
    title = f"{found['answers']} answers of {found['max_tokens']} tokens at most, {found['questions']}"
    shown = Table("tool", "answers/s", "times generate", "tokens written", "same texts", title=title)
    theirs = found["tools"][PLAIN]["answers_per_second"]
    for name, tool in found["tools"].items():
        shown.add_row(
            name,
            f"{tool['answers_per_second']:.3f}",
            f"{tool['answers_per_second'] / theirs:.2f}",
            f"{tool['tokens']:,}",
            f"{tool['same']} of {found['answers']}",
        )
    return shown
