"""A served model: what its server may send, and what is made of it; the answers kept on disk."""

from __future__ import annotations

import json
import logging
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from models import served
from models.answer_cache import AnswerCache
from models.generation import Completion, SamplingSettings, as_completion, chat
from models.generators import find_generator
from models.served import ServerError, ServerGenerator

ROOT = Path(__file__).parents[2]
SAID = {"role": "assistant", "content": "yes"}


class Handler(BaseHTTPRequestHandler):
    """Answers each request with the server's ``status`` and ``body``."""

    def do_POST(self) -> None:
        server: Any = self.server
        self.rfile.read(int(self.headers["Content-Length"]))
        server.asked += 1
        server.go.wait(10)
        self.send_response(server.status)
        self.send_header("Content-Type", server.type)
        if server.wait:
            self.send_header("Retry-After", server.wait)
        self.send_header("Content-Length", str(len(server.body)))
        self.end_headers()
        self.wfile.write(server.body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    running: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.status, running.body, running.asked = 200, b"", 0
    running.type, running.wait = "application/json", ""
    running.url = f"http://127.0.0.1:{running.server_port}/v1"
    running.go = threading.Event()
    running.go.set()
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.go.set()
    running.shutdown()
    running.server_close()


def says(server: Any, message: Any = SAID, **more: Any) -> None:
    server.body = json.dumps({"choices": [{"index": 0, "message": message}], **more}).encode()


def answer(generator: ServerGenerator) -> Completion:
    return next(one for _, one in generator.generate([chat("x")], SamplingSettings()))


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        ("<html>", "no JSON"),
        ("", "no JSON"),
        ("null", "should be an object"),
        ('"hello"', "should be an object"),
        ("[]", "should be an object"),
        ('{"error": "overloaded"}', "choices: Field required"),
        ('{"choices": []}', "choices: List should have at least 1 item"),
        ('{"choices": {"0": 1}}', "choices: Input should be a valid"),
        (f'{{"other": {"[" * 3000}{"]" * 3000}}}', "nests too deeply"),
        ('{"choices": "abc"}', "choices: Input should be a valid"),
        ('{"choices": [null]}', r"choices\.0: Input should be"),
        ('{"choices": [{"index": 0}]}', r"choices\.0\.message: Field required"),
        ('{"choices": [{"message": null}]}', r"choices\.0\.message: Input should be"),
        ('{"choices": [{"message": {"content": 5}}]}', r"choices\.0\.message\.content: .* string"),
        ('{"choices": [{"message": {"content": [{"text": "x"}]}}]}', r"choices\.0\.message\.content: .* string"),
        ('{"choices": [{"message": {"content": "x", "reasoning": {}}}]}', r"choices\.0\.message\.reasoning"),
        ('{"choices": [{"message": {"content": "x"}}], "usage": "none"}', "usage"),
        ('{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": "many"}}', r"usage\.prompt_tokens"),
    ],
)
def test_a_reply_of_another_form_is_told_with_its_server_and_kept_nowhere(
    server: Any, tmp_path: Path, reply: str, wrong: str
) -> None:
    server.body = reply.encode()
    generator = ServerGenerator(server.url, "m", tmp_path / "cache", retries=0)
    with pytest.raises(ServerError, match=rf"{server.url}: m: .*no chat completion.*{wrong}"):
        answer(generator)
    says(server)
    assert answer(generator).text == "yes"


@pytest.mark.parametrize(
    ("usage", "tokens", "prompt_tokens"),
    [
        (None, 0, 0),
        ({}, 0, 0),
        ({"prompt_tokens": 7}, 0, 7),
        ({"prompt_tokens": "7", "completion_tokens": "3"}, 3, 7),
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "prompt_tokens_details": None}, 3, 7),
    ],
)
def test_tokens_are_what_the_server_has_counted(server: Any, usage: Any, tokens: int, prompt_tokens: int) -> None:
    says(server, usage=usage)
    assert answer(ServerGenerator(server.url, "m")) == Completion("yes", tokens, prompt_tokens, "stop")


