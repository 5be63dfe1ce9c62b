"""What calling a task gives: a future, to be waited for in a thread or awaited on an event loop.

Rule: nobody waits for a task that has not begun while it could run it, so a pool of any size serves tasks in tasks.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextvars import Context
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class TaskFuture(Protocol[T_co]):
    """A call of a task. On an event loop it is an `asyncio.Future`, in a thread a `concurrent.futures.Future`."""

    def result(self, timeout: float | None = None) -> T_co:
        """Return the result, or raise the task's exception; in a thread this waits for it, on a loop await it first."""

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the task's exception, None if it has a result."""

    def done(self) -> bool:
        """Whether it has ended, or was cancelled."""

    def cancelled(self) -> bool:
        """Whether it was cancelled."""

    def cancel(self) -> bool:
        """Cancel it: in a thread only before it has begun."""

    def add_done_callback(self, fn: Callable[[Any], Any], /) -> None:
        """Call a function with the future when it has ended."""

    def __await__(self) -> Generator[Any, None, T_co]:
        """Wait for the result without blocking the event loop."""


class Consumer(Protocol):
    """Who started the task."""

    def may_help(self) -> bool:
        """Whether the present thread may run a task that it waits for."""

    def told(self, future: Any, error: BaseException) -> None:
        """Note that the body was told how a task ended."""


class BlockingFuture(Future[Any]):
    """A call of a task that runs in a thread: one of the pool, or that of who waits for it first."""

    is_seen = False  # whether anybody has looked at its exception

    def __init__(self, owner: Consumer, strand: Any, work: Callable[[], Any]) -> None:
        super().__init__()
        self.strand = strand
        self._owner = owner
        self._work: Any = work  # let go when it is done: it leads back to this future
        self._begun = threading.Lock()

    def begin(self) -> None:
        """Run the task in this thread, unless it has begun or was cancelled."""
        if not self._begun.acquire(blocking=False) or not self.set_running_or_notify_cancel():
            return
        work, self._work = self._work, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            self.set_exception(error)
        else:
            self.set_result(result)

    def result(self, timeout: float | None = None) -> Any:
        """Return the result, or raise the task's exception; a task that has not begun runs here and now."""
        if timeout is None and self._owner.may_help():
            self.begin()
        try:
            return super().result(timeout)
        except BaseException as error:
            if self.done():  # else it is the wait that ended, not the task
                self.is_seen = True
                self._owner.told(self, error)
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the task's exception, None if it has a result."""
        if timeout is None and self._owner.may_help():
            self.begin()
        found = super().exception(timeout)
        self.is_seen = True
        return found

    def ending(self) -> BaseException | None:
        """Return what a task that is done raised, without counting as having looked."""
        return None if self.cancelled() else super().exception()

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the result without blocking the event loop."""
        return asyncio.wrap_future(self).__await__()


class LoopFuture(asyncio.Task[Any]):
    """A call of a task that runs on the event loop."""

    is_seen = False

    def __init__(
        self,
        owner: Consumer,
        strand: Any,
        work: Coroutine[Any, Any, Any],
        loop: asyncio.AbstractEventLoop,
        context: Context,
    ) -> None:
        super().__init__(work, loop=loop, context=context)
        self.strand = strand
        self._owner = owner

    def result(self) -> Any:
        """Return the result of a task that is done, or raise its exception."""
        try:
            return super().result()
        except BaseException as error:
            if self.done():
                self.is_seen = True
                self._owner.told(self, error)
            raise

    def exception(self) -> BaseException | None:
        """Return the exception of a task that is done, None if it has a result."""
        self.is_seen = True
        return super().exception()

    def ending(self) -> BaseException | None:
        """Return what a task that is done raised, without counting as having looked."""
        return None if self.cancelled() else super().exception()

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the result."""
        if not self.done():
            self._asyncio_future_blocking = True
            yield self
        return self.result()
