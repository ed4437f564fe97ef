"""A running server: many clients at once, and an end without a lost request."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from loopback import crowd, exchange
from prometheus_client.parser import text_string_to_metric_families
from shop_rows import row, write_rows

from judging.config import ServeConfig
from judging.judges import find_judges, load
from judging.service import Service
from judging.serving import Server, bound, serve, server_config

ROOT = Path(__file__).resolve().parents[2]


def asked(client: int, number: int, records: int = 3) -> dict[str, Any]:
    start = (client * 1000 + number) * records
    return {"records": [row(start + place) for place in range(records)]}


def answered(body: Any, said: Any) -> None:
    """Everyone got the answers to their own records."""
    assert [one["id"] for one in said["answers"]] == [one["id"] for one in body["records"]]
    assert {one["verdict"] for one in said["answers"]} <= {0, 1}


def metrics(text: str) -> dict[str, float]:
    """Sums over labels of every sample."""
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    return sums


@contextmanager
def running(service: Service) -> Iterator[tuple[Server, int]]:
    server, listener = Server(server_config(service), service), bound("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server, listener.getsockname()[1]
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive()


def test_sixty_four_clients_are_answered_in_batches_and_an_end_under_load_loses_nothing(
    base: Path, adapter: Callable[..., Path]
) -> None:
    config = ServeConfig(adapter=(str(adapter("step_product")),), checkpoint=str(base), drain_s=0.2)
    service = Service(load(find_judges(config.adapter), config, torch.device("cpu")), config)
    with running(service) as (server, port):
        threading.Timer(2.0, server.handle_exit, (signal.SIGTERM, None)).start()
        traffic = asyncio.run(crowd(64, port, asked, answered, 20.0))
    sums = metrics(service.telemetry.text().decode())
    assert traffic.seconds < 15  # it was told to stop long before the clients would have
    assert set(traffic.statuses) == {200}
    assert traffic.statuses[200] >= 64
    assert traffic.refused == 64 and traffic.lost == 0
    assert sums["ecomjudge_requests_total"] == traffic.statuses[200]
    assert sums["ecomjudge_answers_total"] == traffic.records == 3 * traffic.statuses[200]
    assert sums["ecomjudge_open_requests"] == 0
    assert sums["ecomjudge_batch_questions_sum"] > 4 * sums["ecomjudge_batch_questions_count"]


def test_a_stopping_service_says_so_takes_what_still_comes_and_answers_over_open_connections(
    base: Path, adapter: Callable[..., Path]
) -> None:
    config = ServeConfig(adapter=(str(adapter("step_product")),), checkpoint=str(base), drain_s=0.3)
    service = Service(load(find_judges(config.adapter), config, torch.device("cpu")), config)

    async def visit(server: Server, port: int) -> None:
        kept = await asyncio.open_connection("127.0.0.1", port)
        status, headers, _ = await exchange(*kept, "/judge", asked(0, 0))
        assert status == 200 and "connection" not in headers
        server.handle_exit(signal.SIGTERM, None)
        while not service.gate.draining:
            await asyncio.sleep(0.01)
        late = await asyncio.open_connection("127.0.0.1", port)
        status, headers, _ = await exchange(*late, "/judge", asked(1, 0))
        assert (status, headers["connection"]) == (200, "close")
        with pytest.raises(ConnectionError):
            while True:
                await asyncio.open_connection("127.0.0.1", port)
        status, headers, _ = await exchange(*kept, "/judge", asked(0, 1))
        assert (status, headers["connection"]) == (200, "close")

    with running(service) as (server, port):
        asyncio.run(visit(server, port))


def test_connections_that_stand_in_the_listener_s_queue_at_the_end_are_answered(
    base: Path, adapter: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ServeConfig(adapter=(str(adapter("step_product")),), checkpoint=str(base), drain_s=0.0)
    service = Service(load(find_judges(config.adapter), config, torch.device("cpu")), config)
    text = json.dumps(asked(0, 0))
    request = f"POST /judge HTTP/1.1\r\nhost: x\r\ncontent-length: {len(text)}\r\n"
    request += f"content-type: application/json\r\n\r\n{text}"
    queued: list[socket.socket] = []
    with running(service) as (server, port):
        real = server._stop_listening

        async def with_a_queue(listeners: list[socket.socket]) -> None:
            for _ in range(3):  # the loop, which accepts connections, is busy here
                queued.append(socket.create_connection(("127.0.0.1", port)))
                queued[-1].sendall(request.encode())
            await real(listeners)

        monkeypatch.setattr(server, "_stop_listening", with_a_queue)
    for connection in queued:
        with connection:
            connection.settimeout(10)
            answer = b""
            while part := connection.recv(65536):
                answer += part
            assert answer.startswith(b"HTTP/1.1 200 OK") and b'"r2"' in answer
    assert len(queued) == 3 and service.telemetry.total == 3


def test_a_port_that_is_taken_is_said(base: Path, adapter: Callable[..., Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = ServeConfig(adapter=(str(adapter("step_product")),), checkpoint=str(base), port=port)
        with pytest.raises(
            ValueError, match=f"127.0.0.1:{port} cannot be listened on .*; give another --host or --port"
        ):
            serve(config)


@pytest.mark.slow
def test_the_command_serves_a_minute_at_the_pace_of_bulk_judging_and_ends_with_status_0(
    base: Path, adapter: Callable[..., Path], tmp_path: Path
) -> None:
    flags = [f"--adapter={adapter('step_product')}", f"--checkpoint={base}", "--threads=1"]
    data = write_rows(tmp_path / "rows.jsonl", 20_000)
    bulk = [*flags, f"--data={data}", f"--out={tmp_path / 'judged.jsonl'}"]
    done = subprocess.run(
        [sys.executable, "scripts/judge.py", *bulk], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = re.search(r"([\d,]+) rows in ([\d.]+) s", done.stderr)
    assert found
    pace = int(found[1].replace(",", "")) / float(found[2])

    command = [sys.executable, "scripts/serve.py", *flags, "--port=0"]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert server.stderr
    port = 0
    while not port:
        line = server.stderr.readline()
        assert line, "the service ended"
        if listening := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line):
            port = int(listening[1])
    traffic = asyncio.run(crowd(64, port, lambda *which: asked(*which, 32), answered, 60.0))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        sums = metrics(answer.read().decode())
    threading.Timer(2.0, server.send_signal, (signal.SIGTERM,)).start()
    ending = asyncio.run(crowd(64, port, asked, answered, 30.0))
    assert server.wait(30) == 0
    assert set(traffic.statuses) == set(ending.statuses) == {200}
    # Every request that the service took was answered: its own count, less the asking for metrics, is the clients'.
    stopped = re.search(r"stopped; ([\d,]+) requests were answered", server.stderr.read())
    assert stopped and int(stopped[1].replace(",", "")) - 1 == traffic.statuses[200] + ending.statuses[200]
    assert traffic.lost == 0
    print(f"at the end {ending.lost} connections were reset before they were taken, {ending.refused} refused")
    served = traffic.records / traffic.seconds
    joint = sums["ecomjudge_batch_records_sum"] / sums["ecomjudge_batch_records_count"]
    print(f"{served:.0f} records a second served, {joint:.0f} in a batch; {pace:.0f} in bulk")
    assert served > 0.8 * pace
    assert joint > 32
