"""One claimed stretch of a thread's life, from a start or an answer to its next rest: what all graphs in it share.

The segment holds the fence. Every commit of the root graph and of graphs nested in its nodes goes through here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from waitpoint import clock, codec
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    CheckpointRow,
    Commit,
    EventRow,
    FenceLost,
    ItemRow,
    JournalRow,
    OutcomeRow,
    PendingFilter,
    QuestionRow,
    Record,
    Rest,
    Settle,
    Settlement,
    ThreadKey,
    ThreadRow,
    Writes,
)
from waitpoint.engine.heads import Head, Numbers, Origin
from waitpoint.errors import ConflictError, PermitUsedError
from waitpoint.interrupts.journal import Journal
from waitpoint.records import Durability


class Segment:
    """A claim on a thread. Safe to use from the threads of its tasks."""

    def __init__(self, saver: BaseCheckpointSaver, thread: ThreadRow, durability: Durability) -> None:
        self.saver = saver
        self.blocking = saver.blocking
        self.key: ThreadKey = thread.key
        self.fence = thread.fence
        self.answer_seq = thread.answer_seq
        self.numbers = Numbers(thread.next_item)
        self.questions: dict[str, QuestionRow] = {}
        self.outcomes: dict[str, OutcomeRow] = {}  # of the root's checkpoint, by task
        self.is_plain = True  # `questions` and `outcomes` are as they are stored, and there is no journal
        self.root_checkpoint = thread.head or ""
        self.saves_steps = durability != "exit"
        self.rests = False  # its end is stored, even if whoever stored it was interrupted before the reply
        self.memories: dict[str, Head] = {}  # by namespace: where graphs with a memory ended, with durability "exit"
        self._holders: dict[
            str, tuple[Origin, bool]
        ] = {}  # by namespace: the last call with a memory, if it still runs
        self._unsaved: dict[str, CheckpointRow] = {}  # by namespace, with durability "exit"
        self._saved: dict[str, str | None] = {}  # by namespace: the last checkpoint that is stored
        self._kept: dict[str, tuple[str, str | None]] = {}  # by namespace: the last of those, and what was stored then
        self._items: list[ItemRow] = []
        self._root_head: str | None = None
        self._lock = threading.RLock()

    def claim(self, thread: ThreadRow) -> None:
        """Take the fence of a claim that was just stored."""
        self.fence, self.answer_seq = thread.fence, thread.answer_seq
        self.numbers.next = max(self.numbers.next, thread.next_item)

    def save_step(self, row: CheckpointRow, items: Sequence[ItemRow], writes: Writes) -> None:
        """Store a superstep's checkpoint with the outcomes that made it (visible, not yet durable)."""
        with self._lock:
            if row.ns == "":
                self.root_checkpoint = row.id
            if self.saves_steps:
                writes.checkpoints, writes.items = [row], items
                self._commit(writes, head=row.id if row.ns == "" else None)
            else:
                self.keep(row, items)

    def save(self, writes: Writes, items: Sequence[ItemRow] = (), durable: bool = True) -> None:
        """Store outcomes or questions, after the checkpoints that they rest on."""
        with self._lock:
            self._items.extend(items)
            self._commit_all(writes, durable=durable)

    def rest(self, writes: Writes, items: Sequence[ItemRow], rest: Rest, row: CheckpointRow | None = None) -> None:
        """Store the end of the stretch; raises `AnswersArrived` if answers came that were not read.

        After a conflict nothing is lost: what was given is kept for the next try, which passes no items again.
        """
        with self._lock:
            self._items.extend(items)
            if row is not None:
                self.root_checkpoint = row.id
                self.keep(row, ())
            self._commit_all(writes, rest=rest, durable=True)
            self.rests = True

    def start_child(
        self, rows: Sequence[CheckpointRow], items: Sequence[ItemRow], outcomes: Sequence[OutcomeRow]
    ) -> None:
        """Store the first checkpoints of a graph nested in a task (visible)."""
        with self._lock:
            if self.saves_steps:
                self._commit(Writes(checkpoints=rows, items=items, outcomes=outcomes))
                return
            for row in rows:
                self.keep(row, items)
                items = ()

    def hold(self, ns: str, origin: Origin, check: Callable[[Origin, bool], None]) -> None:
        """Note who calls a graph with a memory of its own, unless `check` raises at who did before and is at it still."""
        with self._lock:
            if ns in self._holders:
                check(*self._holders[ns])
            self._holders[ns] = (origin, True)

    def let_go(self, ns: str, origin: Origin) -> None:
        """Note that a call of a graph with a memory of its own has ended."""
        with self._lock:
            if ns in self._holders and self._holders[ns][0] is origin:
                self._holders[ns] = (origin, False)

    def asks_within(self, at: str) -> bool:
        """Whether a question is open in a call, which `at` names by its tasks."""
        return any(q.can_answer and within(called_in(q), at) for q in self.questions.values() if q.ns)

    def remember(self, head: Head) -> None:
        """Keep where a graph with a memory of its own ended, until that is stored."""
        if not self.saves_steps:
            self.memories[head.ns] = head

    def forget(self, prefix: str) -> None:
        """With durability "exit" the graphs in a finished task leave no checkpoints behind; in a paused one they do."""
        with self._lock:
            for ns in [ns for ns in self._unsaved if within(ns, prefix)]:
                del self._unsaved[ns]

    def during(self, attempt: Journal, call: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Make a store call of a graph that was called in an attempt, unless that attempt has ended."""
        with self._lock:  # the thread rests under this lock, so a late call comes before that or not at all
            attempt.check_open("store what a graph did that was called")
            return call(*args)

    def reload(self) -> ThreadRow:
        """Read the answers that came meanwhile. Raises `FenceLost` if the thread was taken over."""
        loaded = self.saver.load(self.key)
        if loaded.thread is None or loaded.thread.fence != self.fence:
            raise FenceLost(taken_over(self.key, loaded.thread), thread=loaded.thread)
        self.answer_seq = loaded.thread.answer_seq
        for row in loaded.questions:
            self.questions[row.id] = row
        return loaded.thread

    # --- the recorder of journals ---

    def record(self, *rows: JournalRow) -> None:
        """Store journal entries together, durable when this returns. Raises `PermitUsedError`."""
        if all(row.kind != "permit" for row in rows) and not self._holds_back():
            # Outside of the lock, and without what a commit of a step sets: effects that end together share a commit.
            self.saver.commit(Commit(self.key, self.fence, Writes(journal=rows), clock.now(), durable=True))
            self.is_plain = False
            return
        with self._lock:  # all that may use a permit of this thread pass here, one after the other
            for row in rows:
                is_use = row.kind == "permit" and row.state == "done"
                now = self.entry(row.ns, row.checkpoint_id, row.task_id, row.seq) if is_use else None
                if now is not None and now.state == "done" and now.body != row.body:
                    raise PermitUsedError(
                        f"The permit {row.task_id!r} was used by another execution; ask for another one"
                    )
            self.save(Writes(journal=rows), durable=True)

    def _holds_back(self) -> bool:
        with self._lock:
            return bool(self._unsaved or self._items)

    def entry(self, ns: str, checkpoint_id: str, task_id: str, seq: int) -> JournalRow | None:
        """Read a journal entry of the thread."""
        return self.saver.entry(self.key, ns, checkpoint_id, task_id, seq)

    def conclude(self, row: JournalRow) -> bool:
        """Store the outcome of an execution that is on record, even if this run has lost the thread meanwhile."""
        if not self.saver.record(Record(self.key, row, clock.now())):
            return False
        asked = f"in_doubt:{row.token}"
        wanted = PendingFilter(thread_id=self.key.thread_id, graph=self.key.graph)
        for question in self.saver.questions(wanted) if self._is_fenced_off() else ():
            if question.qkey == asked and question.status == "open":
                self._withdraw(question.id, "the outcome of the effect arrived")
        return True

    def _is_fenced_off(self) -> bool:
        thread = self.saver.thread(self.key)
        return thread is None or thread.fence != self.fence

    def _withdraw(self, question_id: str, reason: str) -> None:
        try:
            self.saver.settle(
                Settle(self.key, [Settlement(question_id, "withdrawn", clock.now(), by="system", reason=reason)])
            )
        except ConflictError:
            return  # a person settled it first; the answer meets the recorded outcome on replay

    # --- commits ---

    def keep(self, row: CheckpointRow, items: Sequence[ItemRow]) -> None:
        """Hold a checkpoint back until something durable rests on it."""
        if row.ns not in self._saved:
            self._saved[row.ns] = row.parent_id
        self._kept[row.ns] = (row.id, self._saved[row.ns])
        self._unsaved[row.ns] = row
        self._items.extend(items)
        if row.ns == "":
            self._root_head = row.id

    def parent_id(self, head: Head) -> str | None:
        """Return the checkpoint under which this one is stored: with durability "exit" those between are left out."""
        kept, parent_id = self._kept.get(head.ns, ("", None))
        return parent_id if kept == head.id else head.parent_id

    def _commit_all(self, writes: Writes, *, rest: Rest | None = None, durable: bool) -> None:
        """Commit with the checkpoints that were kept back and all items landing first."""
        if not self._unsaved and not self._items:
            self._commit(writes, rest=rest, durable=durable)
            self._ask(writes)
            return
        for ns, row in self._unsaved.items():
            row.parent_id = self._saved.get(ns)
        full = Writes(
            [*self._unsaved.values(), *writes.checkpoints], self._items, writes.outcomes, writes.journal, writes.questions,
            writes.withdrawn, writes.replaceable, writes.final, writes.reopened, writes.events,
        )  # fmt: skip
        self._commit(full, rest=rest, durable=durable)
        self._saved |= {ns: row.id for ns, row in self._unsaved.items()}
        self._unsaved, self._items = {}, []
        self._ask(writes)

    def _ask(self, writes: Writes) -> None:
        for question in writes.questions:
            self.questions[question.id] = question

    def _commit(
        self, writes: Writes, *, head: str | None = None, rest: Rest | None = None, durable: bool = False
    ) -> None:
        change = Commit(
            self.key, self.fence, writes, clock.now(), head=head or self._root_head, next_item=self.numbers.next, rest=rest,
            durable=durable,
        )  # fmt: skip
        self.saver.commit(change)
        self._root_head = None
        if writes.journal or writes.withdrawn or writes.replaceable or writes.final or writes.reopened:
            self.is_plain = False
        for outcome in writes.outcomes:
            if not outcome.ns:
                self.outcomes[outcome.task_id] = outcome


def within(ns: str, prefix: str) -> bool:
    """Whether a namespace is this one or lies below it (by whole segments; further calls add "|n")."""
    return ns == prefix or ns.startswith(prefix + "|")


def called_in(row: QuestionRow) -> str:
    """Return the namespace of a question's graph by the tasks in which it was called, also where it keeps a memory."""
    if not row.ns or b"called_in" not in row.extra:
        return row.ns
    found: str = codec.loads(row.extra).get("called_in", row.ns)
    return found


def below(ns: str, part: str) -> str:
    """Return the namespace of a part inside another one."""
    return f"{ns}|{part}" if ns else part


def memory_ns(ns: str, part: str) -> str:
    """Return the namespace of a graph with a memory of its own: names of nodes, without the tasks of one run."""
    return below("|".join(p.partition(":")[0] for p in ns.split("|")) if ns else "", part)


def event(kind: str, ref: str = "", **data: Any) -> EventRow:
    """Return a line of the thread's record."""
    return EventRow(kind, clock.now(), ref, codec.dumps_plain(data) if data else b"")


def withdrawals(closed: Iterable[tuple[str, str]]) -> list[EventRow]:
    """Return the lines of the record for questions that were closed without an answer."""
    return [event("withdrawn", question_id, by="system", reason=reason) for question_id, reason in closed]


def taken_over(key: ThreadKey, thread: ThreadRow | None) -> str:
    """Return the text for a run that lost its thread."""
    who = "was deleted" if thread is None else f"was taken over by another run (fence {thread.fence})"
    return f"Thread {key.thread_id!r} of graph {key.graph!r} {who} while this run worked on it; nothing more was stored"
