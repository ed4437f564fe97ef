"""Questions are answered in batches that grow with the load; nobody waits for company or gets another's answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from judging.answers import Answer
from judging.batching import Batch, Batcher, TooBusy


class Worker:
    """Answers each record with itself; works only while the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.seen: list[tuple[str, list[Any]]] = []

    def __call__(self, judge: str, records: Sequence[Any]) -> list[Answer]:
        self.seen.append((judge, list(records)))
        assert self.gate.wait(10)
        if "broken" in records:
            raise RuntimeError("out of memory")
        return [Answer(p_yes=record) for record in records]


def running(*asked: Any, most: int = 6, waiting: int = 100) -> tuple[Worker, list[Batch], list[Any]]:
    """Ask the first question, then, while it is worked on, the others; what came back, in the order asked."""
    worker, batches = Worker(), list[Batch]()

    async def ask() -> list[Any]:
        batcher = Batcher(worker, most, waiting, batches.append)
        batcher.start()
        worker.gate.clear()
        tasks = [asyncio.create_task(batcher.ask(*asked[0]))]
        while not worker.seen:
            await asyncio.sleep(0.001)
        for question in asked[1:]:
            tasks.append(asyncio.create_task(batcher.ask(*question)))
            await asyncio.sleep(0)
        worker.gate.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await batcher.stop()
        return [one if isinstance(one, Exception) else [answer.p_yes for answer in one] for one in found]

    return worker, batches, asyncio.run(ask())


def test_what_waits_is_judged_together_and_everyone_gets_their_own() -> None:
    worker, batches, found = running(("a", [1]), ("a", [2, 3]), ("a", [4]), ("a", [5, 6, 7]), ("a", [8]))
    assert found == [[1], [2, 3], [4], [5, 6, 7], [8]]
    assert worker.seen == [("a", [1]), ("a", [2, 3, 4, 5, 6, 7]), ("a", [8])]
    assert [(batch.questions, batch.records) for batch in batches] == [(1, 1), (3, 6), (1, 1)]


def test_a_question_is_never_cut_and_may_be_larger_than_a_batch() -> None:
    worker, _, found = running(("a", [1]), ("a", [2, 3, 4, 5, 6]), ("a", [7, 8]), ("a", [9]), ("a", list(range(10))))
    assert [records for _, records in worker.seen] == [[1], [2, 3, 4, 5, 6, 9], [7, 8], list(range(10))]
    assert found[4] == list(range(10))


def test_judges_take_turns_the_oldest_question_first() -> None:
    worker, _, found = running(("a", [1]), ("b", [2]), ("a", [3]), ("b", [4]))
    assert worker.seen == [("a", [1]), ("b", [2, 4]), ("a", [3])]
    assert found == [[1], [2], [3], [4]]


def test_too_many_that_wait_are_refused_and_nothing_is_answered_with_nothing() -> None:
    _, _, found = running(("a", [1]), ("a", [2, 3]), ("a", [4, 5]), ("a", [6]), ("a", []), waiting=3)
    assert [found[0], found[1], found[3], found[4]] == [[1], [2, 3], [6], []]
    assert isinstance(found[2], TooBusy)


def test_a_fault_reaches_those_whose_batch_it_was_and_the_rest_goes_on() -> None:
    _, _, found = running(("a", [1]), ("a", ["broken"]), ("a", [2]), ("b", [3]))
    assert (found[0], found[3]) == ([1], [3])
    assert [str(one) for one in found[1:3]] == ["out of memory"] * 2


def test_what_nobody_waits_for_any_more_is_not_judged() -> None:
    worker = Worker()

    async def ask() -> None:
        batcher = Batcher(worker, 8, 100)
        batcher.start()
        worker.gate.clear()
        first = asyncio.create_task(batcher.ask("a", [1]))
        while not worker.seen:
            await asyncio.sleep(0.001)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(batcher.ask("a", [2]), 0.01)
        last = asyncio.create_task(batcher.ask("a", [3]))
        await asyncio.sleep(0)
        assert batcher.alive and batcher.waiting == 1
        worker.gate.set()
        await asyncio.gather(first, last)
        assert batcher.waiting == 0
        await batcher.stop()
        assert not batcher.alive

    asyncio.run(ask())
    assert [records for _, records in worker.seen] == [[1], [3]]
