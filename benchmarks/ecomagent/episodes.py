"""An episode: one shopper, one agent, ten tools, a limited number of turns, one recommendation.

The episode knows the rules and no model: a player looks at `Episode.view` and hands a `Reply` to `Episode.take`, which
carries out one turn. The rules are the published ones:

- one call a turn; the first of several is carried out, and the model is told so;
- a turn without a call gets one reminder, a second in a row ends the episode without a recommendation;
- a call that cannot be understood is a result that says why, and counts;
- after ``max_steps`` turns the episode ends; nothing is guessed for the agent.

What a conversation shows of itself when it no longer fits a model is `Episode.shorten`'s rule.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.ecomagent.prompts import ONE_CALL, REMINDER, RESULT_LEFT_OUT, system_prompt
from benchmarks.ecomagent.replies import Reply
from benchmarks.ecomagent.tasks import Task
from benchmarks.ecomagent.tools import Toolbox

MAX_STEPS = 100
# Results that stay visible for good: what the shopper told is told once.
ALWAYS_SHOWN = ("get_user_profile", "ask_user")
NEWEST_SHOWN = 2
Sink = Callable[[Mapping[str, Any]], None]


class Episode:
    """One episode, from its first message to its record.

    Args:
        toolbox: fresh tools of this task.
        trial: counts from 1; repeated trials of a task differ by it alone.
        sink: gets every message of the trajectory as soon as it is there.
    """

    def __init__(
        self, task: Task, toolbox: Toolbox, trial: int = 1, max_steps: int = MAX_STEPS, sink: Sink | None = None
    ) -> None:
        self.task, self.toolbox, self.trial, self.max_steps = task, toolbox, trial, max_steps
        self.sink = sink
        self.schemas = toolbox.schemas()
        self.steps = 0
        self.calls = 0
        self.stop_reason: str | None = None
        self.error: str | None = None
        self.final_text = ""
        self.reasoning_trace: list[dict[str, Any]] = []
        self.tokens: Counter[str] = Counter()
        self.turn_seconds: list[float] = []
        self.trajectory: list[dict[str, Any]] = []
        self.history: list[dict[str, Any]] = []
        self._results: list[int] = []  # places in the history of results that may be left out
        self._left_out: set[int] = set()
        self._silent = False
        self._say({"role": "system", "content": system_prompt(max_steps)})
        self._say({"role": "user", "content": task.user_query})

    @property
    def done(self) -> bool:
        return self.stop_reason is not None

    def view(self) -> list[dict[str, Any]]:
        """The conversation as the model is to see it: what `shorten` has left out is a note."""
        return [
            {**message, "content": RESULT_LEFT_OUT} if number in self._left_out else message
            for number, message in enumerate(self.history)
        ]

    def shorten(self) -> bool:
        """Leave out more of the conversation, for good; False where nothing more can go.

        The older half of the tool results still shown becomes a note, never the profile and the shopper's answers,
        and the newest two only when nothing else is left. Half at a time, as every change costs the model its memory of
        all that comes behind.
        """
        shown = [number for number in self._results if number not in self._left_out]
        older = shown[:-NEWEST_SHOWN] or shown
        self._left_out.update(older[: (len(older) + 1) // 2])
        return bool(older)

    def take(self, reply: Reply) -> None:
        """Carry out one turn of the agent."""
        assert not self.done, f"the episode of {self.task.id} has ended: {self.stop_reason}"
        if reply.overflow:
            self.stop_reason = "context"
            return
        self.steps += 1
        self._count(reply)
        message = reply.message(reply.calls[:1])
        dropped = {"discarded_tool_calls": [call.message() for call in reply.calls[1:]]} if reply.calls[1:] else {}
        thought = {"reasoning_trace": reply.reasoning} if reply.reasoning else {}
        self._say(message, {**dropped, **thought})
        if reply.calls:
            self._act(reply)
        else:
            self._idle(reply)
        if not self.done and self.steps >= self.max_steps:
            self.stop_reason = "budget"

    def _act(self, reply: Reply) -> None:
        self._silent = False
        self.calls += 1
        call = reply.calls[0]
        result = self.toolbox.call(call.name, call.arguments)
        content = json.dumps(result, ensure_ascii=False, default=str)
        if call.name not in ALWAYS_SHOWN:
            self._results.append(len(self.history))
        self._say({"role": "tool", "tool_call_id": call.id, "content": content})
        if self.toolbox.finished:
            self.stop_reason = "recommended" if self.toolbox.recommended else "unknown_product"
        elif len(reply.calls) > 1:
            self._say({"role": "user", "content": ONE_CALL})

    def _idle(self, reply: Reply) -> None:
        if self._silent:
            self.stop_reason, self.final_text = "no_call", reply.content
            return
        self._silent = True
        self._say({"role": "user", "content": REMINDER})

    def crash(self, error: BaseException) -> None:
        """End the episode because something of ours, or a server, failed."""
        self.stop_reason = "error"
        self.error = f"{type(error).__name__}: {error}"

    def _say(self, message: dict[str, Any], aside: Mapping[str, Any] | None = None) -> None:
        """Add a message to what the model reads, and with what it does not read to the trajectory."""
        self.history.append(message)
        self.trajectory.append({**message, **(aside or {})})
        if self.sink is not None:
            self.sink(self.trajectory[-1])

    def _count(self, reply: Reply) -> None:
        for name in ("input_tokens", "computed_tokens", "output_tokens"):
            if (value := getattr(reply, name)) is not None:
                self.tokens[name] += value
        self.turn_seconds.append(reply.seconds)
        if reply.reasoning:
            self.reasoning_trace.append({"step": self.steps, "raw_reasoning": reply.reasoning})

    def record(self, model: str) -> dict[str, Any]:
        """The prediction: the published keys, then how the episode ended and what it cost. Holds no times."""
        tools = self.toolbox
        record = {
            "id": self.task.id,
            "intent_category": self.task.intent_category,
            "user_query": self.task.user_query,
            "predicted_product_id": tools.recommended if tools.finished else None,
            "reasoning": tools.reasoning if tools.finished else self.final_text,
            "trajectory": self.trajectory,
            "reasoning_trace": self.reasoning_trace,
            "model": model,
            "total_tool_calls": self.calls,
            "ask_user_calls": tools.ask_count,
            "get_profile_calls": tools.profile_count,
            "finished": self.stop_reason in ("recommended", "unknown_product", "no_call"),
            "stop_reason": self.stop_reason,
            "trial": self.trial,
            "turns": self.steps,
            "revealed_slots": list(tools.revealed),
            "results_left_out": len(self._left_out),
            **self.tokens,
        }
        return {**record, "error": self.error} if self.error else record
