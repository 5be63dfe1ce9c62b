"""Runs of one thread in threads of this process, each behind a gate of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from tests.crash.checks import unread_answers
from tests.crash.gates import Gate
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.testing.faults import FaultySaver

PATIENCE = 10
CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}


class Actor:
    """Somebody who runs graphs on a store that others use too, as a process of its own would."""

    def __init__(self, store: BaseCheckpointSaver, build: Callable[[BaseCheckpointSaver], Any]) -> None:
        self.gate = Gate()
        self.graph = build(FaultySaver(store, self.gate))
        self._pool = ThreadPoolExecutor(1)
        self._run: Future[Any] | None = None
        self._arrived: list[threading.Event] = []
        self._free: list[threading.Event] = []

    def hold(self, *starts: str) -> Actor:
        """Hold the next run at points whose names start so, one after the other."""
        for start in starts:
            arrived, free = threading.Event(), threading.Event()
            self._arrived.append(arrived)
            self._free.append(free)
            self.gate.hold(start, lambda a=arrived, f=free: (a.set(), f.wait(PATIENCE)))
        return self

    def meet(self, start: str, barrier: threading.Barrier) -> Actor:
        """Hold the next run at a point until all others of a barrier are at theirs."""
        self.gate.hold(start, lambda: barrier.wait(PATIENCE))
        return self

    def start(self, given: Any, config: dict[str, Any], **options: Any) -> Actor:
        """Begin a run."""
        self._run = self._pool.submit(self.graph.invoke, given, config, **options)
        return self

    def call(self, function: Callable[..., Any], *args: Any) -> Actor:
        """Begin something else than a run."""
        self._run = self._pool.submit(function, *args)
        return self

    def start_async(self, given: Any, config: dict[str, Any], **options: Any) -> Actor:
        """Begin a run on an event loop of its own."""
        self._run = self._pool.submit(lambda: asyncio.run(self.graph.ainvoke(given, config, **options)))
        return self

    def arrived(self) -> Actor:
        """Wait until the run is held."""
        event = self._arrived.pop(0)
        while not event.wait(0.01):
            assert self._run is not None
            assert not self._run.done(), f"ended before it was held: {self._run.exception() or self._run.result()}"
        return self

    def go(self) -> Actor:
        """Let the held run go on."""
        self._free.pop(0).set()
        return self

    def ends_within(self, seconds: float) -> bool:
        """Whether the run ends in that time."""
        assert self._run is not None
        return bool(wait([self._run], seconds).done)

    def result(self) -> Any:
        """Wait for the end of the run; return its state or raise its error."""
        assert self._run is not None
        return self._run.result(PATIENCE)

    def error(self) -> BaseException | None:
        """Wait for the end of the run; return its error."""
        assert self._run is not None
        return self._run.exception(PATIENCE)

    def close(self) -> None:
        """End the thread of the actor."""
        for free in self._free:
            free.set()
        self._pool.shutdown()


def asked(store: BaseCheckpointSaver) -> dict[str, str]:
    """Return the open questions' ids by node."""
    return {q.node: q.id for q in store.pending(thread_id="t")}


def at_rest(store: BaseCheckpointSaver, status: str) -> None:
    """Check that the thread rests, and that nothing was left unread."""
    (row,) = store.threads(thread_id="t")
    assert (row.status, row.owner) == (status, None)
    assert unread_answers(store, row.key) == []
