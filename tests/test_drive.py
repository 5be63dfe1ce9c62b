"""The blocking driver: whose end it hands to the loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from waitpoint.engine import drive
from waitpoint.engine.commands import Cancel, Next, Start, Steps
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
