"""Stage 6: several models answer, and what all of them get right is too easy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.asking import ask, too_long
from benchmarks.ecomqa.build.items import Item
from benchmarks.ecomqa.build.prompting import Prompts
from benchmarks.ecomqa.build.steps import run_step
from benchmarks.ecomqa.build.tools import Line, Sifted, Tools, read_claims, said, sifted
from benchmarks.ecomqa.normalise import same, without_cue
from benchmarks.traces import part
from models.generation import Generator, chat

STAGE = "difficulty"


def filter_easy(
    tools: Tools, items: Sequence[Item], answerers: Sequence[Callable[[], Generator]]
) -> tuple[Sifted, dict[str, int]]:
    """Drop what all answerers get right; also how many got each item right. Without answerers nothing is dropped."""
    right = dict.fromkeys((item.id for item in items), 0)
    for number, load in enumerate(answerers, 1):
        answers = _answers(tools, f"6-answers-{number}", items, load)
        for each, line in _grades(tools, f"6-grades-{number}", items, answers).items():
            right[each] += bool(line["correct"])
    easy = len(answerers) or None
    lines = {
        each: {"kept": count != easy, "reason": f"right by all {count} answerers"} for each, count in right.items()
    }
    return sifted(items, STAGE, lines), right


def prompt_of(prompts: Prompts, item: Item) -> tuple[str, str]:
    """An item as it is asked: (prompt, system prompt)."""
    return prompts.render("question", item=item), prompts.render("system", item=item)


def _answers(tools: Tools, step: str, items: Sequence[Item], load: Callable[[], Generator]) -> dict[str, str]:
    """What one model answers; nothing to a question that is too long for it."""
    by_id = {item.id: item for item in items}

    def work(ids: list[str]) -> list[Line]:
        generator = load()
        chats = [chat(*prompt_of(tools.prompts, by_id[each])) for each in ids]
        problems = too_long(generator, chats, tools.checking)
        rows = [row for row in range(len(ids)) if row not in problems]
        lines = [{"id": each, "answer": "", "tokens": 0, "problem": problems.get(k, "")} for k, each in enumerate(ids)]
        for place, completion in generator.generate([chats[row] for row in rows], tools.checking):
            tokens = completion.prompt_tokens + completion.tokens
            long = "the prompt is too long for the server" if completion.finish == "too_long" else ""
            lines[rows[place]] |= {"answer": completion.text, "tokens": tokens, "problem": long}
        return lines

    return {each: line["answer"] for each, line in run_step(tools.folder, step, list(by_id), work).items()}


def _grades(tools: Tools, step: str, items: Sequence[Item], answers: Mapping[str, str]) -> dict[str, Line]:
    """Whether each answer is right: by rule for choices and what matches word for word, else by the checker."""
    by_id = {item.id: item for item in items}

    def work(ids: list[str]) -> list[Line]:
        lines: dict[str, Line] = {}
        for each in ids:
            item, answer = by_id[each], without_cue(part(answers[each]).answer)
            correct = same(answer, item.answer)
            if item.choice or correct or not answer:
                lines[each] = {"id": each, "correct": correct, "by": "rule", "tokens": 0}
        rest = [each for each in ids if each not in lines]
        chats = [chat(tools.prompts.render("grade", item=by_id[each], answer=answers[each])) for each in rest]
        if rest:
            replies = ask(tools.checker(), chats, tools.checking, lambda reply: read_claims(reply, ("correct",)))
            for each, reply in zip(rest, replies, strict=True):
                correct = reply.value is not None and bool(reply.value["correct"])
                lines[each] = {"id": each, "correct": correct, "by": "checker", **said(reply)}
        return [lines[each] for each in ids]

    return run_step(tools.folder, step, list(by_id), work)
