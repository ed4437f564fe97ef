"""A served model as the agent: OpenAI's tool calls, as vLLM and its like speak them; each episode asks for itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.playing import PlayerGone
from benchmarks.ecomagent.replies import Reply, ToolCall
from models.generation import SamplingSettings
from models.served import ServerError, ServerGenerator
from models.served_reply import ServedReply


class ServerAgent:
    """Plays episodes with a model behind ``generator``'s server.

    Overload and lost connections are tried again by the client, as the generator's settings say. A conversation that
    the server finds too long is shortened by `Episode.shorten` and sent again. What else goes wrong is raised: as
    PlayerGone where no episode can be played, else as ServerError, which ends the episode.
    """

    batched = False

    def __init__(self, generator: ServerGenerator, sampling: SamplingSettings) -> None:
        self.generator, self.sampling = generator, sampling
        self.name = generator.name
        self.facts: dict[str, Any] = {**generator.facts, "tool_format": "openai"}

    def reply(self, turns: Sequence[tuple[int, Episode]]) -> list[Reply]:
        """The next turn of each episode, one after the other."""
        return [self._reply(episode) for _, episode in turns]

    def _reply(self, episode: Episode) -> Reply:
        started = time.perf_counter()
        while True:
            try:
                answer = self.generator.ask(self._request(episode))
            except ServerError as error:
                if error.for_everyone:
                    raise PlayerGone(str(error)) from error
                if not error.too_long:
                    raise
                if not episode.shorten():
                    return Reply(overflow=True)
            else:
                return self._read(answer, time.perf_counter() - started)

    def _request(self, episode: Episode) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.generator.model,
            "messages": episode.view(),
            "tools": episode.schemas,
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "max_tokens": self.sampling.max_tokens,
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
        }
        if self.sampling.temperature:
            request["seed"] = self.sampling.seed * 1_000_003 + episode.trial
        if self.sampling.thinking is not None:
            request["extra_body"] = {"chat_template_kwargs": {"enable_thinking": self.sampling.thinking}}
        return request

    def _read(self, answer: ServedReply, seconds: float) -> Reply:
        message, usage = answer.choices[0].message, answer.usage
        calls = [
            ToolCall(call.id or "", call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
            if call.type == "function" and call.function
        ]
        details = usage.prompt_tokens_details if usage else None
        kept = details.cached_tokens if details else None
        return Reply(
            content=message.content or "",
            calls=tuple(calls),
            reasoning=message.thought,
            input_tokens=usage.prompt_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
            computed_tokens=usage.prompt_tokens - kept if usage and kept is not None else None,
            seconds=seconds,
        )
