"""Who runs what is due: the seam between accepting runs and executing them.

Embedded, the statuses in the store are the queue: a wake-up writes nothing, and a missed one costs a second. A distributed
dispatcher puts a job on a queue in the same transaction that makes a run due, and its workers execute the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from waitpoint import clock
from waitpoint.checkpoint.base import offload
from waitpoint.engine import owner
from waitpoint.hosting.executing import Ended, Execution, stopped
from waitpoint.hosting.graphs import Graphs
from waitpoint.hosting.journal import Journal
from waitpoint.hosting.loops import again
from waitpoint.ledger.base import Ledger, RunRow

_log = logging.getLogger("waitpoint.runs")

_numbers = itertools.count(1)
_living: set[str] = set()  # the dispatchers at work in this process

LOOK_SECONDS = 1.0  # how often to look for what nobody said is due
STOP_SECONDS = 1.0  # how long a stopped run may take to end when its server stops
CANCEL_LOOK_SECONDS = 0.5  # how often to look whether another process cancelled what runs here


class Dispatcher(Protocol):
    """Gets due runs executed."""

    def wake(self, thread_id: str) -> None:
        """Say that a run of this thread is due."""

    async def start(self) -> None:
        """Begin to execute."""

    async def stop(self, patience: float) -> None:
        """Stop executing; runs that do not end in `patience` seconds are given back."""

    def interrupt(self, run_id: str) -> None:
        """Have a run stopped whose row says so, if it is executed here."""


class EmbeddedDispatcher:
    """Executes runs as tasks of this process's event loop."""

    def __init__(
        self, graphs: Graphs, ledger: Ledger, journal: Journal, *, at_once: int = 64,
        ended: Callable[[RunRow, Ended], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        self._graphs, self._ledger, self._journal, self._at_once = graphs, ledger, journal, at_once
        self._ended = ended
        self._owner = f"{owner.me()}/server-{next(_numbers)}"
        self._tasks: dict[str, asyncio.Task[None]] = {}  # what becomes of a run, to its end; never cancelled
        self._work: dict[str, asyncio.Task[Ended]] = {}  # the run of its graph, which may be
        self._due = asyncio.Event()
        self._due.set()
        self._looks = 0
        self._loops: list[asyncio.Task[None]] = []
        self._is_stopping = False

    @property
    def running(self) -> list[str]:
        """The ids of the runs that are executed here."""
        return list(self._tasks)

    @property
    def is_alive(self) -> bool:
        """Whether due runs are being looked for."""
        return bool(self._loops) and not any(loop.done() for loop in self._loops)

    def wake(self, thread_id: str) -> None:  # noqa: ARG002 - the queue is the ledger; a thread's name is not needed
        self._due.set()

    async def start(self) -> None:
        _living.add(self._owner)
        await self.recover()
        self._loops = [
            asyncio.create_task(again(self._claim, 0.0, "claiming runs")),
            asyncio.create_task(again(self._keep_up, CANCEL_LOOK_SECONDS, "the upkeep of runs")),
        ]

    async def stop(self, patience: float) -> None:
        self._is_stopping = True
        await asyncio.gather(*(stopped(loop) for loop in self._loops))
        if self._tasks and patience > 0:
            await asyncio.wait(self._tasks.values(), timeout=patience)
        for run_id in self.running:
            self.interrupt(run_id)
        if self._tasks:  # a plain function cannot be stopped: its run is taken over once this process is gone
            await asyncio.wait(self._tasks.values(), timeout=STOP_SECONDS)
        _living.discard(self._owner)

    def interrupt(self, run_id: str) -> None:
        work = self._work.get(run_id)
        if work is not None and not work.cancelling():
            work.cancel()

    async def recover(self) -> None:
        """Make runs pending again whose process died."""
        for run in await offload(self._ledger, self._ledger.running):
            if run.id not in self._tasks and run.owner is not None and _is_dead(run):
                _log.warning("run taken back from a dead process", extra={"run_id": run.id, "thread_id": run.thread_id})
                await offload(self._ledger, self._ledger.give_back_run, run.id, run.owner, clock.now())

    async def _claim(self) -> None:
        """Start what is due, then wait until something may be."""
        names = list(self._graphs)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._due.wait(), LOOK_SECONDS)
        self._due.clear()
        while len(self._tasks) < self._at_once:
            at = clock.now()
            lease = at + owner.LEASE_SECONDS
            run = await offload(self._ledger, self._ledger.claim_run, self._owner, lease, at, names)
            if run is None:
                return
            execution = Execution(self._graphs, self._ledger, self._journal, run)
            if run.cancel is None:
                self._work[run.id] = asyncio.create_task(execution.execute(), name=f"run {run.id}")
            self._tasks[run.id] = asyncio.create_task(self._executed(run, execution), name=f"end of run {run.id}")

    async def _executed(self, run: RunRow, execution: Execution) -> None:
        try:
            ended = await self._worked(run)
            now = await offload(self._ledger, self._ledger.run, run.id)
            run.cancel = None if now is None else now.cancel
            if ended is None and run.cancel is None:
                await offload(self._ledger, self._ledger.give_back_run, run.id, self._owner, clock.now())
                return
            if ended is None or run.cancel == "rollback":  # which undoes a run that was faster, too
                ended = await execution.cancelled()
            await execution.close(ended, self._owner)
            if self._ended is not None:
                await self._ended(run, ended)
        except Exception:  # noqa: BLE001 - the store may be away; the run is tried again
            _log.exception("run could not be brought to an end", extra={"run_id": run.id, "thread_id": run.thread_id})
            await asyncio.sleep(LOOK_SECONDS)
            await offload(self._ledger, self._ledger.give_back_run, run.id, self._owner, clock.now())
        finally:
            self._tasks.pop(run.id, None)
            self._work.pop(run.id, None)
            self._due.set()

    async def _worked(self, run: RunRow) -> Ended | None:
        """Return how the run of the graph ended, None if it was stopped."""
        work = self._work.get(run.id)
        if work is None:
            return None
        await asyncio.wait([work])
        return None if work.cancelled() else work.result()

    async def _keep_up(self) -> None:
        """Keep the leases of what runs here, see what others cancelled, and take over from the dead."""
        mine = self.running
        if mine:
            active = {run.id: run for run in await offload(self._ledger, self._ledger.running)}
            for run_id in mine:
                if run_id not in active or active[run_id].cancel is not None:
                    self.interrupt(run_id)
        self._looks += 1
        if self._looks * CANCEL_LOOK_SECONDS >= owner.BEAT_SECONDS:
            self._looks = 0
            await offload(self._ledger, self._ledger.beat, self._owner, clock.now() + owner.LEASE_SECONDS)
            await self.recover()


def _is_dead(run: RunRow) -> bool:
    return run.owner is None or owner.is_gone(run.owner, run.lease_until, _living)
