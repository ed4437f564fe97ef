"""What stands before every request: its size is limited, it is counted and timed, and a closing service says so."""

from __future__ import annotations

import time

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judging.telemetry import Telemetry


class Gate:
    """ASGI middleware.

    Attributes:
        draining: once true, every response closes its connection, so that clients go elsewhere with their next request.
    """

    def __init__(self, app: ASGIApp, telemetry: Telemetry, max_bytes: int, paths: frozenset[str]) -> None:
        self.app, self.telemetry, self.max_bytes, self.paths = app, telemetry, max_bytes, paths
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Paths that are none of ours count together: a scanner must not fill the memory with names.
        path = scope["path"] if scope["path"] in self.paths else "other"
        status, started, read = 500, time.perf_counter(), 0

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.max_bytes:
                raise HTTPException(413, f"the body is longer than {self.max_bytes} bytes; send fewer records")
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self.draining or status == 413:  # the rest of a body that is too long is not waited for
                    message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
            await send(message)

        self.telemetry.begun()
        try:
            await self.app(scope, limited, noted)
        finally:
            self.telemetry.answered(path, status, time.perf_counter() - started)
