"""Stage 1: questions with their answers, drafted from passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.asking import ask
from benchmarks.ecomqa.build.items import TASKS, Drafts, Item, item_from, read_drafts
from benchmarks.ecomqa.build.steps import run_step
from benchmarks.ecomqa.build.tools import Drop, Line, Sifted, Tools, dropped, said
from benchmarks.ecomqa.corpus import Passage
from benchmarks.ecomqa.normalise import normal
from models.generation import chat

STAGE = "draft"


def draft(tools: Tools, passages: Sequence[Passage], tasks: Sequence[str], count: int) -> Sifted:
    """At most ``count`` questions from each passage. What cannot be read is dropped, and what was asked already."""
    by_id = {passage.id: passage for passage in passages}
    about = {task: TASKS[task] for task in tasks}

    def work(ids: list[str]) -> list[Line]:
        prompts = [tools.prompts.render(STAGE, passage=by_id[each], count=count, tasks=about) for each in ids]
        chats = [chat(prompt) for prompt in prompts]
        replies = ask(tools.generator(), chats, tools.drafting, lambda reply: read_drafts(reply, tasks, count))
        pairs = zip(ids, replies, strict=True)
        return [{"id": each, **asdict(reply.value or Drafts()), **said(reply)} for each, reply in pairs]

    items: list[Item] = []
    drops: list[Drop] = []
    asked: dict[str, str] = {}
    for each, line in run_step(tools.folder, "1-draft", list(by_id), work).items():
        if not line["kept"]:
            drops.append(Drop(each, STAGE, f"no draft could be read: {line['problem']}", text=line["text"]))
        for place, one in line["refused"].items():
            drops.append(Drop(f"{each}-{place}", STAGE, one["reason"], text=one["text"]))
        for place, fields in line["kept"].items():
            item = item_from({"id": f"{each}-{place}", "passage": each, **fields})
            first = asked.setdefault(normal(item.question), item.id)
            if first == item.id:
                items.append(item)
            else:
                drops.append(dropped(item, STAGE, f"asked already as {first}"))
    return items, drops
