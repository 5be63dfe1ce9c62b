"""Sync wrappers in an async run: they get a thread of their own, and their handler goes back to the loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def in_own_thread(fn: Callable[..., T], *args: Any) -> T:
    """Call a blocking function that waits for the loop: in no pool, which such waits could fill."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(fn, *args)
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits
            loop.call_soon_threadsafe(_failed, done, error)
        else:
            loop.call_soon_threadsafe(_returned, done, result)

    threading.Thread(target=work, name="waitpoint-wrapper", daemon=True).start()
    return await done


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
            return await handler(request)

        work: Coroutine[Any, Any, T] = awaited()
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    return blocking
