"""The port of the engine to its store: what every saver does, and the names of what it keeps.

A saver of your own derives from `BaseCheckpointSaver`, names the version of this interface that it was written for, and
runs `waitpoint.testing.conformance`: see docs/persistence.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar, Final, Literal, Protocol

from waitpoint import clock, codec
from waitpoint.checkpoint import keeping
from waitpoint.checkpoint.rows import (
    AnswersArrived,
    CheckpointRow,
    Commit,
    Cut,
    EventRow,
    FenceLost,
    ItemRow,
    JournalRow,
    Loaded,
    Move,
    OutcomeRow,
    PendingFilter,
    Pruned,
    QuestionRow,
    QuestionsChanged,
    Record,
    Rest,
    Settle,
    Settled,
    Settlement,
    Status,
    ThreadChanged,
    ThreadKey,
    ThreadRow,
    Whole,
    Writes,
)
from waitpoint.errors import NotFoundError, ThreadBusyError, UsageError
from waitpoint.records import Question

__all__ = [
    "INTERFACE",
    "OLDEST_INTERFACE",
    "AnswersArrived",
    "BaseCheckpointSaver",
    "Blocking",
    "CheckpointRow",
    "Commit",
    "Cut",
    "EventRow",
    "FenceLost",
    "ItemRow",
    "JournalRow",
    "Loaded",
    "Move",
    "OutcomeRow",
    "PendingFilter",
    "Pruned",
    "QuestionRow",
    "QuestionsChanged",
    "Record",
    "Rest",
    "Settle",
    "Settled",
    "Settlement",
    "Status",
    "Strategy",
    "ThreadChanged",
    "ThreadKey",
    "ThreadRow",
    "Whole",
    "Writes",
    "as_question",
    "offload",
]

INTERFACE: Final = 1
"""The version of the interface below. It grows when a saver has to do something that it had not to do before."""

OLDEST_INTERFACE: Final = 1
"""The oldest version whose savers still work."""

Strategy = Literal["keep_latest", "delete"]


class BaseCheckpointSaver(ABC):
    """What a checkpoint saver does. Safe to call from several threads at once.

    `blocking` tells the asyncio driver whether calls may wait for a disk and so belong in a worker thread. A saver
    outside of this package says which version of the interface it was written for:
    `class MySaver(BaseCheckpointSaver, interface=1)`. One that this Waitpoint cannot use is refused when its module is
    imported, before anything is stored.
    """

    blocking: bool = True
    interface: ClassVar[int] = INTERFACE

    def __init_subclass__(cls, *, interface: int | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if interface is None:
            return
        if not OLDEST_INTERFACE <= interface <= INTERFACE:
            cure = "upgrade the waitpoint package" if interface > INTERFACE else "upgrade the package it comes from"
            raise UsageError(
                f"Saver '{cls.__name__}' was written for version {interface} of the saver interface, and this Waitpoint has "
                f"version {INTERFACE} (the oldest it works with is {OLDEST_INTERFACE}); {cure}"
            )
        cls.interface = interface

    @property
    def identity(self) -> str:
        """What store this is: equal for two savers of one process that share a store (a file, a database)."""
        return f"object:{id(self)}"

    @abstractmethod
    def move(self, change: Move) -> None:
        """Apply a `Move`."""

    @abstractmethod
    def commit(self, change: Commit) -> None:
        """Apply a `Commit`."""

    @abstractmethod
    def settle(self, change: Settle) -> ThreadRow:
        """Apply a `Settle`."""

    @abstractmethod
    def record(self, change: Record) -> bool:
        """Apply a `Record`."""

    @abstractmethod
    def cut(self, change: Cut) -> None:
        """Apply a `Cut`."""

    @abstractmethod
    def beat(self, owner: str, lease_until: float) -> None:
        """Extend the lease of all threads that `owner` runs."""

    @abstractmethod
    def thread(self, key: ThreadKey) -> ThreadRow | None:
        """Read a thread's row."""

    @abstractmethod
    def load(self, key: ThreadKey, ns: str = "", checkpoint_id: str | None = None) -> Loaded:
        """Read a namespace at its newest checkpoint (the root: at the thread's head) or at the one named."""

    @abstractmethod
    def entry(self, key: ThreadKey, ns: str, checkpoint_id: str, task_id: str, seq: int) -> JournalRow | None:
        """Read one journal entry."""

    @abstractmethod
    def whole(self, key: ThreadKey) -> Whole | None:
        """Read all of a thread in one snapshot; the data of items is left out."""

    @abstractmethod
    def items(self, key: ThreadKey, ranges: Sequence[tuple[int, int]]) -> dict[int, bytes]:
        """Read items by half-open ranges of numbers."""

    @abstractmethod
    def history(
        self, key: ThreadKey, ns: str = "", *, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRow]:
        """List checkpoints of a namespace, newest first, with ids smaller than `before`."""

    @abstractmethod
    def questions(self, wanted: PendingFilter) -> list[QuestionRow]:
        """List questions over all threads."""

    @abstractmethod
    def count(self, wanted: PendingFilter) -> int:
        """Count what `questions` would list without its limit."""

    @abstractmethod
    def threads(
        self, *, status: Status | None = None, thread_id: str | None = None, limit: int | None = None, offset: int = 0,
        changed_before: float | None = None,
    ) -> list[ThreadRow]:  # fmt: skip
        """List threads, newest change first; with `changed_before` those whose last change is older than that time."""

    @abstractmethod
    def events(self, key: ThreadKey, *, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """List a thread's record in order, from the event after number `after`."""

    @abstractmethod
    def delete_thread(self, thread_id: str) -> None:
        """Remove all rows of a thread, of all graphs."""

    def pending(self, wanted: PendingFilter | None = None, **filters: Any) -> list[Question]:
        """List the questions that a person can answer, over all threads, oldest first.

        Filters are the fields of `PendingFilter`: `thread_id`, `graph`, `node`, `ids`, `newest_first`, `limit`,
        `offset`, `id_prefix`; `answerable=False` lists settled questions too.
        """
        return [as_question(row) for row in self.questions(wanted or PendingFilter(**filters))]

    # --- keeping house ------------------------------------------------------------------------------------------------

    def prune(
        self, thread_ids: Sequence[str] | None = None, *, strategy: Strategy = "keep_latest",
        older_than: float | timedelta | None = None,
    ) -> Pruned:  # fmt: skip
        """Take away what threads do not need to go on: those named, or those unchanged for `older_than` (seconds), or both.

        "keep_latest" leaves each thread as it stands and takes its history; "delete" takes the whole thread, but only
        the history of one with open questions or an answer that was not acted on. What hangs on open questions always
        stays, and so does the record of events, unless the thread goes. Each transition is small, so others write in
        between.

        Raises:
            ThreadBusyError: a thread that is named is running; nothing was taken. Without names, such are left alone.
        """
        if strategy not in ("keep_latest", "delete"):
            raise UsageError(f"No strategy {strategy!r} of pruning; it is 'keep_latest' or 'delete'")
        if thread_ids is None and older_than is None:
            raise UsageError(
                "Nothing says what to prune: give thread ids, or older_than=, in seconds or as a timedelta (0: all threads)"
            )
        before = None if older_than is None else clock.now() - _seconds(older_than)
        names = [None] if thread_ids is None else list(dict.fromkeys(_listed("thread_ids", thread_ids)))
        rows = [row for name in names for row in self.threads(thread_id=name, changed_before=before)]
        if thread_ids is not None:
            for row in rows:
                _check_rests(row, "pruning it")
        done = Pruned()
        for row in rows:
            self._prune(row.key, done, keeps=strategy == "keep_latest", before=before)
        return done

    def _prune(self, key: ThreadKey, done: Pruned, *, keeps: bool, before: float | None) -> None:
        """Prune one thread; while somebody else changes it, look again."""
        while (whole := self.whole(key)) is not None and (before is None or whole.thread.updated_at < before):
            if whole.thread.status == "running":
                done.running = (*done.running, key)
                return
            has_more_to_do = whole.thread.status == "ready" or any(q.can_answer for q in whole.questions)
            doomed = None if not (keeps or has_more_to_do) else keeping.all_but_the_latest(whole)
            if self._is_cut(whole, doomed, done):
                return

    def _is_cut(self, whole: Whole, doomed: keeping.Doomed | None, done: Pruned) -> bool:
        """Take away what is doomed, or (None) the whole thread; False if the thread changed meanwhile."""
        row = whole.thread
        if doomed is not None and doomed.is_nothing:
            return True
        try:
            for change in [Cut(row.key, row, whole=True)] if doomed is None else keeping.cuts(whole, doomed):
                self.cut(change)
        except ThreadChanged:
            return False
        done.threads += 1
        done.deleted += doomed is None
        done.checkpoints += len(whole.checkpoints if doomed is None else doomed.checkpoints)
        done.items += len(whole.items) if doomed is None else doomed.item_count
        return True

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, of all graphs, as it stands: history, values, and what tasks came to, under another id.

        Open questions are open in the copy too, under ids of their own. A decision on the original decides nothing in
        the copy: permits stay behind, and what was answered in a task that has not ended is asked again. An effect in
        doubt is in doubt there too. The record of events begins anew.

        Raises:
            NotFoundError: there is no such thread.
            ThreadBusyError: it is running.
            UsageError: the target exists.
        """
        rows = self.threads(thread_id=source_thread_id)
        if not rows:
            raise NotFoundError(f"No thread {source_thread_id!r}; take an id from threads()")
        if self.threads(thread_id=target_thread_id):
            raise _exists(target_thread_id)
        for row in rows:
            _check_rests(row, "copying it")
        for row in rows:
            self._copy_thread(row.key, ThreadKey(target_thread_id, row.key.graph))

    def _copy_thread(self, key: ThreadKey, target: ThreadKey) -> None:
        while (whole := self.whole(key)) is not None:
            _check_rests(whole.thread, "copying it")
            items = self.items(key, [(0, whole.thread.next_item)])
            if not set(whole.items) <= set(items):
                continue  # pruned in between
            try:
                self.move(keeping.copied(whole, {seq: items[seq] for seq in whole.items}, target))
            except ThreadChanged as error:
                raise _exists(target.thread_id) from error
            return

    def delete_for_runs(self, run_ids: Sequence[str], *, thread_ids: Sequence[str] | None = None) -> Pruned:
        """Take away what runs left, with their questions: those whose checkpoints have one of these `run_id` in their metadata.

        A thread that stands at a checkpoint of such a run goes back to the one before, idle; one that has no other is
        deleted. What effects did is not undone. All threads are looked through, or those that are named.

        Raises:
            ThreadBusyError: a thread with such checkpoints is running; nothing of it was taken.
        """
        wanted = frozenset(map(str, _listed("run_ids", run_ids)))
        names = [None] if thread_ids is None else list(dict.fromkeys(_listed("thread_ids", thread_ids)))
        done = Pruned()
        for row in [row for name in names for row in self.threads(thread_id=name)]:
            while (whole := self.whole(row.key)) is not None:
                doomed = keeping.made_by(whole, wanted)
                if doomed is not None and not doomed.checkpoints:
                    break
                _check_rests(whole.thread, "taking away what its runs left")
                if self._is_cut(whole, doomed, done):
                    break
        return done

    async def adelete_thread(self, thread_id: str) -> None:
        """Like `delete_thread`."""
        await offload(self, self.delete_thread, thread_id)

    async def aprune(
        self, thread_ids: Sequence[str] | None = None, *, strategy: Strategy = "keep_latest",
        older_than: float | timedelta | None = None,
    ) -> Pruned:  # fmt: skip
        """Like `prune`."""
        done: Pruned = await offload(self, lambda: self.prune(thread_ids, strategy=strategy, older_than=older_than))
        return done

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like `copy_thread`."""
        await offload(self, self.copy_thread, source_thread_id, target_thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str], *, thread_ids: Sequence[str] | None = None) -> Pruned:
        """Like `delete_for_runs`."""
        done: Pruned = await offload(self, lambda: self.delete_for_runs(run_ids, thread_ids=thread_ids))
        return done

    def close(self) -> None:  # noqa: B027 - not every saver holds something
        """Release what the store holds; it cannot be used afterwards."""


