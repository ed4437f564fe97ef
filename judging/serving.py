"""Running the service: from a command's settings to a server that stops without losing a request."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from rich.console import Console
from transformers.utils import logging as transformers_logging

from judging.config import ServeConfig
from judging.judges import find_judges, load
from judging.service import Service
from models.runtime import this_process, use_threads

SAY = Console(stderr=True, highlight=False, soft_wrap=True)
LINGER = 1.0  # seconds in which connections that are open may still bring their request


class Server(uvicorn.Server):
    """A server that goes in three steps when it is told to stop: it says so while it still takes requests
    (``drain_s`` seconds, for load balancers); it takes no new connections, but what comes over the open ones, each of
    which ends with its next answer; it ends when all are answered."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            at = f"[{host}]" if ":" in host else host
            SAY.print(f"listening on http://{at}:{port}, documented under /docs; stop it with SIGTERM or Ctrl-C")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn would raise the signal again at the end, so that a clean stop looked like a death by it.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.gate.draining = True
        if not self.force_exit:
            await asyncio.sleep(self.service.config.drain_s)
        await self._stop_listening(sockets or [])
        last = time.monotonic() + LINGER
        while self.server_state.connections and time.monotonic() < last and not self.force_exit:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)
        SAY.print(f"stopped; {self.service.telemetry.total:,} requests were answered")

    async def _stop_listening(self, listeners: list[socket.socket]) -> None:
        """Close the listeners; connections that stand in their queues are still taken, where asyncio would drop them
        (under load dozens: they wait for the event loop's next turn)."""
        queued = [connection for listener in listeners for connection in _queue(listener)]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for connection in queued:
            await loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        kind: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = kind(self.config, self.server_state, self.lifespan.state)
        return protocol


def _queue(listener: socket.socket) -> Iterator[socket.socket]:
    try:
        while True:
            yield listener.accept()[0]
    except OSError:  # none is left (the listener does not block)
        return


def serve(config: ServeConfig) -> None:
    """Load the judges and serve them until SIGTERM or SIGINT.

    Raises ValueError or FileNotFoundError in words: faults in settings or files.
    """
    use_threads(config.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    token = read_token(config.token_file)
    found = find_judges(config.adapter)
    listener = bound(config.host, config.port)
    judges = load(found, config, this_process().device)
    service = Service(judges, config, token)
    for one in judges:
        SAY.print(f"serving {one.name}: {one.judgment.name} on {one.judge.spec.base.id}, {one.judge.device}")
    Server(server_config(service), service).run([listener])


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address, not listening yet: that an address is taken is known before models are loaded.

    Raises ValueError in words.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ValueError(f"{host}:{port} cannot be listened on ({error}); give another --host or --port") from None
    return listener


def server_config(service: Service) -> uvicorn.Config:
    options: dict[str, Any] = {"access_log": False, "log_level": "warning", "lifespan": "on", "server_header": False}
    return uvicorn.Config(service.gate, **options)


def read_token(file: str | None) -> str | None:
    """The token of a file. Raises FileNotFoundError, or ValueError where it is empty."""
    if file is None:
        return None
    path = Path(file).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"token_file: {path}: no such file; write the token that requests must bear into it")
    token = path.read_text(encoding="utf-8").strip()
    if not token:
        raise ValueError(f"token_file: {path} is empty; write the token that requests must bear into it")
    return token
