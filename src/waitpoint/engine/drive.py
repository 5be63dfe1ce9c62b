"""The blocking driver: obeys the loop in the caller's thread, and runs tasks there or in a pool.

A single due task runs in the caller's thread when nothing inside it must be shown live; several run in a pool of this
run's own, so a parent that waits for a nested graph never holds a place that the nested graph needs.
"""

from __future__ import annotations

import inspect
import queue
import threading
import time
from collections.abc import Generator
from typing import Any

from waitpoint.engine.commands import TOO_LONG, Cancel, Emit, Moment, Next, Sleep, Start, Steps, Stopped, Store, Tell
from waitpoint.engine.tasks import in_context, run_blocking
from waitpoint.errors import StepTimeoutError

MAX_THREADS = 32
QUEUED_PARTS = 256


class Parts:
    """Parts that tasks show while they run, on their way to the consumer; producers wait when it is full."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.closed = False
        self._has_room = threading.Event()
        self._has_room.set()

    def put(self, item: Any) -> None:
        """Hand over a part, which is dropped when the consumer has left; or how a task ended, which never waits."""
        if isinstance(item, Emit):
            while self.queue.qsize() >= QUEUED_PARTS and not self.closed:
                self._has_room.clear()
                if self.queue.qsize() >= QUEUED_PARTS:  # otherwise some were taken before the consumer could see it
                    self._has_room.wait(timeout=0.1)
            if self.closed:
                return
        self.queue.put(item)

    def get(self, timeout: float | None = None) -> Any:
        """Take what comes next. Raises `queue.Empty`."""
        item = self.queue.get(timeout=timeout)
        if not self._has_room.is_set() and self.queue.qsize() <= QUEUED_PARTS // 2:
            self._has_room.set()
        return item


def drive(steps: Steps, parts: Parts | None = None, threads: int | None = None) -> Generator[Emit]:
    """Obey the loop to its end, yielding its parts. `parts` (if given) brings what tasks show live."""
    return _Driver(steps, parts, threads).run()


class _Driver:
    def __init__(self, steps: Steps, parts: Parts | None, threads: int | None) -> None:
        self.steps = steps
        self.parts = parts
        self.threads = threads
        self.waiting: list[Start] = []  # asked to start, not yet running
        self.running = 0
        self.abandoned = (
            0  # how often tasks were abandoned; what those still put into the queue is not awaited any more
        )
        self.ended: Parts | queue.SimpleQueue[Any] = parts if parts is not None else queue.SimpleQueue()
        self.pool: Any = None

    def run(self) -> Generator[Emit]:
        command, reply, failure = None, None, None
        try:
            while True:
                try:
                    command = self.steps.send(reply) if failure is None else self.steps.throw(failure)
                except StopIteration:
                    return
                reply, failure = None, None
                try:
                    if isinstance(command, Store):
                        reply = command.call(*command.args)
                    elif isinstance(command, Next):
                        reply = yield from self._next(command.timeout)
                    elif isinstance(command, Emit):
                        yield command
                    else:
                        reply = self._obey(command)
                except (GeneratorExit, KeyboardInterrupt) as left:
                    self._wind_down(left)
                    raise
                except BaseException as error:  # noqa: BLE001 - the loop decides what a store's error means
                    failure = error
        finally:
            if self.parts is not None:
                self.parts.closed = True
            if self.pool is not None:
                self.pool.shutdown(wait=False)

    def _obey(self, command: Any) -> Any:
        if isinstance(command, Store):
            return command.call(*command.args)
        if isinstance(command, Start):
            self.waiting.append(command)
        elif isinstance(command, Cancel):
            return self._cancel(abandon=command.abandon)
        elif isinstance(command, Sleep):
            threading.Event().wait(command.seconds)
        elif isinstance(command, Tell):
            _told(command)
        elif isinstance(command, Moment):
            return command.blocking()
        return None

    def _next(self, timeout: float | None) -> Generator[Emit, None, Any]:
        if self.parts is None and self.running == 0 and len(self.waiting) == 1 and timeout is None:
            return self._inline(self.waiting.pop())
        self._launch()
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                item = self.ended.get(timeout=None if ends is None else max(0.0, ends - time.monotonic()))
            except queue.Empty:
                raise StepTimeoutError(TOO_LONG) from None
            if isinstance(item, Emit):
                yield item
            elif item[0] == self.abandoned:
                self.running -= 1
                return item[1:]

    def _inline(self, start: Start) -> Any:
        return start.task, in_context(start.scope).run(run_blocking, start.calls)

    def _launch(self) -> None:
        if not self.waiting:
            return
        if self.pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self.pool = ThreadPoolExecutor(self.threads or MAX_THREADS, thread_name_prefix="waitpoint")
        for start in self.waiting:
            self.running += 1
            self.pool.submit(in_context(start.scope).run, self._work, start, self.abandoned)
        self.waiting = []

    def _work(self, start: Start, abandoned: int) -> None:
        outcome = run_blocking(start.calls)
        self.ended.put((abandoned, start.task, outcome))

    def _cancel(self, *, abandon: bool) -> int:
        self.waiting = []
        if abandon:
            self.running = 0
            self.abandoned += 1
        return self.running

    def _wind_down(self, left: BaseException) -> None:
        """Let the loop record what has ended; its parts have no reader any more."""
        if self.parts is not None:
            self.parts.closed = True
        reply: Any = None
        failure: BaseException | None = Stopped(left)
        while True:
            try:
                command = self.steps.send(reply) if failure is None else self.steps.throw(failure)
            except (Exception, GeneratorExit, KeyboardInterrupt):  # noqa: BLE001 - who left hears of leaving, no more
                return
            reply, failure = None, None
            try:
                if isinstance(command, Next):
                    reply = self._drain_next()
                elif not isinstance(command, Emit):
                    reply = self._obey(command)
            except Exception as error:  # noqa: BLE001 - as in run()
                failure = error

    def _drain_next(self) -> Any:
        while True:
            item = self.ended.get()
            if not isinstance(item, Emit) and item[0] == self.abandoned:
                self.running -= 1
                return item[1:]


def _told(command: Tell) -> None:
    """Call, and run what is awaitable on a loop of its own: this thread may be another loop's."""
    found = command.call(command.event)
    if not inspect.isawaitable(found):
        return
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def awaited() -> None:
        await found

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(awaited())).result()