def test_half_a_character_becomes_a_replacement_character_and_whole_ones_stay(server: Any) -> None:
    server.body = rb'{"choices": [{"message": {"content": "\u662f\ud83d\ude00\ud83d"}}]}'
    assert answer(ServerGenerator(server.url, "m")).text == "是😀\ufffd"


def test_a_reply_is_utf_8_whatever_its_header_says(server: Any) -> None:
    server.type = "application/json; charset=hex"
    server.body = '{"choices": [{"message": {"content": "是"}}]}'.encode()
    assert answer(ServerGenerator(server.url, "m")).text == "是"


def test_a_wait_that_is_too_long_to_be_kept_is_told(server: Any) -> None:
    server.status, server.body, server.wait = 429, b'{"error": {"message": "slow \\u001b[31mdown"}}', "7200"
    with pytest.raises(ServerError, match=r"status 429 .*slow +\[31mdown.*asks to wait 7,200 s: give the same command"):
        answer(ServerGenerator(server.url, "m"))
    assert server.asked == 1


@pytest.mark.parametrize("status", [400, 413])
def test_a_chat_too_long_for_the_model_is_told_apart_and_not_kept(server: Any, tmp_path: Path, status: int) -> None:
    server.status = status
    server.body = b'{"error": {"message": "This model\'s maximum context length is 9 tokens"}}'
    generator = ServerGenerator(server.url, "m", tmp_path / "cache", retries=0)
    assert answer(generator) == Completion("", 0, 0, "too_long")
    server.status = 200
    says(server)
    assert answer(generator).text == "yes"
    server.status, server.body = 400, b'{"error": {"message": "no such role"}}'
    with pytest.raises(ServerError, match=r"status 400 .*no such role"):
        answer(ServerGenerator(server.url, "too many tokens", retries=0))


@pytest.mark.parametrize("url", ["http://127.0.0.1:abc/v1", "http://[::1/v1", "http:///v1", "http://a b/v1"])
def test_an_address_that_is_none_is_refused_in_words(url: str) -> None:
    with pytest.raises(ValueError, match=r"no address of a server.*; give http://host:port/v1#model"):
        find_generator(f"{url}#m")


def test_a_key_that_cannot_be_sent_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "钥匙")
    with pytest.raises(ValueError, match="OPENAI_API_KEY holds characters that no key has"):
        ServerGenerator("http://127.0.0.1:9/v1", "m")


def test_a_served_model_is_its_server_and_its_name_and_publishes_no_address() -> None:
    one, other, third = (
        ServerGenerator(f"http://judges.example:{port}/v1", name).facts
        for port, name in ((1, "m"), (2, "m"), (1, "other"))
    )
    assert one == ServerGenerator("http://Judges.example:1/v1/", "m").facts
    assert len({json.dumps(facts) for facts in (one, other, third)}) == 3
    assert "judges" not in json.dumps(one)


