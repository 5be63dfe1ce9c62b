"""The tasks that one body started: they run beside it, and it has ended when they have.

What they ask comes together: a body that pauses at one of them waits until the others have ended too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from waitpoint import runtime, threads
from waitpoint.engine.endings import interrupts_of
from waitpoint.errors import SealedAttemptError
from waitpoint.func.futures import BlockingFuture, LoopFuture
from waitpoint.interrupts import effects
from waitpoint.interrupts.journal import Journal

MAX_THREADS = 32

# How often the event loop goes round before a pause counts: coroutines that a task woke may start others.
ROUNDS = 5


class Pool:
    """The threads of one attempt. `limit` is how many tasks may run at once, None for no limit of the user's."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._executor: ThreadPoolExecutor | None = None

    @property
    def executor(self) -> ThreadPoolExecutor:
        """The threads, made when first needed."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.limit or MAX_THREADS, thread_name_prefix="waitpoint-task")
        return self._executor

    def close(self) -> None:
        """Let the threads go."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)


class Crew:
    """What a body, or a task, started. `strand` is whose: the journal itself for the body."""

    def __init__(self, journal: Journal, strand: Any, pool: Pool) -> None:
        self.journal = journal
        self.strand = strand
        self.pool = pool
        self.members: list[BlockingFuture | LoopFuture] = []
        self.known: list[asyncio.Future[Any]] = []  # from the record
        self.running = 0
        self.is_mixed = False  # some have run at the same time, so their order may be another on the next run
        self.closed = False
        self.places: asyncio.Semaphore | None = None

    @classmethod
    def here(cls, journal: Journal, limit: int | None) -> Crew:
        """Return the crew of the body that runs here."""
        strand = runtime.strand_of(journal) or journal
        with journal.lock:
            if strand.crew is None:
                pool = Pool(limit) if journal.crew is None else journal.crew.pool
                strand.crew = cls(journal, strand, pool)
            found: Crew = strand.crew
            return found

    @property
    def is_outermost(self) -> bool:
        """Whether this is the crew of the attempt's body."""
        return self.strand is self.journal

    @property
    def is_alone(self) -> bool:
        """Whether a call made now comes in the same order on every run."""
        return not self.is_mixed and self.running == 0

    def check_open(self, name: str) -> None:
        """Refuse to start a task when the body has failed."""
        self.journal.check_open(f"start task {name!r}")
        if self.closed:
            raise SealedAttemptError(
                f"Cannot start task {name!r} in node {self.journal.task.node!r}: the body that calls it has failed, and this "
                f"coroutine or thread outlived it; await or join it inside the body"
            )

    # --- starting -----------------------------------------------------------------------------------------------------

    def in_thread(self, strand: Any, work: Callable[[], Any]) -> BlockingFuture:
        """Start a task in a thread."""
        future = BlockingFuture(self, strand, work)
        self._join(future)
        self.pool.executor.submit(future.begin)
        return future

    def on_loop(self, strand: Any, work: Callable[[], Coroutine[Any, Any, Any]], context: Context) -> LoopFuture:
        """Start a task on the event loop that runs here."""
        if self.is_outermost and self.pool.limit is not None:
            # Only the outermost ones take a place: one that waits for its own tasks keeps none from them.
            self.places = self.places or asyncio.Semaphore(self.pool.limit)
            coroutine = _in_place(self.places, work)
        else:
            coroutine = work()
        future = LoopFuture(self, strand, coroutine, asyncio.get_running_loop(), context)
        self._join(future)
        return future

    def recalled(self, result: Callable[[], Any], loop: asyncio.AbstractEventLoop | None) -> Any:
        """Return a future that is done with what is on record."""
        if loop is None:
            future = BlockingFuture(self, None, result)
            future.begin()
            return future
        done = loop.create_future()
        try:
            done.set_result(result())
        except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
            done.set_exception(error)
            self.known.append(done)
        return done

    def _join(self, future: BlockingFuture | LoopFuture) -> None:
        with self.journal.lock:
            self.is_mixed = self.is_mixed or self.running > 0
            self.running += 1
            self.members.append(future)
        future.add_done_callback(self._left)

    def _left(self, _: Any) -> None:
        with self.journal.lock:
            self.running -= 1

    # --- what futures ask ---------------------------------------------------------------------------------------------

    def may_help(self) -> bool:
        """Whether the present thread may run a task that it waits for: not the body's own, where there is a limit."""
        return self.pool.limit is None or not self.is_outermost

    def told(self, future: Any, error: BaseException) -> None:
        """Note that the body was told how a task ended: if it goes on after a pause, it has swallowed it."""
        if interrupts_of(error) is not None and future.strand is not None:
            (runtime.strand_of(self.journal) or self.journal).pauses.append(_place(future))

    # --- the end ------------------------------------------------------------------------------------------------------

    def end(self, failure: BaseException | None) -> BaseException | None:
        """Wait until all have ended; return what the body ends with: its own failure, or a pause that it did not await."""
        stops = self._stops(failure)
        at = 0
        while at < len(self.members):
            member = self.members[at]
            at += 1
            if isinstance(member, BlockingFuture):
                if not stops and self.may_help():
                    member.begin()
                wait([member])
        return self._over(failure)

    async def end_later(self, failure: BaseException | None) -> BaseException | None:
        """Do the same without blocking the event loop; tasks of a body that failed are cancelled."""
        stops = self._stops(failure)
        rounds = 0
        while True:
            pending = [m for m in self.members if isinstance(m, LoopFuture) and not m.done()]
            try:
                if pending:
                    rounds = 0
                    await asyncio.wait(pending)
                elif failure is not None and not stops and rounds < ROUNDS:
                    rounds += 1
                    await asyncio.sleep(0)
                else:
                    break
            except asyncio.CancelledError as cancelled:
                failure, stops = cancelled, self._stops(cancelled)
                if self.journal.sealed:  # nobody waits for this attempt any more
                    return failure
        if any(isinstance(m, BlockingFuture) and not m.done() for m in self.members):
            try:
                return await effects.outlived(partial(copy_context().run, self.end, failure), threads.for_bodies())
            except asyncio.CancelledError as cancelled:
                return cancelled
        return self._over(failure)

    def _stops(self, failure: BaseException | None) -> bool:
        """Cancel what has not ended, if the body failed or was cancelled."""
        if failure is None or interrupts_of(failure) is not None:
            return False
        self.closed = True
        for member in self.members:
            if member.cancel() and isinstance(member, BlockingFuture):
                member.begin()  # says that it is cancelled to whoever waits, without waiting for a thread
        return True

    def _over(self, failure: BaseException | None) -> BaseException | None:
        endings = [(m, m.ending()) for m in self.members]
        self.members = []  # they lead back to this
        for known in self.known:
            if not known.cancelled():
                known.exception()  # so that the loop does not complain of what nobody looked at
        if self.is_outermost:
            self.pool.close()
            self.journal.crew = None
        paused = [(m, e) for m, e in endings if e is not None and interrupts_of(e) is not None]
        if failure is None and paused and not self.strand.pauses:
            asked = [i for _, e in paused for i in interrupts_of(e) or ()]
            failure = self.journal.pause(asked, _place(paused[0][0]))
        if failure is not None and interrupts_of(failure) is not None:
            if paused and not self.strand.pauses:
                self.strand.pauses.append(_place(paused[0][0]))
            # What failed unseen is tried again with the body, rather than raised to it from the record.
            unseen = [e for m, e in endings if isinstance(e, Exception) and not m.is_seen]
            if unseen:
                self.journal.blame(ExceptionGroup("unseen", unseen))
        return failure


async def _in_place(places: asyncio.Semaphore, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async with places:
        return await work()


def _place(future: BlockingFuture | LoopFuture) -> str:
    pauses: list[str] = future.strand.pauses
    return pauses[-1] if pauses else "a task"
