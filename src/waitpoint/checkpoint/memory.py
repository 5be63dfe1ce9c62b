"""Keeps threads in this process's memory: the model that every other store must equal.

Rule: rows are copied in and copied out, so what a caller does to a row afterwards changes nothing here. A transition
checks everything first and writes then, under one lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import TracebackType
from typing import Any, Self

from waitpoint.checkpoint import rules
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    CheckpointRow,
    Commit,
    Cut,
    EventRow,
    JournalRow,
    Loaded,
    Move,
    OutcomeRow,
    PendingFilter,
    QuestionRow,
    Record,
    Settle,
    Settlement,
    Status,
    ThreadKey,
    ThreadRow,
    Whole,
    Writes,
)
from waitpoint.config import check_count

_Values = tuple[Any, ...]

_of_checkpoint = attrgetter(*CheckpointRow.__slots__)
_of_outcome = attrgetter(*OutcomeRow.__slots__)
_of_journal = attrgetter(*JournalRow.__slots__)
_checkpoint_place = attrgetter("ns", "id")
_outcome_place = attrgetter("ns", "checkpoint_id", "task_id")
_journal_place = attrgetter("ns", "checkpoint_id", "task_id", "seq")
_outcome_order = attrgetter("at", "task_id")
_journal_order = attrgetter("at", "task_id", "seq")
_question_order = attrgetter("asked_at", "ns", "task_id", "seq", "id")


@dataclass(slots=True)
class _Thread:
    """All rows of one thread; a checkpoint is named by (ns, id)."""

    row: ThreadRow
    checkpoints: dict[str, dict[str, _Values]] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    items: dict[int, bytes] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], dict[str, _Values]] = field(default_factory=dict)
    journal: dict[tuple[str, str], dict[tuple[str, int], _Values]] = field(default_factory=dict)
    by_root: dict[str, list[QuestionRow]] = field(default_factory=dict)
    by_checkpoint: dict[tuple[str, str], list[QuestionRow]] = field(default_factory=dict)
    events: list[tuple[str, float, str, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class _Fresh:
    """Rows to insert that were found to contradict nothing; those that are stored already are left out."""

    checkpoints: dict[tuple[str, str], _Values]
    items: dict[int, bytes]
    questions: dict[str, QuestionRow]


class InMemorySaver(BaseCheckpointSaver):
    """Keeps threads while the process lives; for tests, and for programs that need not outlive a pause.

    Not shared between processes. A forked child has its own copy.
    """

    blocking = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[ThreadKey, _Thread] = {}
        self._questions: dict[str, QuestionRow] = {}
        self._answerable: dict[str, QuestionRow] = {}  # those of `_questions` that a person can answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    # --- transitions --------------------------------------------------------------------------------------------------

    def move(self, change: Move) -> None:
        """Apply a `Move`."""
        with self._lock:
            thread = self._threads.get(change.key)
            if thread is None:
                rules.check_key(change.key)
            rules.check_move(None if thread is None else _copy(thread.row), change)
            fresh = self._fresh(thread, change.key, change.writes)
            if thread is None:
                thread = self._threads[change.key] = _Thread(_copy(change.then))
            else:
                thread.row = _copy(change.then)
            self._write(thread, fresh, change.writes, change.then.updated_at)

    def commit(self, change: Commit) -> None:
        """Apply a `Commit`."""
        with self._lock:
            thread = self._threads.get(change.key)
            if thread is None:
                rules.check_key(change.key)
            refusal = rules.refuse_commit(None if thread is None else thread.row, change)
            if refusal is not None:
                refusal.thread = None if refusal.thread is None else _copy(refusal.thread)
                raise refusal
            assert thread is not None
            fresh = self._fresh(thread, change.key, change.writes)
            self._write(thread, fresh, change.writes, change.at)
            rules.after_commit(thread.row, change)

    def settle(self, change: Settle) -> ThreadRow:
        """Apply a `Settle`."""
        with self._lock:
            thread = self._threads.get(change.key)
            named = [self._questions.get(settlement.id) for settlement in change.settlements]
            now = None if thread is None else _copy(thread.row)
            row = rules.check_settle(now, [None if q is None else _copy_question(q) for q in named], change)
            assert thread is not None
            fresh = self._fresh(thread, change.key, change.writes)
            rules.after_settle(row, change)
            thread.row = row
            self._write(thread, fresh, change.writes, row.updated_at)
            for settlement in change.settlements:  # last, so that no row of `writes` changes them
                self._settle_one(self._questions[settlement.id], settlement, row.answer_seq)
            return _copy(row)

    def record(self, change: Record) -> bool:
        """Apply a `Record`."""
        new = change.journal
        with self._lock:
            thread = self._threads.get(change.key)
            entries = {} if thread is None else thread.journal.get((new.ns, new.checkpoint_id), {})
            old = entries.get((new.task_id, new.seq))
            if thread is None or not rules.is_executing(None if old is None else JournalRow(*old), new.token):
                return False
            entries[new.task_id, new.seq] = _of_journal(new)
            thread.row.updated_at = change.at
            return True

    def cut(self, change: Cut) -> None:
        """Apply a `Cut`."""
        with self._lock:
            thread = self._threads.get(change.key)
            rules.check_cut(None if thread is None else _copy(thread.row), change)
            assert thread is not None
            if change.whole:
                self._remove(change.key)
                return
            gone = {(ns, name) for ns, name in change.checkpoints}  # read from a log, these are lists
            for ns, name in gone:
                thread.checkpoints.get(ns, {}).pop(name, None)
                thread.outcomes.pop((ns, name), None)
                thread.journal.pop((ns, name), None)
            for ns in {ns for ns, _ in gone}:
                thread.newest[ns] = max(thread.checkpoints.get(ns, {}), default="")
            for ns, name, task_id, seq in change.journal:
                thread.journal.get((ns, name), {}).pop((task_id, seq), None)
            for start, end in change.items:
                for seq in [seq for seq in range(start, end) if seq in thread.items]:
                    del thread.items[seq]
            self._forget_questions(q for q in self._of(change.key) if (q.ns, q.checkpoint_id) in gone)
            for table in (thread.by_root, thread.by_checkpoint):
                for questions in table.values():
                    questions[:] = [q for q in questions if (q.ns, q.checkpoint_id) not in gone]
            thread.events.extend([(event.kind, event.at, event.ref, event.data) for event in change.events])
            rules.after_cut(thread.row, change)

    def beat(self, owner: str, lease_until: float) -> None:
        """Extend the lease of all threads that `owner` runs."""
        with self._lock:
            for thread in self._threads.values():
                if thread.row.status == "running" and thread.row.owner == owner:
                    thread.row.lease_until = lease_until

    def delete_thread(self, thread_id: str) -> None:
        """Remove all rows of a thread, of all graphs."""
        rules.check_text("thread_id", thread_id)
        with self._lock:
            for key in [key for key in self._threads if key.thread_id == thread_id]:
                self._remove(key)

    def _remove(self, key: ThreadKey) -> None:
        self._forget_questions(self._of(key))
        del self._threads[key]

    def _of(self, key: ThreadKey) -> list[QuestionRow]:
        """Return the questions of a thread."""
        return [question for questions in self._threads[key].by_root.values() for question in questions]

    def _forget_questions(self, questions: Iterable[QuestionRow]) -> None:
        for question in questions:
            del self._questions[question.id]
            self._answerable.pop(question.id, None)

    # --- reads --------------------------------------------------------------------------------------------------------

    def thread(self, key: ThreadKey) -> ThreadRow | None:
        """Read a thread's row."""
        with self._lock:
            thread = self._threads.get(key)
            if thread is not None:
                return _copy(thread.row)
        rules.check_key(key)
        return None

    def load(self, key: ThreadKey, ns: str = "", checkpoint_id: str | None = None) -> Loaded:
        """Read a namespace at its newest checkpoint (the root: at the thread's head) or at the one named."""
        with self._lock:
            thread = self._threads.get(key)
            if thread is None:
                rules.check_key(key)
                return Loaded(None, None, [], [], [])
            row = _copy(thread.row)
            if checkpoint_id is None:
                checkpoint_id = row.head if ns == "" else thread.newest.get(ns)
            found = None if checkpoint_id is None else thread.checkpoints.get(ns, {}).get(checkpoint_id)
            if found is None or checkpoint_id is None:
                return Loaded(row, None, [], [], [])
            at = (ns, checkpoint_id)
            outcomes = [OutcomeRow(*values) for values in thread.outcomes.get(at, {}).values()]
            journal = [JournalRow(*values) for values in thread.journal.get(at, {}).values()]
            asked = thread.by_root.get(checkpoint_id, ()) if ns == "" else thread.by_checkpoint.get(at, ())
            questions = [_copy_question(question) for question in asked]
        outcomes.sort(key=_outcome_order)
        journal.sort(key=_journal_order)
        questions.sort(key=_question_order)
        return Loaded(row, CheckpointRow(*found), outcomes, journal, questions)

    def entry(self, key: ThreadKey, ns: str, checkpoint_id: str, task_id: str, seq: int) -> JournalRow | None:
        """Read one journal entry."""
        with self._lock:
            thread = self._threads.get(key)
            found = None if thread is None else thread.journal.get((ns, checkpoint_id), {}).get((task_id, seq))
            return None if found is None else JournalRow(*found)

    def whole(self, key: ThreadKey) -> Whole | None:
        """Read all of a thread in one snapshot; the data of items is left out."""
        with self._lock:
            thread = self._threads.get(key)
            if thread is None:
                rules.check_key(key)
                return None
            checkpoints = [CheckpointRow(*values) for line in thread.checkpoints.values() for values in line.values()]
            outcomes = [OutcomeRow(*values) for found in thread.outcomes.values() for values in found.values()]
            journal = [JournalRow(*values) for found in thread.journal.values() for values in found.values()]
            questions = [_copy_question(question) for question in self._of(key)]
            row, numbers = _copy(thread.row), sorted(thread.items)
        checkpoints.sort(key=_checkpoint_place)
        outcomes.sort(key=_outcome_place)
        journal.sort(key=_journal_place)
        questions.sort(key=_question_order)
        return Whole(row, checkpoints, numbers, outcomes, journal, questions)

    def items(self, key: ThreadKey, ranges: Sequence[tuple[int, int]]) -> dict[int, bytes]:
        """Read items by half-open ranges of numbers."""
        with self._lock:
            thread = self._threads.get(key)
            if thread is None:
                rules.check_key(key)
                return {}
            stored = thread.items
            return {seq: stored[seq] for start, end in ranges for seq in range(start, end) if seq in stored}

    def history(
        self, key: ThreadKey, ns: str = "", *, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRow]:
        """List checkpoints of a namespace, newest first, with ids smaller than `before`."""
        check_count("limit", limit)
        with self._lock:
            thread = self._threads.get(key)
            if thread is None:
                rules.check_key(key)
                return []
            stored = thread.checkpoints.get(ns, {})
            ids = sorted((name for name in stored if before is None or name < before), reverse=True)
            return [CheckpointRow(*stored[name]) for name in ids[:limit]]

    def questions(self, wanted: PendingFilter) -> list[QuestionRow]:
        """List questions over all threads, by the time they were asked, then by (ns, task_id, seq, id)."""
        with self._lock:
            found = sorted(self._wanted(wanted), key=_question_order, reverse=wanted.newest_first)
            end = None if wanted.limit is None else wanted.offset + wanted.limit
            return [_copy_question(question) for question in found[wanted.offset : end]]

    def count(self, wanted: PendingFilter) -> int:
        """Count what `questions` would list without its limit."""
        with self._lock:
            return len(self._wanted(wanted))

    def threads(
        self, *, status: Status | None = None, thread_id: str | None = None, limit: int | None = None, offset: int = 0,
        changed_before: float | None = None,
    ) -> list[ThreadRow]:  # fmt: skip
        """List threads, newest change first, then by id and graph."""
        check_count("limit", limit)
        check_count("offset", offset)
        if thread_id is not None:
            rules.check_text("thread_id", thread_id)
        with self._lock:
            found = [
                thread.row
                for thread in self._threads.values()
                if (status is None or thread.row.status == status)
                and (thread_id is None or thread.row.key.thread_id == thread_id)
                and (changed_before is None or thread.row.updated_at < changed_before)
            ]
            found.sort(key=lambda row: (-row.updated_at, row.key))
            return [_copy(row) for row in found[offset : None if limit is None else offset + limit]]

    def events(self, key: ThreadKey, *, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """List a thread's record in order, from the event after number `after`."""
        check_count("limit", limit)
        with self._lock:
            thread = self._threads.get(key)
            if thread is None:
                rules.check_key(key)
                return []
            after = max(after, 0)
            stored = thread.events[after : None if limit is None else after + limit]
            return [EventRow(*values, seq=seq) for seq, values in enumerate(stored, after + 1)]

    def _wanted(self, wanted: PendingFilter) -> list[QuestionRow]:
        rules.check_filter(wanted)
        table = self._answerable if wanted.answerable else self._questions
        rows: Iterable[QuestionRow] = table.values()
        if wanted.ids is not None:
            rows = [table[name] for name in rules.unique(wanted.ids) if name in table]
        return [
            row
            for row in rows
            if (wanted.thread_id is None or row.key.thread_id == wanted.thread_id)
            and (wanted.graph is None or row.key.graph == wanted.graph)
            and (wanted.node is None or row.node == wanted.node)
            and (wanted.id_prefix is None or row.id.startswith(wanted.id_prefix))
        ]

    # --- rows in ------------------------------------------------------------------------------------------------------

    def _fresh(self, thread: _Thread | None, key: ThreadKey, writes: Writes) -> _Fresh:
        """Collect what is to be inserted; refuse what is stored with other content."""
        fresh = _Fresh({}, {}, {})
        for row in writes.checkpoints:
            values = _of_checkpoint(row)
            old = None if thread is None else thread.checkpoints.get(row.ns, {}).get(row.id)
            if fresh.checkpoints.setdefault((row.ns, row.id), old or values) != values:
                raise rules.stored_otherwise("checkpoint", row.id, key)
        stored = {} if thread is None else thread.items
        for item in writes.items:
            if fresh.items.setdefault(item.seq, stored.get(item.seq, item.data)) != item.data:
                raise rules.stored_otherwise("item", item.seq, key)
        for question in writes.questions:
            known = self._questions.get(question.id) or fresh.questions.get(question.id)
            if question.key != key or (known is not None and known != question):
                raise rules.stored_otherwise("question", question.id, key)
            if known is None:
                fresh.questions[question.id] = _copy_question(question)
        return fresh

    def _write(self, thread: _Thread, fresh: _Fresh, writes: Writes, at: float) -> None:
        for (ns, name), values in fresh.checkpoints.items():
            thread.checkpoints.setdefault(ns, {})[name] = values
            if name > thread.newest.get(ns, ""):
                thread.newest[ns] = name
        if fresh.items:
            thread.items.update(fresh.items)
        for row in writes.outcomes:
            thread.outcomes.setdefault((row.ns, row.checkpoint_id), {})[row.task_id] = _of_outcome(row)
        for entry in writes.journal:
            entries = thread.journal.setdefault((entry.ns, entry.checkpoint_id), {})
            old = entries.get((entry.task_id, entry.seq))
            if old is None or rules.may_replace(JournalRow(*old), entry):
                entries[entry.task_id, entry.seq] = _of_journal(entry)
        for question in fresh.questions.values():
            self._questions[question.id] = question
            thread.by_root.setdefault(question.root_checkpoint, []).append(question)
            if question.ns:
                thread.by_checkpoint.setdefault((question.ns, question.checkpoint_id), []).append(question)
            self._list_if_answerable(question)
        if writes.withdrawn or writes.replaceable or writes.final or writes.reopened:
            self._change_questions(thread.row.key, writes, at)
        if writes.events:
            thread.events.extend([(event.kind, event.at, event.ref, event.data) for event in writes.events])

    def _change_questions(self, key: ThreadKey, writes: Writes, at: float) -> None:
        for name, reason in writes.withdrawn:
            question = self._questions.get(name)
            if question is not None and question.key == key and question.status == "open":
                self._settle_one(question, Settlement(name, "withdrawn", at, reason=reason), None)
        for ids, value in ((writes.replaceable, True), (writes.final, False)):
            for question in self._answered(key, ids):
                question.replaceable = value
                self._list_if_answerable(question)
        for question in self._answered(key, writes.reopened):
            question.status, question.replaceable = "open", False
            question.settled_at = question.settle_seq = None
            question.by = question.comment = question.answer = question.token = question.reason = None
            self._list_if_answerable(question)

    def _answered(self, key: ThreadKey, ids: Sequence[str]) -> list[QuestionRow]:
        found = [self._questions[name] for name in ids if name in self._questions]
        return [question for question in found if question.key == key and question.status == "answered"]

    def _settle_one(self, question: QuestionRow, settlement: Settlement, settle_seq: int | None) -> None:
        question.status, question.replaceable = settlement.status, False
        question.settled_at, question.settle_seq = settlement.at, settle_seq
        question.by, question.comment, question.answer = settlement.by, settlement.comment, settlement.answer
        question.token, question.reason = settlement.token, settlement.reason
        self._list_if_answerable(question)

    def _list_if_answerable(self, question: QuestionRow) -> None:
        if question.can_answer:
            self._answerable[question.id] = question
        else:
            self._answerable.pop(question.id, None)


MemorySaver = InMemorySaver
"""LangGraph's older name."""


def _copy(row: ThreadRow) -> ThreadRow:
    return ThreadRow(*rules.values_of_thread(row))


def _copy_question(row: QuestionRow) -> QuestionRow:
    return QuestionRow(*rules.values_of_question(row))
