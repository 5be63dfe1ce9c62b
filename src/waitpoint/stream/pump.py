"""What drives a run when its consumer wants more: one part at a time, given to the mux as events."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Generator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from waitpoint.stream.mux import Mux
from waitpoint.stream.translate import Translator

if TYPE_CHECKING:
    import asyncio

Part = tuple[tuple[str, ...], str, Any]  # namespace, mode, payload


class Pump:
    """Drives a run in the thread of whoever consumes it; consumers in several threads take turns."""

    def __init__(self, mux: Mux, parts: Generator[Part]) -> None:
        self._mux, self._parts = mux, parts
        self._translator = Translator()
        self._lock = threading.RLock()
        self._is_pulling = self._is_stopped = False
        mux.pump, mux.abort = self.pump, self.abort

    def pump(self) -> bool:
        """Take the next part; False if there is none, and the mux has ended."""
        with self._lock:
            if self._is_stopped:
                self.abort()
            if self._mux.ended or self._is_pulling:  # a transformer that reads gets what is there
                return False
            self._is_pulling = True
            try:
                for event in self._translator.events(*next(self._parts)):
                    self._mux.push(event)
            except StopIteration:
                self._mux.end()
            except BaseException as error:
                self._parts.close()
                self._mux.end(error)  # raised by each way to consume the run
                if not isinstance(error, Exception):
                    raise
            finally:
                self._is_pulling = False
            if self._is_stopped:
                self.abort()
            return not self._mux.ended

    def abort(self) -> None:
        """Stop the run; while a part is being taken in, as soon as it is: a node that aborts its own run waits for nobody."""
        self._is_stopped = True
        if not self._lock.acquire(blocking=False):
            return
        try:
            if not self._is_pulling:  # else called by a transformer
                self._parts.close()
                self._mux.end()
        finally:
            self._lock.release()


class AsyncPump:
    """Drives a run on an event loop, in a task of its own: a consumer that is cancelled does not cancel the run."""

    def __init__(self, mux: Mux, parts: AsyncGenerator[Part]) -> None:
        self._mux, self._parts = mux, parts
        self._translator = Translator()
        self._context = copy_context()
        self._pull: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._is_stopped = False
        mux.pump, mux.abort = self.pump, self.abort

    async def pump(self) -> bool:
        """Take the next part, or wait for the one that another consumer is waiting for; False if there is none."""
        import asyncio

        if self._mux.ended:
            return False
        if self._closing is not None:
            await asyncio.shield(self._closing)
            return False
        if self._pull is not None and self._pull is asyncio.current_task():
            return False  # a transformer that reads gets what is there
        if self._pull is None:
            self._pull = asyncio.get_running_loop().create_task(self._pulled(), context=self._context)
        pull, consumer = self._pull, asyncio.current_task()
        try:
            await asyncio.shield(pull)
        except asyncio.CancelledError:
            if not (self._is_stopped and pull.cancelled()) or (consumer is not None and consumer.cancelling()):
                raise
            return False  # the run was stopped, not this consumer
        return not self._mux.ended

    async def _pulled(self) -> None:
        import asyncio

        try:
            for event in self._translator.events(*await anext(self._parts)):
                await self._mux.apush(event)
        except StopAsyncIteration:
            await self._mux.aend()
        except asyncio.CancelledError as error:
            await self._mux.aend(None if self._is_stopped else error)
            if not self._is_stopped:
                raise
        except BaseException as error:
            await self._parts.aclose()
            await self._mux.aend(error)  # raised by each way to consume the run
            if not isinstance(error, Exception):
                raise
        finally:
            self._pull = None
        if self._is_stopped and self._closing is None:
            await self._closed()

    async def abort(self) -> None:
        """Stop the run and cancel what runs in it."""
        import asyncio

        self._is_stopped = self._mux.is_aborted = True
        if self._pull is not None and self._pull is asyncio.current_task():
            return  # called by a transformer: stopped when the part is taken in
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._closed())
        await asyncio.shield(self._closing)

    async def _closed(self) -> None:
        import asyncio

        if self._pull is not None:
            self._pull.cancel()
            await asyncio.wait([self._pull])
        await self._parts.aclose()
        await self._mux.aend()
