"""Stage 1: questions with their answers, drafted from passages."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.asking import ask
from benchmarks.ecomqa.build.items import TASKS, Item, item_from, read_drafts
from benchmarks.ecomqa.build.steps import run_step
from benchmarks.ecomqa.build.tools import Drop, Line, Sifted, Tools, dropped, said
from benchmarks.ecomqa.corpus import Passage
from benchmarks.ecomqa.normalise import normal
from models.generation import chat

STAGE = "draft"


def draft(tools: Tools, passages: Sequence[Passage], tasks: Sequence[str], count: int) -> Sifted:
    """At most ``count`` questions from each passage. One that was asked already is dropped."""
    by_id = {passage.id: passage for passage in passages}
    about = {task: TASKS[task] for task in tasks}

    def work(ids: list[str]) -> list[Line]:
        prompts = [tools.prompts.render(STAGE, passage=by_id[each], count=count, tasks=about) for each in ids]
        chats = [chat(prompt) for prompt in prompts]
        replies = ask(tools.generator(), chats, tools.drafting, lambda reply: read_drafts(reply, tasks, count))
        pairs = zip(ids, replies, strict=True)
        return [{"id": each, "drafts": reply.value or [], **said(reply)} for each, reply in pairs]

    items: list[Item] = []
    drops: list[Drop] = []
    asked: dict[str, str] = {}
    for each, line in run_step(tools.folder, "1-draft", list(by_id), work).items():
        if not line["drafts"]:
            drops.append(Drop(each, STAGE, f"no draft could be read: {line['problem']}"))
        for number, fields in enumerate(line["drafts"], 1):
            item = item_from({"id": f"{each}-{number}", "passage": each, **fields})
            first = asked.setdefault(normal(item.question), item.id)
            if first == item.id:
                items.append(item)
            else:
                drops.append(dropped(item, STAGE, f"asked already as {first}"))
    return items, drops