def _listed(name: str, given: Sequence[str]) -> Sequence[str]:
    if isinstance(given, str):
        raise UsageError(f"{name} is one text, not a list of ids, and would be read letter by letter; give [{given!r}]")
    return given


def _seconds(given: float | timedelta) -> float:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if seconds < 0:
        raise UsageError(f"older_than is {given!r}, which lies in the future; give 0 or more seconds")
    return seconds


def _check_rests(row: ThreadRow, what: str) -> None:
    if row.status == "running":
        raise ThreadBusyError(
            f"Thread {row.key.thread_id!r} of graph {row.key.graph!r} is running; wait for it to rest before {what}, or go on "
            f"with it if its process has died",
            thread_id=row.key.thread_id,
            status=row.status,
        )


def _exists(thread_id: str) -> UsageError:
    return UsageError(f"Thread {thread_id!r} exists already, and a copy overwrites nothing; name a new id")


def as_question(row: QuestionRow) -> Question:
    """Decode a question's row into what the public API shows."""
    extra = codec.loads(row.extra)
    return Question(
        id=row.id,
        thread_id=row.key.thread_id,
        graph=row.key.graph,
        ns=row.ns,
        node=row.node,
        path=tuple(extra["path"]),
        value=codec.loads(row.value),
        digest=row.digest,
        response_schema=None if row.schema is None else codec.loads(row.schema),
        status=row.status,
        can_answer=row.can_answer,
        asked_at=row.asked_at,
        settled_at=row.settled_at,
        by=row.by,
        comment=row.comment,
        answer=None if row.answer is None else codec.loads(row.answer),
        reason=row.reason,
        supersedes=extra.get("supersedes"),
        changed_paths=tuple(extra.get("changed_paths", ())),
        key=row.qkey,
    )


class Blocking(Protocol):
    """A saver, store or cache: `blocking` says whether its calls may wait for a disk or another machine."""

    blocking: bool


async def offload(owner: Blocking, call: Any, *args: Any) -> Any:
    """Call a method of `owner` without blocking the event loop; a cancellation does not interrupt the call."""
    if not owner.blocking:
        return call(*args)
    import asyncio

    return await asyncio.shield(asyncio.to_thread(call, *args))
