"""A host: graphs, their threads and their runs in one process, for faces that speak to callers over a network."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from waitpoint import clock, ids
from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey, ThreadRow, offload
from waitpoint.engine import answers, owner
from waitpoint.engine.runner import Runner
from waitpoint.errors import NotFoundError
from waitpoint.hosting import graphs as served
from waitpoint.hosting import recording
from waitpoint.hosting.accepting import accepted
from waitpoint.hosting.dispatcher import EmbeddedDispatcher
from waitpoint.hosting.executing import Ended
from waitpoint.hosting.graphs import Graphs
from waitpoint.hosting.hub import Hub
from waitpoint.hosting.journal import Journal
from waitpoint.hosting.loops import again
from waitpoint.hosting.reading import follow
from waitpoint.hosting.requests import RunRequest
from waitpoint.ledger.base import (
    ACTIVE,
    AssistantRow,
    CancelAction,
    Ledger,
    LogEntry,
    RunActiveError,
    RunRow,
    Strategy,
    ThreadFilter,
    ThreadRecord,
    TokenUsedError,
    run_active,
)
from waitpoint.records import Answer

SWEEP_SECONDS = 1.0
TIDY_SECONDS = 60.0
KEEP_LOG_SECONDS = 24 * 3600.0  # how long the bulk of a run's log is kept after its end
DISCARD = "discard"  # what becomes of a thread that was made for one run


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
        self.on_ended: list[Callable[[RunRow, Ended], None]] = []  # who is told of each run that ended here
        self.keep_log_seconds = KEEP_LOG_SECONDS
        self._loops: list[asyncio.Task[None]] = []
        self._tidy_at = 0.0
        self._left: dict[ThreadKey, tuple[int, int]] = {}  # threads that nobody ran at the last look
        self._position = 0  # how far of the log was watched

    async def start(self) -> None:
        """Begin to execute runs."""
        await offload(self.ledger, served.add_builtin, self.graphs, self.ledger)
        await self.dispatcher.start()
        self._position, _ = await offload(self.ledger, self.ledger.touched, 2**62)
        self._loops = [
            asyncio.create_task(again(self._sweep, SWEEP_SECONDS, "the sweep of threads")),
            asyncio.create_task(again(self._watch, SWEEP_SECONDS, "watching the log")),
        ]

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
        strategy: Strategy = "enqueue", metadata: Mapping[str, Any] | None = None,
    ) -> RunRow:  # fmt: skip
        """Accept a run: check it, store its answers, store it.

        The very same request with the same token from the same caller is the same run, which is returned. Raises what
        `accepted` does, `RunActiveError` and `TokenUsedError`.
        """
        at = clock.now()
        run = RunRow(
            ids.checkpoint_id(), thread_id, assistant.graph, assistant.id, "pending", {}, dict(metadata or {}), strategy,
            at, at, at + request.delay, by=by, token=request.token, hook_at=at if request.webhook else None,
        )  # fmt: skip
        row: RunRow = await offload(self.ledger, self._stored, run, request)
        if strategy in ("interrupt", "rollback"):
            for other in await offload(self.ledger, lambda: self.ledger.runs(thread_id=thread_id, status=ACTIVE)):
                if other.cancel is not None:
                    self.dispatcher.interrupt(other.id)
        self.hub.changed([thread_id])
        self.dispatcher.wake(thread_id)
        return row

    def _stored(self, run: RunRow, request: RunRequest) -> RunRow:
        """Check a run, store its answers, store it; or return the one that was stored under its token."""
        request.extra["digest"] = digest = request.digest()
        if run.token is not None:
            there = self.ledger.run_of_token(run.thread_id, run.token)
            if there is not None:
                return _same(there, run, digest)
        active = self.ledger.runs(thread_id=run.thread_id, status=ACTIVE)
        if active and run.strategy == "reject":
            raise run_active(run.thread_id, [each.id for each in active])
        key = self.graphs.key(run.graph, run.thread_id)
        if not active or request.command is not None:
            found = accepted(self.graphs[run.graph], key, request, run.by, run.id)
            run.is_settled, request.extra["answered"] = found
            if found.answered and run.strategy == "reject":
                run.strategy = "enqueue"  # the answers are stored, so somebody has to act on them
        request.withdraws = request.withdraws or (bool(active) and run.strategy in ("interrupt", "rollback"))
        run.request = request.document()
        return _same(self.ledger.add_run(run, key), run, digest)

    async def cancel(self, run_id: str, action: CancelAction = "interrupt", *, wait: bool = True) -> RunRow:
        """Stop a run, and return it once it has stopped, or with `wait=False` once it is told to.

        Raises `NotFoundError` for one that is over.
        """
        before: RunRow | None = await offload(self.ledger, self.ledger.run, run_id)
        if before is None or before.status not in ACTIVE:
            raise NotFoundError(f"Run '{run_id}' is not active, so there is nothing to cancel")
        await offload(self.ledger, self.ledger.cancel_run, run_id, action, clock.now())
        self.dispatcher.interrupt(run_id)
        self.hub.changed([before.thread_id])
        return await self.wait_for(before) if wait else before

    async def answer(self, question_id: str, answer: Answer) -> ThreadRow:
        """Store an answer to a question of any thread, and run that if its graph is served here. Raises what answers raise."""
        thread: ThreadRow = await offload(self.saver, answers.answer, self.saver, question_id, answer)
        name = self.graphs.name_of(thread.key)
        if name is not None:
            await offload(self.ledger, self._go_on, thread, name, [question_id])
        self.hub.changed([thread.key.thread_id])
        self.dispatcher.wake(thread.key.thread_id)
        return thread

    async def delete_thread(self, thread_id: str) -> None:
        """Stop what runs in a thread, and remove every row of it."""
        for run in await offload(self.ledger, lambda: self.ledger.runs(thread_id=thread_id, status=ACTIVE)):
            with contextlib.suppress(NotFoundError):  # it ended in between
                await self.cancel(run.id)
        await offload(self.saver, self.saver.delete_thread, thread_id)
        await offload(self.ledger, self.ledger.forget_thread, thread_id)
        self.hub.changed([thread_id])

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
        for heard in self.on_ended:
            heard(run, ended)

    # --- upkeep ---

    async def _sweep(self) -> None:
        """Run threads that are ready though nobody here asked for it: answered from a terminal, or by a dead process."""
        await offload(self.ledger, self._swept)
        if clock.now() >= self._tidy_at:
            self._tidy_at = clock.now() + TIDY_SECONDS
            await self.tidy()

    async def tidy(self) -> None:
        """Take away what is no longer kept: the bulk of old logs, and threads whose time to live is over."""
        before = clock.now() - self.keep_log_seconds
        while await offload(self.ledger, self.ledger.prune_log, before, recording.BULK):
            pass  # each is a short transaction, so others write in between
        for record in await offload(self.ledger, self.ledger.expired, clock.now()):
            await offload(self.ledger, self._expire, record)

    def _expire(self, record: ThreadRecord) -> None:
        """End a thread's time: one that waits for an answer stays, unless nobody can answer it any more (`discard`)."""
        if record.ttl_strategy == DISCARD:
            self.saver.delete_thread(record.id)
            self.ledger.forget_thread(record.id)
            return
        is_kept = record.ttl_strategy == "keep_latest"
        self.saver.prune([record.id], strategy="keep_latest" if is_kept else "delete")
        if not is_kept and not self.saver.threads(thread_id=record.id):
            self.ledger.forget_thread(record.id)

    def _swept(self) -> None:
        """Go on with what was left at the last look too: a request stores its answers a moment before its run."""
        left = {}
        for status in ("ready", "running"):
            for row in self.saver.threads(status=status):
                name = self.graphs.name_of(row.key)
                if name is None or not self._is_left(row):
                    continue
                left[row.key] = row.fence, row.answer_seq
                if self._left.get(row.key) == left[row.key]:
                    self._go_on(row, name)
        self._left = left

    def _go_on(self, row: ThreadRow, name: str, answered: Sequence[str] = ()) -> None:
        """Make a run of a thread that is ready, unless there is one."""
        if self._is_left(row):
            with contextlib.suppress(RunActiveError):  # somebody else did in between
                self._adopt(row, name, answered)

    def _is_left(self, row: ThreadRow) -> bool:
        if row.status == "running" and not owner.is_dead(row):
            return False
        seen = self.ledger.thread(row.key.thread_id)
        if seen is None:
            return True
        if seen.is_active or seen.record.key not in (None, row.key):
            return False
        return seen.record.halted != row.fence or self._was_answered(row)

    def _was_answered(self, row: ThreadRow) -> bool:
        """Whether an answer came after a thread's last run was cancelled."""
        last = self.ledger.runs(thread_id=row.key.thread_id, limit=1)
        return bool(last) and last[0].outcome.get("answer_seq", row.answer_seq) != row.answer_seq

    def _adopt(self, row: ThreadRow, name: str, answered: Sequence[str]) -> None:
        at = clock.now()
        request = RunRequest(extra={"swept": True, "answered": list(answered)}).document()
        run = RunRow(
            ids.checkpoint_id(), row.key.thread_id, name, served.builtin_id(name), "pending", request, {}, "reject", at, at,
            at, is_settled=True,
        )  # fmt: skip
        self.ledger.add_run(run, row.key)

    async def _watch(self) -> None:
        """Wake readers of what other processes add to the log."""
        self._position, thread_ids = await offload(self.ledger, self.ledger.touched, self._position)
        self.hub.changed(thread_ids)

    async def threads(self, wanted: ThreadFilter) -> Any:
        """List threads."""
        return await offload(self.ledger, self.ledger.threads, wanted)


def _same(there: RunRow, run: RunRow, digest: str) -> RunRow:
    """Return the run that a token stands for, if this is the same request again."""
    if there.id == run.id:
        return there
    if there.request.get("extra", {}).get("digest") != digest or there.by != run.by or there.graph != run.graph:
        raise TokenUsedError(
            f"The token of this request was used for run '{there.id}', which was asked something else or by somebody else; "
            f"that one stands. Take a new token for a new request"
        )
    return there


def new_thread_id() -> str:
    """Return an id for a new thread."""
    return str(uuid.uuid4())
