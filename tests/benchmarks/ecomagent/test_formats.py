"""Tool calls as each family of models writes them, and conversations as their chat templates take them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tiny import CHATML, tiny_tokenizer

from benchmarks.ecomagent.formats import FORMATS, FormatName, format_of

SCHEMAS = [
    {"type": "function", "function": {"name": "search_products", "description": "Search.", "parameters": {}}},
    {"type": "function", "function": {"name": "ask_user", "description": "Ask.", "parameters": {}}},
]
ASK = '{"question": "price?"}'
SEARCH = '{"query": "desk lamp", "page": 0}'


@pytest.mark.parametrize(
    ("form", "text", "content", "calls"),
    [
        (
            "hermes",
            'I look.\n<tool_call>\n{"name": "search_products", "arguments": {"query": "desk lamp", "page": 0}}\n',
            "I look.",
            [("search_products", SEARCH)],
        ),
        (
            "hermes",
            '<tool_call>{"name": "ask_user", "arguments": {"question": "price?"}}</tool_call>'
            '<tool_call>{"name": "search_products", "arguments": {"query": "desk lamp", "page": 0}}</tool_call>',
            "",
            [("ask_user", ASK), ("search_products", SEARCH)],
        ),
        ("hermes", 'Call {"name": "ask_user"}', 'Call {"name": "ask_user"}', []),
        (
            "hermes",
            '<tool_call>{"name": "ask_user", "arguments": {"question": </tool_call>',
            "",
            [("ask_user", '{"name": "ask_user", "arguments": {"question":')],
        ),
        (
            "qwen_xml",
            "So.\n<tool_call>\n<function=search_products>\n<parameter=query>\ndesk lamp\n</parameter>\n"
            "<parameter=page>\n0\n</parameter>\n</function>\n",
            "So.",
            [("search_products", SEARCH)],
        ),
        ("llama3", '<|python_tag|>{"name": "ask_user", "parameters": {"question": "price?"}}', "", [("ask_user", ASK)]),
        (
            "llama3",
            '{"name": "ask_user", "parameters": {"question": "price?"}}; {"name": "x", "parameters": {}}',
            "",
            [("ask_user", ASK), ("x", "{}")],
        ),
        ("llama3", 'I think {"name": "ask_user"}', 'I think {"name": "ask_user"}', []),
        (
            "mistral",
            'Well[TOOL_CALLS][{"name": "ask_user", "arguments": {"question": "price?"}}, '
            '{"name": "x", "arguments": {}}]',
            "Well",
            [("ask_user", ASK), ("x", "{}")],
        ),
        ("mistral", '[TOOL_CALLS]ask_user[ARGS]{"question": "price?"}', "", [("ask_user", ASK)]),
        ("mistral", '[TOOL_CALLS]ask_user{"question": }', "", [("ask_user", '{"question": }')]),
        (
            "plain",
            'Thought: price.\n```json\n{"name": "ask_user", "arguments": {"question": "price?"}}\n```',
            "Thought: price.",
            [("ask_user", ASK)],
        ),
        ("plain", 'Sizes {1} and {"a": 2} only', 'Sizes {1} and {"a": 2} only', []),
        (
            "plain",
            'Now {"name": "ask_user", "arguments": "why"',
            "Now",
            [("ask_user", '{"name": "ask_user", "arguments": "why"')],
        ),
        (
            "plain",
            '{"function": {"name": "ask_user", "arguments": "{\\"question\\": \\"price?\\"}"}}',
            "",
            [("ask_user", ASK)],
        ),
    ],
)
def test_calls_are_found_in_a_text(form: FormatName, text: str, content: str, calls: list[tuple[str, str]]) -> None:
    reply = FORMATS[form].read(text, 3)
    assert (reply.content, [(call.name, call.arguments) for call in reply.calls]) == (content, calls)
    assert [call.id for call in reply.calls] == [f"call_3_{number}" for number in range(1, len(calls) + 1)]


def test_thinking_is_told_apart_and_calls_in_it_are_none() -> None:
    text = '<think>maybe <tool_call>{"name": "a"}</tool_call>?</think>\nNo.'
    reply = FORMATS["hermes"].read(text, 1)
    assert (reply.reasoning, reply.content, reply.calls) == (
        'maybe <tool_call>{"name": "a"}</tool_call>?',
        "No.",
        (),
    )
    assert FORMATS["hermes"].read("<think>endless", 1).reasoning == "endless"


HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "You shop."},
    {"role": "user", "content": "A lamp."},
    {
        "role": "assistant",
        "content": "I ask.",
        "tool_calls": [{"id": "call_1_1", "type": "function", "function": {"name": "ask_user", "arguments": ASK}}],
    },
    {"role": "tool", "tool_call_id": "call_1_1", "content": '{"user_response": "40"}'},
    {"role": "user", "content": "One call only."},
]


def test_templates_get_arguments_as_objects_and_results_with_the_name_of_their_tool() -> None:
    shown = FORMATS["hermes"].show(HISTORY, SCHEMAS)
    assert shown[2]["tool_calls"][0]["function"] == {"name": "ask_user", "arguments": {"question": "price?"}}
    assert shown[3] == {**HISTORY[3], "name": "ask_user"}
    assert HISTORY[2]["tool_calls"][0]["function"]["arguments"] == ASK  # the history is left as it is


def test_mistral_gets_ids_of_nine_digits_and_no_user_behind_a_result() -> None:
    shown = FORMATS["mistral"].show(HISTORY, SCHEMAS)
    assert [message["role"] for message in shown] == ["system", "user", "assistant", "tool"]
    assert shown[2]["tool_calls"][0]["id"] == shown[3]["tool_call_id"] == "000000001"
    assert shown[3]["content"] == '{"user_response": "40"}\nOne call only.'


def test_a_model_without_tools_reads_them_in_its_system_prompt_and_results_as_turns() -> None:
    shown = FORMATS["plain"].show(HISTORY, SCHEMAS)
    assert [message["role"] for message in shown] == ["system", "user", "assistant", "user"]
    assert shown[0]["content"].startswith("You shop.")
    assert [json.loads(line)["name"] for line in shown[0]["content"].splitlines()[-2:]] == [
        "search_products",
        "ask_user",
    ]
    assert shown[2]["content"] == 'I ask.\n{"name": "ask_user", "arguments": {"question": "price?"}}'
    assert shown[3]["content"] == 'Result: {"user_response": "40"}\n\nOne call only.'
    assert FORMATS["plain"].read(shown[2]["content"], 1).calls[0].arguments == ASK


# What the templates of the families have in common with the published ones, as far as formats go.
TEMPLATES = {
    "hermes": "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}",
    "qwen_xml": "{% if tools %}{{ tools | tojson }}<tool_call>\n<function=example>{% endif %}"
    "{% for m in messages %}{{ m.content }}{% endfor %}",
    "llama3": "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}{% if tools %}"
    '{{ tools | tojson }} {"name": name, "parameters": arguments}{% endif %}',
    "mistral": "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}"
    "[/AVAILABLE_TOOLS]{% endif %}{# answers with [TOOL_CALLS] #}",
    "plain": CHATML,
}


@pytest.mark.parametrize("form", TEMPLATES)
def test_the_format_is_read_off_the_chat_template(form: str) -> None:
    tokenizer = tiny_tokenizer("decoder")
    tokenizer.chat_template = TEMPLATES[form]

    def render(schemas: Any) -> str:
        text = tokenizer.apply_chat_template([{"role": "user", "content": "?"}], tools=schemas, tokenize=False)
        return str(text)

    assert format_of(TEMPLATES[form], render, SCHEMAS).name == form


def test_without_a_template_tools_are_described() -> None:
    assert format_of(None, lambda schemas: "", SCHEMAS).name == "plain"