def test_answers_are_asked_anew_where_that_is_wanted_and_replace_what_was_kept(server: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    says(server, {"content": "old"})
    answer(ServerGenerator(server.url, "m", cache))
    says(server, {"content": "new"})
    again = ServerGenerator(server.url, "m", cache)
    assert (answer(again).text, again.recalled) == ("old", 1)
    anew = ServerGenerator(server.url, "m", cache, anew=True)
    assert (answer(anew).text, anew.recalled) == ("new", 0)
    assert answer(ServerGenerator(server.url, "m", cache)).text == "new"
    assert server.asked == 2


def test_the_first_answer_under_a_key_stays(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "answers.sqlite")
    cache.put("k", Completion("a", 1, 2, "stop"))
    cache.put("k", Completion("b", 1, 2, "stop"))
    assert cache.get("k") == Completion("a", 1, 2, "stop")
    assert cache.get("other") is None


@pytest.mark.parametrize("spoilt", [b"no JSON", b"[" * 3000, b'{"text": "\xff'])
def test_a_spoilt_answer_is_asked_again_once(tmp_path: Path, spoilt: bytes) -> None:
    cache = AnswerCache(tmp_path / "answers.sqlite")
    cache.put("k", Completion("a", 1, 2, "stop"))
    with sqlite3.connect(cache.path) as base:
        base.execute("UPDATE answers SET completion = CAST(? AS TEXT)", (spoilt,))
    assert cache.get("k") is None and cache.usable
    cache.put("k", Completion("b", 1, 2, "stop"))
    assert cache.get("k") == Completion("b", 1, 2, "stop")


@pytest.mark.parametrize("spoilt", ["a file", "a folder", "no folder", "a row"])
def test_a_cache_that_cannot_be_used_costs_the_cache_and_one_warning(
    server: Any, tmp_path: Path, spoilt: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "kept" / "cache"
    path.parent.mkdir()
    if spoilt == "a file":
        path.write_bytes(b"no data base, whatever its name says; " * 100)
    elif spoilt == "a folder":
        path.mkdir()
    elif spoilt == "no folder":
        path.parent.rmdir()
        path.parent.write_text("a file")
    else:
        says(server, {"content": "old"})
        answer(ServerGenerator(server.url, "m", path))
        with sqlite3.connect(path) as base:
            base.execute("UPDATE answers SET completion = '{\"text\": 5}'")
    says(server)
    generator = ServerGenerator(server.url, "m", path)
    assert [answer(generator).text, answer(generator).text] == ["yes", "yes"]
    assert answer(ServerGenerator(server.url, "other", path)).text == "yes"
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == (0 if spoilt == "a row" else 1)
    assert all("no answers are kept or looked up" in line and str(path) in line for line in told)


def test_who_is_waited_for_is_said(server: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(served, "PATIENCE", 0.05)
    says(server)
    server.go.clear()
    threading.Timer(0.4, server.go.set).start()
    with caplog.at_level(logging.WARNING):
        answer(ServerGenerator(server.url, "slow"))
    assert f"{server.url}: no answer from slow yet" in caplog.text
    assert "under way" not in caplog.text


def test_who_is_waited_for_at_the_end_is_said(server: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def interrupted(asked: Any) -> Any:
        while not server.asked:
            time.sleep(0.01)
        threading.Timer(0.4, server.go.set).start()
        raise KeyboardInterrupt

    monkeypatch.setattr(served, "ENDING", 0.05)
    monkeypatch.setattr(served, "as_completed", interrupted)
    says(server)
    server.go.clear()
    generator = ServerGenerator(server.url, "m", concurrency=1)
    with pytest.raises(KeyboardInterrupt):
        list(generator.generate([chat(str(number)) for number in range(3)], SamplingSettings()))
    assert f"{server.url}: stopping; 1 answers under way are waited for" in caplog.text
    assert server.asked == 1


def test_a_second_interrupt_leaves_a_server_that_hangs(server: Any, tmp_path: Path) -> None:
    script = f"""
import signal, sys
from models.generation import SamplingSettings, chat
from models.served import ServerGenerator
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
try:
    list(ServerGenerator("{server.url}", "m").generate([chat("x")], SamplingSettings()))
except KeyboardInterrupt:
    sys.exit(130)
"""
    server.go.clear()
    child = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    while not server.asked:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):  # the answer under way is waited for
        child.wait(1)
    child.send_signal(signal.SIGINT)
    assert child.wait(5) == 130


def test_no_requests_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="concurrency: 0 requests at once; give 1 or more"):
        ServerGenerator("http://127.0.0.1:1/v1", "m", concurrency=0)


@pytest.mark.parametrize(
    ("entry", "whole"),
    [
        ({"text": "a", "tokens": 1, "prompt_tokens": 2, "finish": "stop", "id": "x"}, True),
        ({"text": None, "tokens": 1, "prompt_tokens": 2, "finish": "stop"}, False),
        ({"text": 5, "tokens": 1, "prompt_tokens": 2, "finish": "stop"}, False),
        ({"text": "a", "tokens": 1, "prompt_tokens": 2}, False),
        ({"text": "a", "tokens": 1, "prompt_tokens": 2, "finish": "odd"}, False),
        ({"text": "a", "tokens": 1, "prompt_tokens": 2, "finish": []}, False),
        ({"text": "a", "tokens": True, "prompt_tokens": 2, "finish": "stop"}, False),
        (["text"], False),
    ],
)
def test_a_completion_is_read_from_what_has_its_form(entry: Any, whole: bool) -> None:
    assert as_completion(entry) == (Completion("a", 1, 2, "stop") if whole else None)
