"""A served model as a generator: any server that speaks OpenAI's chat completions, vLLM's for instance."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed, wait
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urlsplit

import openai

from models.answer_cache import AnswerCache
from models.generation import Chat, Completion, SamplingSettings
from models.served_reply import ServedReply, read_reply

log = logging.getLogger(__name__)

CONCURRENCY = 16  # requests at once
RETRIES = 10  # tries again after a failure that may pass; the waits double from half a second to eight, a minute in all
TIMEOUT = 600.0  # seconds for one answer
PATIENCE = 10.0  # seconds without any answer after which it is said who is waited for
ENDING = 2.0  # seconds after which it is said that a run that stops waits for answers under way
REFUSALS = (401, 403, 404)  # of whoever has this key, or asks for this model
# What servers say, in these or similar words, of a chat that is too long for the model; and under which statuses.
TOO_LONG = (
    "context length",
    "context size",
    "context window",
    "context_length",
    "maximum context",
    "too long",
    "too many tokens",
)
TOO_LONG_STATUSES = (400, 413, 422)
NO_COMPLETION = "what it answers is no chat completion; give the address of an OpenAI-compatible server, /v1 included"


class ServerError(ValueError):
    """What a server did in place of answering, in words that name it. ``status`` is HTTP's; None where there is none.

    Where it is ``for_everyone`` the server cannot be reached, or refuses whoever asks as we do: no other request will
    fare better. Where it is ``too_long`` the chat does not fit the model.
    """

    def __init__(
        self, message: str, status: int | None = None, for_everyone: bool = False, too_long: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.for_everyone, self.too_long = status, for_everyone, too_long


class ServerGenerator:
    """The model called ``model`` of the server at ``url`` (``http://host:port/v1``).

    Overload, timeouts and lost connections are tried again after growing waits (the client does that, and keeps to
    what the server asks for, up to two minutes). What was answered is kept on disk, and not asked again for the same
    server, model, chat and settings. A key is taken from OPENAI_API_KEY. A chat that the server finds too long ends as
    ``too_long``.

    Args:
        cache: the file to keep answers in; None keeps none.
        anew: ask even what was answered before, and keep the new answers instead.

    Attributes:
        facts: the model and a digest of its server's address, which tells two servers apart and publishes neither.
        recalled: how many answers came from the cache.

    Raises ValueError for an address that is none, and for a key that cannot be sent.
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
        anew: bool = False,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency: {concurrency} requests at once; give 1 or more")
        self.url, self.model, self.name = _address(url), model, model
        server = hashlib.sha256(self.url.encode()).hexdigest()[:12]
        self.facts: dict[str, Any] = {"served": model, "server": server}
        self.concurrency, self.anew = concurrency, anew
        self.client = _client(self.url, retries, timeout)
        self.cache = AnswerCache(cache) if cache else None
        self.recalled, self.lock = 0, threading.Lock()

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

        Where it ends early, the answers under way are waited for, so that the cache gets them. An interrupt ends that
        wait: the threads are daemons, which a program that ends does not wait for.

        Raises ServerError where the server refuses or cannot be reached.
        """
        wanted = self.plan(chats, settings) if batches is None else batches
        asked: dict[Future[Completion], int] = {Future(): row for batch in wanted for row in batch}
        waiting: SimpleQueue[tuple[Future[Completion], Chat]] = SimpleQueue()
        for future, row in asked.items():
            waiting.put((future, chats[row]))
        silence = _later(PATIENCE, f"{self.url}: no answer from {self.model} yet; waiting")
        try:
            for _ in range(min(self.concurrency, len(asked))):
                threading.Thread(target=self._work, args=(waiting, settings), daemon=True).start()
            for future in as_completed(asked):
                silence.cancel()
                yield asked[future], future.result()
        finally:
            silence.cancel()
            under_way = [future for future in asked if not future.cancel() and not future.done()]
            told = f"{len(under_way)} answers under way are waited for; another Ctrl-C leaves them"
            stopping = _later(ENDING, f"{self.url}: stopping; {told}")
            try:
                wait(under_way)
            finally:
                stopping.cancel()

    def _work(self, waiting: SimpleQueue[tuple[Future[Completion], Chat]], settings: SamplingSettings) -> None:
        while True:
            try:
                future, chat = waiting.get_nowait()
            except Empty:
                return
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._answer(chat, settings))
            except Exception as error:
                future.set_exception(error)

    def _answer(self, chat: Chat, settings: SamplingSettings) -> Completion:
        request = self._request(chat, settings)
        key = hashlib.sha256(json.dumps([self.url, chat.sample, request], sort_keys=True).encode()).hexdigest()
        if self.cache and not self.anew and (found := self.cache.get(key)):
            with self.lock:
                self.recalled += 1
            return found
        completion = self._complete(request)
        if self.cache and completion.finish != "too_long":
            self.cache.put(key, completion, replace=self.anew)
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

    def ask(self, request: dict[str, Any]) -> ServedReply:
        """The server's chat completion for a request as OpenAI's client takes it.

        Raises ServerError.
        """
        try:
            answer = self.client.chat.completions.with_raw_response.create(**request)
            return read_reply(
                answer.http_response.content.decode("utf-8", "replace")
            )  # JSON is UTF-8, whatever is said
        except openai.APITimeoutError as error:
            raise ServerError(f"{self.url}: no answer in time ({error})") from error
        except openai.APIConnectionError as error:
            told = error.__cause__ or error
            raise ServerError(f"{self.url}: no answer ({told}); is the server running?", for_everyone=True) from error
        except openai.APIStatusError as error:
            refused, status = error.status_code in REFUSALS, error.status_code
            long = status in TOO_LONG_STATUSES and any(words in error.message.lower() for words in TOO_LONG)
            raise ServerError(f"{self.url}: {self.model}: {_reason(error)}", status, refused, long) from error
        except (openai.OpenAIError, ValueError) as error:
            raise ServerError(f"{self.url}: {self.model}: {NO_COMPLETION} ({error})") from error

    def _complete(self, request: dict[str, Any]) -> Completion:
        try:
            answer = self.ask(request)
        except ServerError as error:
            if error.too_long:
                return Completion("", 0, 0, "too_long")
            raise
        choice, usage = answer.choices[0], answer.usage
        reasoning, text = choice.message.thought, choice.message.content or ""
        return Completion(
            text=_with_reasoning(reasoning, text) if reasoning else text,
            tokens=usage.completion_tokens if usage else 0,
            prompt_tokens=usage.prompt_tokens if usage else 0,
            finish="length" if choice.finish_reason == "length" else "stop",
        )


def _later(seconds: float, told: str) -> threading.Timer:
    """A warning that is given after some seconds unless it is cancelled before."""
    timer = threading.Timer(seconds, log.warning, ("%s", told))
    timer.daemon = True
    timer.start()
    return timer


def _address(url: str) -> str:
    """An address in its plain form. Raises ValueError where it is none."""
    try:
        parts = urlsplit(url.rstrip("/"))
        port = parts.port  # raises where it is no number
    except ValueError as error:
        raise ValueError(f"{url}: no address of a server ({error}); give http://host:port/v1#model") from error
    if not parts.hostname or port == 0 or not url.isprintable() or " " in url:
        raise ValueError(f"{url!r}: no address of a server; give http://host:port/v1#model")
    return parts._replace(netloc=parts.netloc.lower() if "@" not in parts.netloc else parts.netloc).geturl()


def _client(url: str, retries: int, timeout: float) -> openai.OpenAI:
    if not os.environ.get("OPENAI_API_KEY", "").isascii():
        raise ValueError("OPENAI_API_KEY holds characters that no key has; set it to the server's key, or to nothing")
    try:
        return openai.OpenAI(base_url=url, max_retries=retries, timeout=timeout)
    except openai.OpenAIError:  # no key in the environment; a server of one's own asks for none
        return openai.OpenAI(base_url=url, max_retries=retries, timeout=timeout, api_key="none")


def _reason(error: openai.APIStatusError) -> str:
    told = " ".join("".join(letter if letter.isprintable() else " " for letter in error.message).split())[:300]
    if error.status_code == 404:
        return f"not there ({told}); give a model that the server lists under /models"
    if error.status_code in REFUSALS:
        return f"refused ({told}); set OPENAI_API_KEY"
    wait = error.response.headers.get("retry-after", "")
    if wait.isdigit():
        return f"status {error.status_code} ({told}); it asks to wait {int(wait):,} s: give the same command again then"
    return f"status {error.status_code} ({told})"


def _with_reasoning(reasoning: str, text: str) -> str:
    """Reasoning that a server has parted from the answer, before it again; left open where no answer came."""
    return f"<think>\n{reasoning.strip()}\n</think>\n\n{text}" if text else f"<think>\n{reasoning.strip()}"
