"""Between threads and loops: sync wrappers in an async run, and handlers that are called from somewhere else."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError
from contextvars import ContextVar
from typing import Any, TypeVar

from waitpoint import runtime as runtimes
from waitpoint import threads

T = TypeVar("T")


class _Called:
    """What a function in its own thread has called on the loop, so that a cancellation reaches it."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        for task in self.tasks:
            task.cancel()


_called: ContextVar[_Called | None] = ContextVar("called", default=None)


async def in_own_thread(fn: Callable[..., T], *args: Any) -> T:
    """Call a blocking function that waits for the loop: in no pool, which such waits could fill.

    A cancellation is handed on to what it waits for, and then waits for the function itself: what it did is recorded.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    called = _Called()
    context = contextvars.copy_context()
    context.run(_called.set, called)

    def work() -> None:
        try:
            result = context.run(threads.carried, f"Function {getattr(fn, '__name__', fn)!r}", fn, *args)
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits
            loop.call_soon_threadsafe(_failed, done, error)
        else:
            loop.call_soon_threadsafe(_returned, done, result)

    threading.Thread(target=work, name="waitpoint-wrapper", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        called.cancel()
        journal = runtimes.attempt.get()
        if journal is None or journal.sealed:
            raise
        await asyncio.wait([done])
        return done.result()


def _returned(done: asyncio.Future[T], result: T) -> None:
    if not done.done():
        done.set_result(result)


def _failed(done: asyncio.Future[Any], error: BaseException) -> None:
    if not done.done():
        # A future refuses StopIteration; nobody means that by it.
        done.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)


def sync_as_async(handler: Callable[[Any], Awaitable[T]]) -> Callable[[Any], T]:
    """Return a blocking form of an async handler, to be called from another thread than the loop's."""
    loop = asyncio.get_running_loop()

    def blocking(request: Any) -> T:
        async def awaited() -> T:
            called, task = _called.get(), asyncio.current_task()
            if called is None or task is None:
                return await handler(request)
            if called.is_cancelled:
                raise asyncio.CancelledError
            called.tasks.add(task)
            try:
                return await handler(request)
            finally:
                called.tasks.discard(task)

        work: Coroutine[Any, Any, T] = awaited()
        try:
            return asyncio.run_coroutine_threadsafe(work, loop).result()
        except CancelledError:  # that of futures is an Exception, which wrappers handle
            raise asyncio.CancelledError from None

    return blocking


def at_home(handler: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a handler that knows the graph it belongs to in whatever thread it is called: the gate depends on that."""
    home, context = runtimes.current.get(), contextvars.copy_context()

    def called(request: Any) -> T:
        if runtimes.current.get() is home:
            return handler(request)
        return context.copy().run(handler, request)

    return called


def aat_home(handler: Callable[[Any], Awaitable[T]]) -> Callable[[Any], Awaitable[T]]:
    """Do the same for a coroutine function, in whatever loop it is awaited."""
    home, context = runtimes.current.get(), contextvars.copy_context()

    async def called(request: Any) -> T:
        if runtimes.current.get() is home:
            return await handler(request)

        async def awaited() -> T:
            return await handler(request)

        return await asyncio.get_running_loop().create_task(awaited(), context=context.copy())

    return called
