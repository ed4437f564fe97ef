"""A server of OpenAI's chat completions on loopback, behind which the writer of tests/plan_writer.py sits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from plan_writer import reply

from models.generation import Chat, Message


class PlanServer:
    """``reference`` names it as a generator; ``asked`` holds the last turn of every request that it has answered."""

    def __init__(self, port: int) -> None:
        self.reference = f"http://127.0.0.1:{port}/v1#writer"
        self.asked: list[str] = []


@contextmanager
def plan_server() -> Iterator[PlanServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            turns = tuple(Message(turn["role"], turn["content"]) for turn in request["messages"])
            text = reply(Chat(turns))
            told = {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": request["model"],
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}},
                ],
                "usage": {
                    "completion_tokens": len(text.split()),
                    "prompt_tokens": sum(len(turn.content.split()) for turn in turns),
                    "total_tokens": 0,
                },
            }
            body = json.dumps(told).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            made.asked.append(turns[-1].content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = PlanServer(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
