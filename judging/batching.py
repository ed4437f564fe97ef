"""Dynamic batches: what waits while the model computes is judged together next, of however many requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from judging.answers import Answer

log = logging.getLogger(__name__)
Work = Callable[[str, Sequence[Any]], list[Answer]]


class TooBusy(Exception):
    """As many records wait as may."""


@dataclass(frozen=True)
class Batch:
    """What was judged together: records of how many questions, and the seconds it took."""

    judge: str
    questions: int
    records: int
    seconds: float


@dataclass(frozen=True)
class _Waiting:
    judge: str
    records: Sequence[Any]
    future: asyncio.Future[list[Answer]]


class Batcher:
    """Takes questions of many and lets one thread work on them, since a model computes one batch at a time.

    Nobody waits for company: a lone question is judged at once, and batches grow with the load.

    Args:
        work: answers records of the judge of that name, in the thread.
        most: records that are worked on together; a question is never cut.
        waiting: records that may wait.
        done: is told of every batch.
    """

    def __init__(self, work: Work, most: int, waiting: int, done: Callable[[Batch], None] = lambda _: None) -> None:
        self._work, self._most, self._limit, self._done = work, most, waiting, done
        self._queue: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "judging")
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Records that wait, and that somebody waits for."""
        return sum(len(one.records) for one in self._queue if not one.future.done())

    @property
    def alive(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin to work, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Let what is being worked on end, and work no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._thread.shutdown()

    async def ask(self, judge: str, records: Sequence[Any]) -> list[Answer]:
        """The answers to records, in their order. Raises TooBusy; and whatever the work raises."""
        if not records:
            return []
        if self.waiting + len(records) > self._limit:
            raise TooBusy
        one = _Waiting(judge, records, asyncio.get_running_loop().create_future())
        self._queue.append(one)
        self._arrived.set()
        return await one.future

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            batch = self._next()
            if not self._queue:
                self._arrived.clear()
            if batch:
                await self._judge(batch)

    def _next(self) -> list[_Waiting]:
        """The oldest question, and further ones to the same judge as far as they fit. What nobody waits for goes."""
        self._queue = deque(one for one in self._queue if not one.future.done())
        batch: list[_Waiting] = []
        rest: deque[_Waiting] = deque()
        room = self._most
        for one in self._queue:
            if batch and (one.judge != batch[0].judge or len(one.records) > room):
                rest.append(one)
                continue
            batch.append(one)
            room -= len(one.records)
        self._queue = rest
        return batch

    async def _judge(self, batch: Sequence[_Waiting]) -> None:
        records = [record for one in batch for record in one.records]
        judge, started = batch[0].judge, time.perf_counter()
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._work, judge, records)
        except Exception as error:
            log.exception("judging %d records failed", len(records))
            for one in batch:
                if not one.future.done():
                    one.future.set_exception(error)
            return
        answers = iter(found)
        for one in batch:
            own = list(islice(answers, len(one.records)))
            if not one.future.done():
                one.future.set_result(own)
        self._done(Batch(judge, len(batch), len(records), time.perf_counter() - started))
