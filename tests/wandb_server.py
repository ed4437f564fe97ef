"""A W&B server on loopback, as far as `wandb sweep`, `wandb agent` and runs speak with it; it records what they say."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import yaml

USER = {
    "id": "user",
    "name": "me",
    "username": "me",
    "email": "me@example.invalid",
    "entity": "me",
    "flags": "{}",
    "teams": {"edges": [{"node": {"name": "me"}}]},
}
PROJECT = {"id": "project", "name": "ecomjudge", "entity": {"id": "entity", "name": "me"}, "entityName": "me"}


class WandbServer:
    """As a context: serving.

    Args:
        trials: the values that its agent is told to train with, one after another.

    Attributes:
        sweep: the sweep file as it arrived, or None.
        operations: name and variables of each GraphQL request, in order.
        history: run id -> what it logged, in order.
    """

    def __init__(self, trials: Sequence[dict[str, Any]] = ()) -> None:
        self.trials = list(trials)
        self.sweep: dict[str, Any] | None = None
        self.operations: list[tuple[str, dict[str, Any]]] = []
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.given = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                self.answer(server.post(self.path, body))

            do_PUT = do_POST

            def do_GET(self) -> None:
                self.answer({})

            def answer(self, value: dict[str, Any]) -> None:
                text = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        if path == "/graphql":
            asked = json.loads(body)
            name = asked.get("operationName") or re.findall(r"(?:query|mutation)\s+(\w+)", asked["query"])[0]
            variables = asked.get("variables") or {}
            self.operations.append((name, variables))
            return {"data": self.data(name, variables)}
        if match := re.search(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", path):
            files = json.loads(body).get("files") or {}
            lines = files.get("wandb-history.jsonl", {}).get("content", [])
            self.history.setdefault(match[1], []).extend(map(json.loads, lines))
        return {}

    def data(self, name: str, variables: dict[str, Any]) -> dict[str, Any]:
        """The answer to a GraphQL operation; an empty one to what nobody needs answered."""
        answer: Callable[[dict[str, Any]], dict[str, Any]] | None = getattr(self, f"on_{name}", None)
        return answer(variables) if answer else {}

    def on_Viewer(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"viewer": USER}

    def on_UpsertSweep(self, variables: dict[str, Any]) -> dict[str, Any]:
        self.sweep = yaml.safe_load(variables["config"])
        sweep = {"id": "s", "name": "sweep1", "project": PROJECT}
        return {"upsertSweep": {"sweep": sweep, "configValidationWarnings": []}}

    def on_SweepWithRuns(self, _: dict[str, Any]) -> dict[str, Any]:
        sweep = {"id": "s", "name": "sweep1", "config": yaml.safe_dump(self.sweep), "runs": {"edges": []}}
        return {"project": {"sweep": sweep}}

    def on_CreateAgent(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"createAgent": {"agent": {"id": "agent"}}}

    def on_Heartbeat(self, variables: dict[str, Any]) -> dict[str, Any]:
        return {"agentHeartbeat": {"agent": {"id": "agent"}, "commands": json.dumps(self.commands(variables))}}

    def on_UpsertBucket(self, variables: dict[str, Any]) -> dict[str, Any]:
        run = {"id": variables["name"], "name": variables["name"], "displayName": variables["name"]}
        run |= {"project": PROJECT, "historyLineCount": 0, "sweepName": "sweep1"}
        return {"upsertBucket": {"bucket": run, "inserted": True}}

    def on_CreateRunFiles(self, variables: dict[str, Any]) -> dict[str, Any]:
        files = [{"name": file, "uploadUrl": f"{self.url}/upload/{file}"} for file in variables["files"]]
        return {"createRunFiles": {"runID": variables["run"], "uploadHeaders": [], "files": files}}

    def on_ArtifactType(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"project": {"artifact": None}}

    def on_CreateArtifact(self, _: dict[str, Any]) -> dict[str, Any]:
        """The artifact is there already: nothing of it needs to be uploaded."""
        sequence = {"id": "sequence", "latestArtifact": {"id": "artifact", "versionIndex": 0}}
        return {"createArtifact": {"artifact": {"id": "artifact", "state": "COMMITTED", "artifactSequence": sequence}}}

    def commands(self, heartbeat: dict[str, Any]) -> list[dict[str, Any]]:
        """The next trial, once the agent has nothing running."""
        if json.loads(heartbeat["runState"]) or self.given == len(self.trials):
            return []
        self.given += 1
        assert self.sweep is not None
        args = {name: {"value": value} for name, value in self.trials[self.given - 1].items()}
        return [{"type": "run", "run_id": f"run{self.given}", "program": self.sweep["program"], "args": args}]

    def __enter__(self) -> WandbServer:
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.shutdown()
        self.http.server_close()
