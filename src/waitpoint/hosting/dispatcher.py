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
from waitpoint.ledger.base import Ledger, RunRow

_log = logging.getLogger("waitpoint.runs")

_numbers = itertools.count(1)
_living: set[str] = set()  # the dispatchers at work in this process

LOOK_SECONDS = 1.0  # how often to look for what nobody said is due
CANCEL_LOOK_SECONDS = 0.5  # how often to look whether another process cancelled what runs here


class Dispatcher(Protocol):
    """Gets due runs executed."""

    def wake(self, thread_id: str) -> None:
        """Say that a run of this thread is due."""

    async def start(self) -> None:
        """Begin to execute."""

    async def stop(self, patience: float) -> None:
        """Stop executing; runs that do not end in `patience` seconds are given back."""

    async def cancel(self, run_id: str) -> None:
        """Stop a run if it is executed here, and return once it has ended."""


class EmbeddedDispatcher:
    """Executes runs as tasks of this process's event loop."""

    def __init__(
        self, graphs: Graphs, ledger: Ledger, journal: Journal, *, at_once: int = 64,
        ended: Callable[[RunRow, Ended], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        self._graphs, self._ledger, self._journal, self._at_once = graphs, ledger, journal, at_once
        self._ended = ended
        self._owner = f"{owner.me()}/server-{next(_numbers)}"
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._due = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._is_stopping = False

    @property
    def running(self) -> list[str]:
        """The ids of the runs that are executed here."""
        return list(self._tasks)

    def wake(self, thread_id: str) -> None:  # noqa: ARG002 - the queue is the ledger; a thread's name is not needed
        self._due.set()

    async def start(self) -> None:
        _living.add(self._owner)
        await self.recover()
        self._loops = [asyncio.create_task(self._claiming()), asyncio.create_task(self._upkeep())]

    async def stop(self, patience: float) -> None:
        self._is_stopping = True
        await asyncio.gather(*(stopped(loop) for loop in self._loops))
        if self._tasks and patience > 0:
            await asyncio.wait(self._tasks.values(), timeout=patience)
        await asyncio.gather(*(stopped(task) for task in list(self._tasks.values())))
        _living.discard(self._owner)

    async def cancel(self, run_id: str) -> None:
        task = self._tasks.get(run_id)
        if task is not None:
            await stopped(task)

    async def recover(self) -> None:
        """Make runs pending again whose process died."""
        for run in await offload(self._ledger, self._ledger.running):
            if run.id not in self._tasks and run.owner is not None and _is_dead(run):
                _log.warning("run taken back from a dead process", extra={"run_id": run.id, "thread_id": run.thread_id})
                await offload(self._ledger, self._ledger.give_back_run, run.id, run.owner, clock.now())

    async def _claiming(self) -> None:
        names = list(self._graphs)
        while True:
            self._due.clear()
            while len(self._tasks) < self._at_once:
                at = clock.now()
                lease = at + owner.LEASE_SECONDS
                run = await offload(self._ledger, self._ledger.claim_run, self._owner, lease, at, names)
                if run is None:
                    break
                task = asyncio.create_task(self._executed(run), name=f"run {run.id}")
                self._tasks[run.id] = task
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), LOOK_SECONDS)

    async def _executed(self, run: RunRow) -> None:
        execution = Execution(self._graphs, self._ledger, self._journal, run)
        try:
            try:
                ended = await execution.execute()
            except asyncio.CancelledError:
                now = await offload(self._ledger, self._ledger.run, run.id)
                if now is None or now.cancel is None:
                    await offload(self._ledger, self._ledger.give_back_run, run.id, self._owner, clock.now())
                    return
                run.cancel = now.cancel
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
            self._due.set()

    async def _upkeep(self) -> None:
        """Keep the leases of what runs here, see what others cancelled, and take over from the dead."""
        beats = 0.0
        while True:
            await asyncio.sleep(CANCEL_LOOK_SECONDS)
            for run_id in self.running:
                run = await offload(self._ledger, self._ledger.run, run_id)
                if run is None or run.cancel is not None:
                    self._tasks[run_id].cancel()
            beats += CANCEL_LOOK_SECONDS
            if beats >= owner.BEAT_SECONDS:
                beats = 0.0
                await offload(self._ledger, self._ledger.beat, self._owner, clock.now() + owner.LEASE_SECONDS)
                await self.recover()


def _is_dead(run: RunRow) -> bool:
    return run.owner is None or owner.is_gone(run.owner, run.lease_until, _living)
