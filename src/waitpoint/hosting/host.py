"""A host: graphs, their threads and their runs in one process, for faces that speak to callers over a network."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from waitpoint import clock, ids
from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadRow, offload
from waitpoint.engine import owner
from waitpoint.engine.runner import Runner
from waitpoint.errors import NotFoundError
from waitpoint.hosting import graphs as served
from waitpoint.hosting.accepting import accepted
from waitpoint.hosting.dispatcher import EmbeddedDispatcher
from waitpoint.hosting.executing import Ended
from waitpoint.hosting.graphs import Graphs
from waitpoint.hosting.hub import Hub
from waitpoint.hosting.journal import Journal
from waitpoint.hosting.reading import follow
from waitpoint.hosting.requests import RunRequest
from waitpoint.ledger.base import ACTIVE, AssistantRow, CancelAction, Ledger, LogEntry, RunRow, Strategy, ThreadFilter

SWEEP_SECONDS = 1.0


class Host:
    """What a server has behind its face. `start` it on an event loop, `stop` it there."""

    def __init__(
        self, graphs: Mapping[str, Runner], saver: BaseCheckpointSaver, ledger: Ledger, store: Any = None
    ) -> None:
        self.saver, self.ledger, self.store = saver, ledger, store
        self.graphs = Graphs(graphs, saver, store)
        self.hub = Hub()
        self.journal = Journal(ledger, self.hub)
        self.dispatcher = EmbeddedDispatcher(self.graphs, ledger, self.journal, ended=self._run_ended)
        self._loops: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to execute runs."""
        await offload(self.ledger, served.add_builtin, self.graphs, self.ledger)
        await self.dispatcher.start()
        self._loops = [asyncio.create_task(self._sweeping()), asyncio.create_task(self._watching())]

    async def stop(self, patience: float = 1.0) -> None:
        """Stop; runs that do not end in `patience` seconds are left for the next start."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self.dispatcher.stop(patience)
        await self.journal.flush()
        self.hub.close()

    # --- runs ---

    async def find_assistant(self, given: str) -> AssistantRow:
        """Return an assistant by its id or its graph's name. Raises `NotFoundError`."""
        found: AssistantRow = await offload(self.ledger, served.find_assistant, self.graphs, self.ledger, given)
        return found

    async def begin(
        self, thread_id: str, assistant: AssistantRow, request: RunRequest, *, by: str | None = None,
        strategy: Strategy = "enqueue", metadata: Mapping[str, Any] | None = None, delay: float = 0.0,
    ) -> RunRow:  # fmt: skip
        """Accept a run: check it, store its answers, store it. Raises what `accepted` does, and `RunActiveError`."""
        at = clock.now()
        run = RunRow(
            ids.checkpoint_id(), thread_id, assistant.graph, assistant.id, "pending", {}, dict(metadata or {}), strategy,
            at, at, at + delay, by=by,
        )  # fmt: skip
        graph, key = self.graphs[assistant.graph], self.graphs.key(assistant.graph, thread_id)

        def stored() -> RunRow:
            active = self.ledger.runs(thread_id=thread_id, status=ACTIVE)
            if not active or request.command is not None:
                run.is_settled, request.extra["answered"] = accepted(graph, key, request, by, run.id)
            request.withdraws = request.withdraws or (bool(active) and strategy in ("interrupt", "rollback"))
            run.request = request.document()
            return self.ledger.add_run(run, key)

        row: RunRow = await offload(self.ledger, stored)
        if strategy in ("interrupt", "rollback"):
            for other in await offload(self.ledger, lambda: self.ledger.runs(thread_id=thread_id, status=ACTIVE)):
                if other.cancel is not None:
                    await self.dispatcher.cancel(other.id)
        self.hub.changed([thread_id])
        self.dispatcher.wake(thread_id)
        return row

    async def cancel(self, run_id: str, action: CancelAction = "interrupt") -> RunRow:
        """Stop a run, and return it once it has stopped. Raises `NotFoundError` for one that is over."""
        before = await offload(self.ledger, self.ledger.run, run_id)
        if before is None or before.status not in ACTIVE:
            raise NotFoundError(f"Run '{run_id}' is not active, so there is nothing to cancel")
        run: RunRow = await offload(self.ledger, self.ledger.cancel_run, run_id, action, clock.now())
        await self.dispatcher.cancel(run_id)
        self.hub.changed([run.thread_id])
        return run

    def follow(
        self, thread_id: str, *, after: int = 0, run_id: str | None = None, silence: float = 5.0
    ) -> AsyncGenerator[LogEntry | None]:
        """Yield the log of a thread; see `reading.follow`."""
        return follow(self.ledger, self.hub, thread_id, after=after, run_id=run_id, silence=silence)

    async def wait_for(self, run: RunRow) -> RunRow:
        """Return a run once it is over."""
        async for _ in self.follow(run.thread_id, run_id=run.id):
            pass
        found: RunRow | None = await offload(self.ledger, self.ledger.run, run.id)
        return run if found is None else found

    async def _run_ended(self, run: RunRow, ended: Ended) -> None:
        """Do what comes after a run."""

    # --- upkeep ---

    async def _sweeping(self) -> None:
        """Run threads that are ready though nobody here asked for it: answered from a terminal, or by a dead process."""
        while True:
            await offload(self.ledger, self._swept)
            await asyncio.sleep(SWEEP_SECONDS)

    def _swept(self) -> None:
        for status in ("ready", "running"):
            for row in self.saver.threads(status=status):
                name = self.graphs.name_of(row.key)
                if name is not None and self._is_left(row):
                    self._adopt(row, name)

    def _is_left(self, row: ThreadRow) -> bool:
        if row.status == "running" and not owner.is_dead(row):
            return False
        seen = self.ledger.thread(row.key.thread_id)
        if seen is None:
            return True
        return not seen.is_active and seen.record.halted != row.fence and seen.record.key in (None, row.key)

    def _adopt(self, row: ThreadRow, name: str) -> None:
        at = clock.now()
        request = RunRequest(extra={"swept": True}).document()
        run = RunRow(
            ids.checkpoint_id(), row.key.thread_id, name, served.builtin_id(name), "pending", request, {}, "reject", at, at,
            at, is_settled=True,
        )  # fmt: skip
        self.ledger.add_run(run, row.key)

    async def _watching(self) -> None:
        """Wake readers of what other processes add to the log."""
        position, _ = await offload(self.ledger, self.ledger.touched, 2**62)
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            position, thread_ids = await offload(self.ledger, self.ledger.touched, position)
            self.hub.changed(thread_ids)

    async def threads(self, wanted: ThreadFilter) -> Any:
        """List threads."""
        return await offload(self.ledger, self.ledger.threads, wanted)


def new_thread_id() -> str:
    """Return an id for a new thread."""
    return str(uuid.uuid4())
