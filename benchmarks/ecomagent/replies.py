"""What a model says in a turn, in one form for all models: text, tool calls, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToolCall:
    """A call as the model wrote it: ``arguments`` is JSON text, or what stands in its place."""

    id: str
    name: str
    arguments: str

    def message(self) -> dict[str, Any]:
        """As OpenAI's assistant messages hold it."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True)
class Reply:
    """One turn of a model.

    Attributes:
        content: its text beside the calls.
        calls: its tool calls, in order.
        reasoning: what it thought before, where the model or server tells that apart.
        input_tokens, output_tokens: tokens of the whole prompt and of the answer; None where nobody counted.
        computed_tokens: tokens of the prompt that had to be computed, the others being kept from earlier turns.
        seconds: time that the turn took, shared with the turns computed at the same time.
        overflow: the conversation no longer fits the model's context, and nothing more can be left out.
    """

    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    computed_tokens: int | None = None
    seconds: float = 0.0
    overflow: bool = False

    def message(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """The turn as a message of OpenAI's form with some of its calls."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if calls:
            message["tool_calls"] = [call.message() for call in calls]
        return message
