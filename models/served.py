"""A served model as a generator: any server that speaks OpenAI's chat completions, vLLM's for instance."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import openai

from models.generation import Chat, Completion, SamplingSettings

CONCURRENCY = 16  # requests at once
RETRIES = 10  # tries again after a failure that may pass; the waits double from half a second to eight, a minute in all
TIMEOUT = 600.0  # seconds for one answer
REFUSALS = (401, 403, 404)  # of whoever has this key, or asks for this model
NO_COMPLETION = "what it answers is no chat completion; give the address of an OpenAI-compatible server, /v1 included"


class ServerError(ValueError):
    """What a server did in place of answering, in words that name it. ``status`` is HTTP's; None where there is none.

    Where it is ``for_everyone`` the server cannot be reached, or refuses whoever asks as we do: no other request will
    fare better.
    """

    def __init__(self, message: str, status: int | None = None, for_everyone: bool = False) -> None:
        super().__init__(message)
        self.status, self.for_everyone = status, for_everyone


class ServerGenerator:
    """The model called ``model`` of the server at ``url`` (``http://host:port/v1``).

    Overload, timeouts and lost connections are tried again after growing waits (the client does that, and keeps to
    what the server asks for). What was answered is kept on disk, and not asked again for the same server, model, chat
    and settings. A key is taken from OPENAI_API_KEY.

    Args:
        cache: the file to keep answers in; None keeps none.
    """

    context: int | None = None

    def __init__(
        self,
        url: str,
        model: str,
        cache: Path | None = None,
        concurrency: int = CONCURRENCY,
        retries: int = RETRIES,
        timeout: float = TIMEOUT,
    ) -> None:
        self.url, self.model, self.name = url.rstrip("/"), model, model
        self.facts: dict[str, Any] = {"served": model}
        self.concurrency = concurrency
        self.client = _client(self.url, retries, timeout)
        self.cache = AnswerCache(cache) if cache else None

    def prompt_tokens(self, chats: Sequence[Chat]) -> None:
        """The server alone counts them."""
        return None

    def plan(self, chats: Sequence[Chat], settings: SamplingSettings) -> list[list[int]]:
        """Every chat by itself: what else is under way at the server is not ours to plan."""
        return [[row] for row in range(len(chats))]

    def generate(
        self, chats: Sequence[Chat], settings: SamplingSettings, batches: Sequence[Sequence[int]] | None = None
    ) -> Iterator[tuple[int, Completion]]:
        """(row, completion) in the order in which the server answers.

        Raises ServerError where it refuses or cannot be reached.
        """
        wanted = self.plan(chats, settings) if batches is None else batches
        pool = ThreadPoolExecutor(self.concurrency)
        try:
            asked = {pool.submit(self._answer, chats[row], settings): row for batch in wanted for row in batch}
            for future in as_completed(asked):
                yield asked[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _answer(self, chat: Chat, settings: SamplingSettings) -> Completion:
        request = self._request(chat, settings)
        key = hashlib.sha256(json.dumps([self.url, chat.sample, request], sort_keys=True).encode()).hexdigest()
        if self.cache and (found := self.cache.get(key)):
            return found
        completion = self._complete(request)
        if self.cache:
            self.cache.put(key, completion)
        return completion

    def _request(self, chat: Chat, settings: SamplingSettings) -> dict[str, Any]:
        if settings.grammar is not None:
            raise ValueError(f"{self.url}: a grammar guides local checkpoints alone, not servers")
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [asdict(message) for message in chat.messages],
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
        }
        if settings.temperature:
            request["seed"] = settings.seed * 1_000_003 + chat.sample
        if settings.stop:
            request["stop"] = list(settings.stop)
        if settings.thinking is not None:
            request["extra_body"] = {"chat_template_kwargs": {"enable_thinking": settings.thinking}}
        return request

    def ask(self, request: dict[str, Any]) -> Any:
        """The server's chat completion for a request as OpenAI's client takes it, with one choice at least.

        Raises ServerError.
        """
        try:
            answer = self.client.chat.completions.create(**request)
        except openai.APITimeoutError as error:
            raise ServerError(f"{self.url}: no answer in time ({error})") from error
        except openai.APIConnectionError as error:
            told = error.__cause__ or error
            raise ServerError(f"{self.url}: no answer ({told}); is the server running?", for_everyone=True) from error
        except openai.APIStatusError as error:
            refused = error.status_code in REFUSALS
            raise ServerError(f"{self.url}: {self.model}: {_reason(error)}", error.status_code, refused) from error
        except (openai.OpenAIError, ValueError) as error:
            raise ServerError(f"{self.url}: {NO_COMPLETION} ({error})") from error
        if not getattr(answer, "choices", None):
            raise ServerError(f"{self.url}: {NO_COMPLETION} ({str(answer)[:100]!r})")
        return answer

    def _complete(self, request: dict[str, Any]) -> Completion:
        answer = self.ask(request)
        choice, usage = answer.choices[0], answer.usage
        reasoning = getattr(choice.message, "reasoning_content", None) or getattr(choice.message, "reasoning", None)
        text = choice.message.content or ""
        return Completion(
            text=_with_reasoning(reasoning, text) if reasoning else text,
            tokens=usage.completion_tokens if usage else 0,
            prompt_tokens=usage.prompt_tokens if usage else 0,
            finish="length" if choice.finish_reason == "length" else "stop",
        )


def _client(url: str, retries: int, timeout: float) -> openai.OpenAI:
    try:
        return openai.OpenAI(base_url=url, max_retries=retries, timeout=timeout)
    except openai.OpenAIError:  # no key in the environment; a server of one's own asks for none
        return openai.OpenAI(base_url=url, max_retries=retries, timeout=timeout, api_key="none")


def _reason(error: openai.APIStatusError) -> str:
    told = " ".join(error.message.split())[:300]
    if error.status_code == 404:
        return f"not there ({told}); give a model that the server lists under /models"
    if error.status_code in REFUSALS:
        return f"refused ({told}); set OPENAI_API_KEY"
    return f"status {error.status_code} ({told})"


def _with_reasoning(reasoning: str, text: str) -> str:
    """Reasoning that a server has parted from the answer, before it again; left open where no answer came."""
    return f"<think>\n{reasoning.strip()}\n</think>\n\n{text}" if text else f"<think>\n{reasoning.strip()}"


class AnswerCache:
    """Completions on disk under a key, for any number of threads and processes."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.lock = path, threading.Lock()
        with closing(self._open()) as base, base:
            base.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, completion TEXT)")

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=60)

    def get(self, key: str) -> Completion | None:
        """What was kept under the key."""
        with closing(self._open()) as base:
            found = base.execute("SELECT completion FROM answers WHERE key = ?", (key,)).fetchone()
        return Completion(**json.loads(found[0])) if found else None

    def put(self, key: str, completion: Completion) -> None:
        """Keep a completion; the first one stays."""
        line = json.dumps(asdict(completion), ensure_ascii=False)
        with self.lock, closing(self._open()) as base, base:
            base.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, line))
