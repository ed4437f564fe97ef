"""Clients of a service on this machine, many at once, each over a connection that it keeps."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Traffic:
    """What came of the requests: statuses, connections that were refused (or reset before they were taken), connections
    that ended with a request unanswered, and records answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    refused: int = 0
    lost: int = 0
    records: int = 0
    seconds: float = 0.0


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: Any
) -> tuple[int, dict[str, str], bytes]:
    """One POST over an open connection: (status, headers, body). Raises ConnectionError where no answer comes."""
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: loopback\r\ncontent-type: application/json\r\ncontent-length: {len(text)}"
    writer.write(head.encode() + b"\r\n\r\n" + text)
    await writer.drain()
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except asyncio.IncompleteReadError as cut:
        # An answer that was begun and cut is lost whatever the service was told.
        raise ConnectionResetError("cut" if cut.partial else "closed") from cut
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    return int(lines[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


async def client(
    port: int, make: Callable[[int], Any], check: Callable[[Any, Any], None], until: float, traffic: Traffic
) -> None:
    """Ask again and again until the time has come or the service listens no more."""
    number = 0
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            traffic.refused += 1
            return
        try:
            closed = False
            while not closed and time.monotonic() < until:
                body = make(number)
                number += 1
                status, headers, text = await exchange(reader, writer, "/judge", body)
                traffic.statuses[status] += 1
                if status == 200:
                    check(body, json.loads(text))
                    traffic.records += len(body["records"])
                closed = headers.get("connection") == "close"
        except ConnectionError:
            traffic.lost += 1
        finally:
            writer.close()


async def crowd(
    count: int, port: int, make: Callable[[int, int], Any], check: Callable[[Any, Any], None], seconds: float
) -> Traffic:
    """``count`` clients at once; ``make(client, number)`` is the body of a client's next request."""
    traffic, begun = Traffic(), time.monotonic()

    def maker(one: int) -> Callable[[int], Any]:
        return lambda number: make(one, number)

    await asyncio.gather(*(client(port, maker(one), check, begun + seconds, traffic) for one in range(count)))
    traffic.seconds = time.monotonic() - begun
    return traffic
