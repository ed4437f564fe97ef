"""Stage 6, second gate: a language model reads a whole task and says whether it holds together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, StrictBool

from benchmarks.asking import ask, read_as
from benchmarks.ecomagent.tasks import Task
from models.generation import Generator, SamplingSettings, chat

PROMPT_VERSION = "1"
SETTINGS = SamplingSettings(max_tokens=1024, temperature=0.0)

SYSTEM = """\
You check a shopping task before it is used. A shopper's wishes are spread over three sources: the message, the \
profile, and answers to questions. Look at all of it and be strict:

1. Does each source tell the requirements that are assigned to it, in meaning and value?
2. Does no source tell what another one is to tell alone? Hinted requirements must not be named in the message.
3. Does the message state nothing that no requirement backs?
4. Can a person work out each hint with common knowledge?
5. Does the product meet every requirement, the voucher's arithmetic included?

When in doubt, do not pass it. Answer with JSON alone:
{"passed": true, "issues": ["one sentence each"]}"""


class Verdict(BaseModel):
    """What a judge says of a task."""

    passed: StrictBool = Field(description="true or false")
    issues: list[str] = Field(default=[], description="a list of sentences")


@dataclass(frozen=True)
class JudgeGate:
    """Asks a generator at temperature 0; no verdict is no pass."""

    generator: Generator

    def issues(self, task: Task) -> list[str]:
        """What is wrong with a task; nothing if it may pass."""
        (reply,) = ask(self.generator, [chat(prompt(task), SYSTEM)], SETTINGS, read_as(Verdict))
        if reply.value is None:
            return [f"the judge gave no verdict that can be read: {reply.problem}"]
        if reply.value.passed:
            return []
        return reply.value.issues or ["the judge did not let it pass and named no reason"]


def prompt(task: Task) -> str:
    """The task as the judge reads it."""
    product = task.target_product.model_dump(exclude={"description"})
    content: dict[str, Any] = {
        "message": task.user_query,
        "profile": task.user_persona.get("product_requirements"),
        "answers": [
            {"about": slot.linked_rubric_ids, "answer": slot.user_response}
            for slot in task.clarification_script.clarification_slots
        ],
        "requirements": [
            {
                "id": item.id,
                "source": item.info_source,
                "type": item.type,
                "field": item.field,
                "value": item.expected_value,
                "said as": item.query_surface,
                "hinted": item.id in task.implicit_rubric_ids,
            }
            for item in task.rubrics
        ],
        "voucher": None if task.voucher is None else task.voucher.model_dump(exclude_none=True),
        "product": product,
    }
    return json.dumps(content, ensure_ascii=False, indent=1)
