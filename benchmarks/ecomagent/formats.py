"""How language models write tool calls, and how conversations with calls are shown to them.

A model that was taught tools has a format of its own in its chat template: Hermes and Qwen (JSON between <tool_call>
tags), Qwen's newer one (tags for the function and each parameter), Llama 3 (bare JSON), Mistral ([TOOL_CALLS]). A model
whose template knows no tools gets them described in the system prompt, writes a call as a JSON object, and reads
results as the user's turns (`plain`). Servers speak OpenAI's format, which is the one that episodes are kept in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.ecomagent import call_text
from benchmarks.ecomagent.replies import Reply, ToolCall

FormatName = Literal["hermes", "qwen_xml", "llama3", "mistral", "plain"]
Messages = list[dict[str, Any]]
Schemas = Sequence[Mapping[str, Any]]

_THINKING = re.compile(r"^\s*<think>(.*?)(?:</think>|\Z)", re.DOTALL)
PLAIN_INSTRUCTION = """


Tools are called by writing one JSON object and nothing behind it:
{"name": "search_products", "arguments": {"query": "desk lamp"}}
The answer comes back as the next message. The tools, with the JSON schemas of their arguments:
"""


@dataclass(frozen=True)
class ToolFormat:
    """One way of writing calls.

    Attributes:
        marks: what a chat template of this format holds.
        find: finds the calls in a text.
        closed: whether a text, its white space stripped, ends with a call: as one call is made a turn, a model need not
            write on.
        show: a conversation (OpenAI's messages) as the chat template takes it.
        templated: whether the template itself is given the tools.
    """

    name: FormatName
    marks: tuple[str, ...]
    find: Callable[[str], call_text.Found]
    closed: Callable[[str], bool]
    show: Callable[[Messages, Schemas], Messages]
    templated: bool = True

    def read(self, text: str, turn: int) -> Reply:
        """A model's text as a reply; ``turn`` numbers it, so that the ids of its calls are unique in a conversation."""
        thought = _THINKING.match(text)
        said = text[thought.end() :] if thought else text
        found = self.find(said)
        calls = [ToolCall(f"call_{turn}_{number}", *call) for number, call in enumerate(found.calls, 1)]
        return Reply(said[: found.start].strip(), tuple(calls), thought[1].strip() if thought else "")


def _shown(messages: Messages, schemas: Schemas) -> Messages:
    """Messages in transformers' form: arguments as objects, each result with the name of its tool."""
    names: dict[str, str] = {}
    shown: Messages = []
    for message in messages:
        if calls := message.get("tool_calls"):
            names |= {call["id"]: call["function"]["name"] for call in calls}
            opened = [{**call, "function": _opened(call["function"])} for call in calls]
            shown.append({"role": "assistant", "content": message["content"], "tool_calls": opened})
        elif message["role"] == "tool":
            shown.append({**message, "name": names.get(message["tool_call_id"], "")})
        else:
            shown.append(message)
    return shown


def _opened(function: Mapping[str, str]) -> dict[str, Any]:
    """A called function with its arguments as an object; what is none is kept under one name, for the model to see."""
    try:
        value = json.loads(function["arguments"])
    except ValueError:
        value = None
    arguments = value if isinstance(value, dict) else {"arguments": function["arguments"]}
    return {"name": function["name"], "arguments": arguments}


def _shown_to_mistral(messages: Messages, schemas: Schemas) -> Messages:
    """Mistral's templates want ids of nine letters or digits, and no user's turn straight after a result."""
    numbers: dict[str, str] = {}
    shown: Messages = []
    for message in _shown(messages, schemas):
        if message["role"] == "user" and shown and shown[-1]["role"] == "tool":
            shown[-1] = {**shown[-1], "content": f"{shown[-1]['content']}\n{message['content']}"}
        elif calls := message.get("tool_calls"):
            numbers |= {call["id"]: f"{len(numbers) + number:09d}" for number, call in enumerate(calls, 1)}
            shown.append({**message, "tool_calls": [{**call, "id": numbers[call["id"]]} for call in calls]})
        elif message["role"] == "tool":
            shown.append({**message, "tool_call_id": numbers.get(message["tool_call_id"], f"{0:09d}")})
        else:
            shown.append(message)
    return shown


def _shown_plainly(messages: Messages, schemas: Schemas) -> Messages:
    """Tools in the system prompt, calls as text, results as the user's turns; turns of one side in a row become one."""
    tools = "\n".join(json.dumps(schema["function"], ensure_ascii=False) for schema in schemas)
    shown: Messages = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "system":
            content += PLAIN_INSTRUCTION + tools
        elif role == "tool":
            role, content = "user", f"Result: {content}"
        for call in message.get("tool_calls") or ():
            content = f"{content}\n{json.dumps(_opened(call['function']), ensure_ascii=False)}".lstrip("\n")
        if role == "user" and shown and shown[-1]["role"] == "user":
            shown[-1]["content"] += f"\n\n{content}"
        else:
            shown.append({"role": role, "content": content})
    return shown


# In the order in which a template is searched for marks.
FORMATS: dict[FormatName, ToolFormat] = {
    form.name: form
    for form in (
        ToolFormat("mistral", ("[TOOL_CALLS]",), call_text.mistral, call_text.goes_on, _shown_to_mistral),
        ToolFormat("qwen_xml", ("<function=",), call_text.qwen_xml, call_text.closes_tag, _shown),
        ToolFormat("hermes", ("<tool_call>",), call_text.hermes, call_text.closes_tag, _shown),
        ToolFormat("llama3", ("<|python_tag|>", '"parameters"'), call_text.llama3, call_text.goes_on, _shown),
        ToolFormat("plain", (), call_text.plain, call_text.closes_object, _shown_plainly, templated=False),
    )
}


def format_of(template: str | None, render: Callable[[Schemas | None], str], schemas: Schemas) -> ToolFormat:
    """The format that a chat template was written for; `plain` where it takes no notice of tools.

    Args:
        template: the template's text; None where the tokenizer has none.
        render: a short conversation as the template writes it, with tools or without.
    """
    if template and render(schemas) != render(None):
        for form in FORMATS.values():
            if any(mark in template for mark in form.marks):
                return form
    return FORMATS["plain"]
