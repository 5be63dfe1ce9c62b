"""The asyncio driver: the same obedience from an event loop. Plain functions run in worker threads."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.engine.commands import TOO_LONG, Cancel, Emit, Moment, Next, Sleep, Start, Steps, Stopped, Store, Tell
from waitpoint.engine.drive import QUEUED_PARTS
from waitpoint.engine.tasks import Outcome, in_context, run_async
from waitpoint.errors import StepTimeoutError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class AsyncParts:
    """Parts that tasks show while they run; may be filled from worker threads and from coroutines.

    A producer in a worker thread waits when it is full; one on the event loop cannot, so it goes over the bound.
    """

    def __init__(self) -> None:
        import asyncio

        self.loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[Any] = asyncio.Queue()
        self.closed = False
        self._coming: deque[Emit] = deque()  # from worker threads, on their way into the queue
        self._is_fetched = False  # the loop was told to fetch them

    def put(self, part: Emit) -> None:
        """Hand over a part; dropped when the consumer has left."""
        import asyncio

        if self.closed:
            return
        try:
            on_loop = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            on_loop = False
        if on_loop:
            self.queue.put_nowait(part)
        elif self.queue.qsize() + len(self._coming) < QUEUED_PARTS:
            self._coming.append(part)
            if not self._is_fetched:
                self._is_fetched = True
                self.loop.call_soon_threadsafe(self._fetch)
        else:
            from concurrent.futures import CancelledError

            try:
                asyncio.run_coroutine_threadsafe(self._put(part), self.loop).result()
            except CancelledError:  # the loop ends, and its consumer with it
                return

    def _fetch(self) -> None:
        self._is_fetched = False  # first: what is put from now on is fetched by the next call at the latest
        while self._coming:
            self.queue.put_nowait(self._coming.popleft())

    async def _put(self, part: Emit) -> None:
        import asyncio

        while self.queue.qsize() >= QUEUED_PARTS and not self.closed:  # noqa: ASYNC110 - only worker threads wait
            await asyncio.sleep(0.005)
        self.queue.put_nowait(part)


async def in_thread(call: Callable[..., T], *args: Any, **options: Any) -> T:
    """Make a call off the event loop."""
    import asyncio

    return await asyncio.to_thread(call, *args, **options)


def drive_async(
    steps: Steps, saver: BaseCheckpointSaver | None, parts: AsyncParts | None = None, at_once: int | None = None
) -> AsyncGenerator[Emit]:
    """Obey the loop to its end, yielding its parts; at most `at_once` tasks of a step run at the same time."""
    return _Driver(steps, saver, parts or AsyncParts(), at_once).run()


class _Driver:
    def __init__(self, steps: Steps, saver: BaseCheckpointSaver | None, parts: AsyncParts, at_once: int | None) -> None:
        import asyncio

        self.places = None if at_once is None else asyncio.Semaphore(at_once)
        self.steps = steps
        self.blocking = saver is not None and saver.blocking
        self.parts = parts
        self.tasks: set[asyncio.Task[None]] = set()
        self.running = 0

    async def run(self) -> AsyncGenerator[Emit]:
        import asyncio

        reply: Any = None
        failure: BaseException | None = None
        try:
            while True:
                try:
                    command = self.steps.send(reply) if failure is None else self.steps.throw(failure)
                except StopIteration:
                    return
                reply, failure = None, None
                try:
                    if isinstance(command, Emit):
                        yield command
                    elif isinstance(command, Next):
                        deadline = None if command.timeout is None else self.parts.loop.time() + command.timeout
                        item = await self._item(deadline)
                        while isinstance(item, Emit):
                            yield item
                            item = await self._item(deadline)
                        self.running -= 1
                        reply = item
                    else:
                        reply = await self._obey(command)
                except (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt) as left:
                    await self._wind_down(left)
                    raise
                except BaseException as error:  # noqa: BLE001 - the loop decides what a store's error means
                    failure = error
        finally:
            self.parts.closed = True

    async def _item(self, deadline: float | None) -> Any:
        if deadline is None:
            return await self.parts.queue.get()
        import asyncio

        try:
            async with asyncio.timeout_at(deadline):
                return await self.parts.queue.get()
        except TimeoutError:
            raise StepTimeoutError(TOO_LONG) from None

    async def _obey(self, command: Any) -> Any:
        if isinstance(command, Store):
            return await self._stored(command)
        if isinstance(command, Start):
            command.scope.loop = self.parts.loop
            context = in_context(command.scope)
            task = self.parts.loop.create_task(self._work(command), context=context)
            self.tasks.add(task)
            self.running += 1
            task.add_done_callback(lambda done: self._ended(done, command))
        elif isinstance(command, Cancel):
            for task in self.tasks:
                task.cancel()
            return self.running
        elif isinstance(command, Sleep):
            import asyncio

            await asyncio.sleep(command.seconds)
        elif isinstance(command, Tell):
            found = command.call(command.event)
            if inspect.isawaitable(found):
                await found
        elif isinstance(command, Moment):
            return await command.awaiting()
        return None

    async def _stored(self, command: Store) -> Any:
        """Call the store off the event loop; a cancellation arrives after the commit, never in it."""
        if not self.blocking:
            return command.call(*command.args)
        import asyncio

        call = asyncio.ensure_future(asyncio.to_thread(command.call, *command.args))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            await asyncio.wait([call])
            raise

    async def _work(self, start: Start) -> None:
        if self.places is None:
            outcome = await run_async(start.calls)
        else:
            async with self.places:
                outcome = await run_async(start.calls)
        self.parts.queue.put_nowait((start.task, outcome))

    def _ended(self, done: asyncio.Task[None], start: Start) -> None:
        """Report a coroutine that was cancelled before its first step: it has said nothing itself."""
        self.tasks.discard(done)
        if done.cancelled():
            import asyncio

            self.parts.queue.put_nowait((start.task, Outcome("stopped", error=asyncio.CancelledError())))

    async def _wind_down(self, left: BaseException) -> None:
        """Let the loop record what has ended; its parts have no reader any more."""
        import asyncio

        self.parts.closed = True
        reply: Any = None
        failure: BaseException | None = Stopped(left)
        while True:
            try:
                command = self.steps.send(reply) if failure is None else self.steps.throw(failure)
            except (Exception, GeneratorExit, asyncio.CancelledError, KeyboardInterrupt):  # noqa: BLE001 - who left
                return  # hears of leaving, no more
            reply, failure = None, None
            try:
                if isinstance(command, Next):
                    reply = await _unmoved(self.parts.queue.get())
                    while isinstance(reply, Emit):
                        reply = await _unmoved(self.parts.queue.get())
                    self.running -= 1
                elif not isinstance(command, Emit):
                    reply = await _unmoved(self._obey(command))
            except Exception as error:  # noqa: BLE001 - as in run()
                failure = error


async def _unmoved(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Await to the end, however often it is cancelled: what is being wound down was cancelled already."""
    import asyncio

    work = asyncio.ensure_future(coroutine)
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            continue
    return work.result()
