"""The drivers: whose end they hand to the loop, and how parts come from tasks to their consumer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from waitpoint.engine import drive
from waitpoint.engine.commands import Cancel, Emit, Next, Start, Steps
from waitpoint.engine.drive_async import AsyncParts
from waitpoint.engine.tasks import Outcome

WAIT = 10


def started(task: Any, calls: Generator[Any, Any, Outcome]) -> Start:
    scope: Any = SimpleNamespace(journal=None, config={})
    return Start(task, scope, calls)


def test_the_end_of_an_abandoned_task_is_not_taken_for_that_of_one_started_later() -> None:
    may_end = threading.Event()
    ends: list[Any] = []

    def late() -> Generator[Any, Any, Outcome]:
        yield from ()
        assert may_end.wait(WAIT)
        return Outcome("done")

    def prompt() -> Generator[Any, Any, Outcome]:
        yield from ()
        return Outcome("done")

    def steps() -> Steps:
        yield started("abandoned", late())
        with pytest.raises(TimeoutError):
            yield Next(timeout=0.0)
        assert (yield Cancel(abandon=True)) == 0
        may_end.set()
        until = time.monotonic() + WAIT
        while driver.ended.empty():
            assert time.monotonic() < until
        yield started("later", prompt())
        yield started("last", prompt())
        for _ in range(2):
            ends.append((yield Next())[0])

    driver = drive._Driver(steps(), None, None)
    assert list(driver.run()) == []
    assert sorted(ends) == ["last", "later"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_defect_in_the_engine_ends_the_run_and_is_not_awaited_forever(count: int) -> None:
    ends = []

    def defective() -> Generator[Any, Any, Outcome]:
        yield from ()
        raise AssertionError("a defect")

    def steps() -> Steps:
        for n in range(count):
            yield started(n, defective())
        for _ in range(count):
            ends.append((yield Next(timeout=WAIT))[1])

    assert list(drive.drive(steps())) == []
    assert [(end.kind, repr(end.error)) for end in ends] == [("failed", "AssertionError('a defect')")] * count


def part(number: Any) -> Emit:
    return Emit((), "custom", number)


def test_a_task_that_shows_much_waits_until_its_consumer_takes_some() -> None:
    parts = drive.Parts()
    many = 4 * drive.QUEUED_PARTS
    producer = threading.Thread(target=lambda: [parts.put(part(n)) for n in range(many)])
    producer.start()
    until = time.monotonic() + WAIT
    while parts.queue.qsize() < drive.QUEUED_PARTS:
        assert time.monotonic() < until
    seen = []
    for _ in range(many):
        seen.append(parts.get(timeout=WAIT).payload)
        assert parts.queue.qsize() <= drive.QUEUED_PARTS
    producer.join(WAIT)
    assert seen == list(range(many))


def test_a_task_does_not_wait_for_a_consumer_who_left() -> None:
    parts = drive.Parts()
    producer = threading.Thread(target=lambda: [parts.put(part(n)) for n in range(2 * drive.QUEUED_PARTS)])
    producer.start()
    parts.closed = True
    producer.join(WAIT)
    assert not producer.is_alive()
    assert parts.queue.qsize() <= drive.QUEUED_PARTS


async def test_parts_come_from_worker_threads_to_an_event_loop_in_order_and_not_too_many() -> None:
    parts, many = AsyncParts(), 4 * drive.QUEUED_PARTS
    most = 0

    def produce(thread: int) -> None:
        for number in range(many):
            parts.put(part((thread, number)))

    producers = [asyncio.create_task(asyncio.to_thread(produce, thread)) for thread in range(3)]
    seen = []
    for _ in range(3 * many):
        seen.append((await asyncio.wait_for(parts.queue.get(), WAIT)).payload)
        most = max(most, parts.queue.qsize())
    await asyncio.gather(*producers)
    assert parts.queue.empty()
    assert most <= drive.QUEUED_PARTS + len(producers)
    for thread in range(3):
        assert [n for of, n in seen if of == thread] == list(range(many))
