"""The transitions as statements; each function runs inside a write transaction that its caller ends or takes back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from waitpoint.checkpoint import rules
from waitpoint.checkpoint.base import (
    Commit,
    Cut,
    EventRow,
    JournalRow,
    Move,
    Record,
    Settle,
    Settlement,
    ThreadKey,
    ThreadRow,
    Writes,
)
from waitpoint.checkpoint.sqlite import rows
from waitpoint.checkpoint.sqlite.reads import find_numbered_thread, find_question, find_thread, find_tid
from waitpoint.checkpoint.sqlite.rows import CHECKPOINT, JOURNAL, Cursor, Values

_KNOWN_TIDS = 10_000

_PUT_THREAD = """
    UPDATE thread SET status = ?, fence = ?, answer_seq = ?, next_item = ?, head = ?, owner = ?, lease_until = ?,
        error = ?, created_at = ?, updated_at = ?, events = events + ?
    WHERE tid = ?"""
_ADD_THREAD = """
    INSERT INTO thread (status, fence, answer_seq, next_item, head, owner, lease_until, error, created_at, updated_at,
        events, thread_id, graph)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
# The key stands beside the number: the number comes from a cache, and may be another thread's by now.
_COMMIT = """
    UPDATE thread SET head = coalesce(?, head), next_item = coalesce(?, next_item), updated_at = ?, events = events + ?
    WHERE tid = ? AND thread_id = ? AND graph = ? AND fence = ?"""
_REST = """
    UPDATE thread SET head = coalesce(?, head), next_item = coalesce(?, next_item), updated_at = ?, events = events + ?,
        status = ?, error = ?, owner = NULL, lease_until = NULL
    WHERE tid = ? AND thread_id = ? AND graph = ? AND fence = ? AND answer_seq = ?"""
_TOUCH = "UPDATE thread SET updated_at = ? WHERE tid = ?"
_BEAT = "UPDATE thread SET lease_until = ? WHERE status = 'running' AND owner = ?"

_ADD_CHECKPOINT = """
    INSERT INTO checkpoint (tid, ns, id, parent_id, step, source, created_at, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_SAME_CHECKPOINT = CHECKPOINT.select("WHERE tid = ? AND ns = ? AND id = ?")
_ADD_ITEM = "INSERT INTO item (key, data) VALUES (?, ?)"
_SAME_ITEM = "SELECT data FROM item WHERE key = ?"
_PUT_OUTCOME = """
    INSERT INTO outcome (tid, ns, checkpoint_id, task_id, node, status, answer_seq, attempt, at, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tid, ns, checkpoint_id, task_id) DO UPDATE SET node = excluded.node, status = excluded.status,
        answer_seq = excluded.answer_seq, attempt = excluded.attempt, at = excluded.at, body = excluded.body"""
_FIND_JOURNAL = JOURNAL.select("WHERE tid = ? AND ns = ? AND checkpoint_id = ? AND task_id = ? AND seq = ?")
_ADD_JOURNAL = """
    INSERT INTO journal (tid, ns, checkpoint_id, task_id, seq, kind, state, attempt, at, token, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_PUT_JOURNAL = """
    UPDATE journal SET kind = ?, state = ?, attempt = ?, at = ?, token = ?, body = ?
    WHERE tid = ? AND ns = ? AND checkpoint_id = ? AND task_id = ? AND seq = ?"""
_ADD_QUESTION = """
    INSERT INTO question (tid, id, ns, checkpoint_id, root_checkpoint, task_id, seq, node, value, schema, digest, qkey,
        site, extra, asked_at, status, replaceable, settled_at, settle_seq, "by", comment, answer, token, reason)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_SETTLE = """
    UPDATE question SET status = ?, replaceable = 0, settled_at = ?, settle_seq = ?, "by" = ?, comment = ?, answer = ?,
        token = ?, reason = ?
    WHERE id = ?"""
_WITHDRAW = """
    UPDATE question SET status = 'withdrawn', replaceable = 0, settled_at = ?, settle_seq = NULL, "by" = NULL,
        comment = NULL, answer = NULL, token = NULL, reason = ?
    WHERE id = ? AND tid = ? AND status = 'open'"""
_REPLACEABLE = "UPDATE question SET replaceable = ? WHERE id = ? AND tid = ? AND status = 'answered'"
_REOPEN = """
    UPDATE question SET status = 'open', replaceable = 0, settled_at = NULL, settle_seq = NULL, "by" = NULL,
        comment = NULL, answer = NULL, token = NULL, reason = NULL
    WHERE id = ? AND tid = ? AND status = 'answered'"""
# The thread's row counts its events, those that are being added too.
_ADD_EVENT = """
    INSERT INTO event (key, kind, at, ref, data)
    VALUES (? + (SELECT events FROM thread WHERE tid = ?), ?, ?, ?, ?)"""

_CUT = (
    "DELETE FROM checkpoint WHERE tid = ? AND ns = ? AND id = ?",
    "DELETE FROM outcome WHERE tid = ? AND ns = ? AND checkpoint_id = ?",
    "DELETE FROM journal WHERE tid = ? AND ns = ? AND checkpoint_id = ?",
)
# Each has an index of its own: the root's questions, and those of graphs inside.
_CUT_QUESTIONS = (
    "DELETE FROM question WHERE tid = ? AND root_checkpoint = ? AND ns = '' AND checkpoint_id = root_checkpoint",
    "DELETE FROM question WHERE tid = ? AND ns = ? AND ns <> '' AND checkpoint_id = ?",
)
_CUT_JOURNAL = "DELETE FROM journal WHERE tid = ? AND ns = ? AND checkpoint_id = ? AND task_id = ? AND seq = ?"
_CUT_ITEMS = "DELETE FROM item WHERE key >= ? AND key < ?"

_DELETE = (
    "DELETE FROM checkpoint WHERE tid = ?",
    "DELETE FROM outcome WHERE tid = ?",
    "DELETE FROM journal WHERE tid = ?",
    "DELETE FROM question WHERE tid = ?",
    "DELETE FROM thread WHERE tid = ?",
)
_DELETE_NUMBERED = (
    "DELETE FROM item WHERE key BETWEEN ? AND ?",
    "DELETE FROM event WHERE key BETWEEN ? AND ?",
)


class Transitions:
    """The transitions of one database. It remembers the numbers of the threads that run."""

    def __init__(self) -> None:
        self._tids: dict[ThreadKey, int] = {}

    def move(self, cursor: Cursor, change: Move) -> None:
        """Apply a `Move`."""
        key, then = change.key, change.then
        tid, now = find_numbered_thread(cursor, key)
        rules.check_move(now, change)
        values = (*rules.values_of_thread(then)[1:], len(change.writes.events))
        if now is None:
            cursor.execute(_ADD_THREAD, (*values, *key))
            tid = cursor.lastrowid or 0
        else:
            cursor.execute(_PUT_THREAD, (*values, tid))
        if then.status == "running":
            self._remember(key, tid)
        add(cursor, key, tid, change.writes, then.updated_at)

    def commit(self, cursor: Cursor, change: Commit) -> None:
        """Apply a `Commit`."""
        key, rest = change.key, change.rest
        tid = self._tids.get(key)
        if tid is None:
            tid = find_tid(cursor, key)
            self._remember(key, tid)
        told = (change.head, change.next_item, change.at, len(change.writes.events))
        where = (tid, key.thread_id, key.graph, change.fence)
        if rest is None:
            cursor.execute(_COMMIT, (*told, *where))
        else:
            cursor.execute(_REST, (*told, rest.status, rest.error, *where, rest.answer_seq))
        if cursor.rowcount != 1:
            del self._tids[key]
            refusal = rules.refuse_commit(find_thread(cursor, key), change)
            if refusal is not None:
                raise refusal
            self.commit(cursor, change)  # only the number was wrong
            return
        if rest is not None:
            del self._tids[key]  # a thread that rests, for days perhaps, takes no memory here
        add(cursor, key, tid, change.writes, change.at)

    def _remember(self, key: ThreadKey, tid: int) -> None:
        if len(self._tids) >= _KNOWN_TIDS:
            self._tids.clear()
        self._tids[key] = tid

    def settle(self, cursor: Cursor, change: Settle) -> ThreadRow:
        """Apply a `Settle`."""
        tid, now = find_numbered_thread(cursor, change.key)
        questions = [find_question(cursor, settlement.id) for settlement in change.settlements]
        row = rules.check_settle(now, questions, change)
        rules.after_settle(row, change)
        if change.claim is not None and row.owner == change.claim[0]:
            self._remember(change.key, tid)
        cursor.execute(_PUT_THREAD, (*rules.values_of_thread(row)[1:], len(change.writes.events), tid))
        add(cursor, change.key, tid, change.writes, row.updated_at)
        # Last, so that no row of `writes` changes them.
        cursor.executemany(_SETTLE, [_settled(settlement, row.answer_seq) for settlement in change.settlements])
        return row

    def record(self, cursor: Cursor, change: Record) -> bool:
        """Apply a `Record`."""
        tid, new = find_tid(cursor, change.key), change.journal
        if not rules.is_executing(_journal_entry(cursor, tid, new), new.token):
            return False
        _put_journal(cursor, tid, new)
        cursor.execute(_TOUCH, (change.at, tid))
        return True


def _settled(settlement: Settlement, answer_seq: int) -> Values:
    s = settlement
    return s.status, s.at, answer_seq, s.by, s.comment, s.answer, s.token, s.reason, s.id


def beat(cursor: Cursor, change: tuple[str, float]) -> None:
    """Extend the lease of all threads that this owner runs."""
    owner, lease_until = change
    cursor.execute(_BEAT, (lease_until, owner))


def cut(cursor: Cursor, change: Cut) -> None:
    """Apply a `Cut`."""
    tid, now = find_numbered_thread(cursor, change.key)
    rules.check_cut(now, change)
    assert now is not None
    if change.whole:
        _delete(cursor, tid)
        return
    _cut_rows(cursor, tid, change)
    rules.after_cut(now, change)
    cursor.execute(_PUT_THREAD, (*rules.values_of_thread(now)[1:], len(change.events), tid))
    if change.events:
        _append_events(cursor, tid, change.events)


def _cut_rows(cursor: Cursor, tid: int, change: Cut) -> None:
    places = [(tid, ns, name) for ns, name in change.checkpoints]
    for statement in _CUT:
        cursor.executemany(statement, places)
    at_root, below = _CUT_QUESTIONS
    cursor.executemany(at_root, [(tid, name) for _, ns, name in places if not ns])
    cursor.executemany(below, [place for place in places if place[1]])
    cursor.executemany(_CUT_JOURNAL, [(tid, *entry) for entry in change.journal])
    cursor.executemany(_CUT_ITEMS, [(tid << 32 | start, (tid << 32) + end) for start, end in change.items])


def delete_thread(cursor: Cursor, thread_id: str) -> None:
    """Remove all rows of a thread, of all graphs."""
    cursor.execute("SELECT tid FROM thread WHERE thread_id = ?", (thread_id,))
    for (tid,) in cursor.fetchall():
        _delete(cursor, tid)


def _delete(cursor: Cursor, tid: int) -> None:
    for statement in _DELETE:
        cursor.execute(statement, (tid,))
    for statement in _DELETE_NUMBERED:
        cursor.execute(statement, (tid << 32, (tid << 32) + 0xFFFF_FFFF))


# --- rows in ----------------------------------------------------------------------------------------------------------


def add(cursor: Cursor, key: ThreadKey, tid: int, writes: Writes, at: float) -> None:
    """Add the rows of a transition, in the order of the fields of `Writes`."""
    if writes.checkpoints:
        new = [(tid, *rows.of_checkpoint(row)) for row in writes.checkpoints]
        if not _inserted(cursor, _ADD_CHECKPOINT, new):
            _insert_checkpoints(cursor, key, new)
    if writes.items:
        pairs = [(tid << 32 | item.seq, item.data) for item in writes.items]
        if not _inserted(cursor, _ADD_ITEM, pairs):
            _insert_items(cursor, key, pairs)
    if writes.outcomes:
        cursor.executemany(_PUT_OUTCOME, [(tid, *rows.of_outcome(row)) for row in writes.outcomes])
    for entry in writes.journal:
        _put_journal(cursor, tid, entry)
    if writes.questions:
        _insert_questions(cursor, key, tid, writes)
    if writes.withdrawn or writes.replaceable or writes.final or writes.reopened:
        _change_questions(cursor, tid, writes, at)
    if writes.events:
        _append_events(cursor, tid, writes.events)


def _inserted(cursor: Cursor, statement: str, new: Sequence[Values]) -> bool:
    """Insert all of these rows; False if some exist, and then some may have been inserted."""
    try:
        cursor.executemany(statement, new)
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorname in {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"}:
            return False
        raise
    return True


def _insert_checkpoints(cursor: Cursor, key: ThreadKey, new: Sequence[Values]) -> None:
    for values in new:
        tid, ns, name, *_ = values
        old = cursor.execute(_SAME_CHECKPOINT, (tid, ns, name)).fetchone()
        if old is None:
            cursor.execute(_ADD_CHECKPOINT, values)
        elif CHECKPOINT.repaired(old) != values[1:]:
            raise rules.stored_otherwise("checkpoint", name, key)


def _insert_items(cursor: Cursor, key: ThreadKey, new: Sequence[Values]) -> None:
    for number, data in new:
        old = cursor.execute(_SAME_ITEM, (number,)).fetchone()
        if old is None:
            cursor.execute(_ADD_ITEM, (number, data))
        elif old[0] != data:
            raise rules.stored_otherwise("item", number & 0xFFFF_FFFF, key)


def _insert_questions(cursor: Cursor, key: ThreadKey, tid: int, writes: Writes) -> None:
    if all(question.key == key for question in writes.questions):
        new = [(tid, *rows.of_question(question)) for question in writes.questions]
        if _inserted(cursor, _ADD_QUESTION, new):
            return
    for question in writes.questions:
        old = find_question(cursor, question.id)
        if question.key != key or (old is not None and old != question):
            raise rules.stored_otherwise("question", question.id, key)
        if old is None:
            cursor.execute(_ADD_QUESTION, (tid, *rows.of_question(question)))


def _change_questions(cursor: Cursor, tid: int, writes: Writes, at: float) -> None:
    cursor.executemany(_WITHDRAW, [(at, reason, name, tid) for name, reason in writes.withdrawn])
    cursor.executemany(_REPLACEABLE, [(1, name, tid) for name in writes.replaceable])
    cursor.executemany(_REPLACEABLE, [(0, name, tid) for name in writes.final])
    cursor.executemany(_REOPEN, [(name, tid) for name in writes.reopened])


def _append_events(cursor: Cursor, tid: int, events: Sequence[EventRow]) -> None:
    first = (tid << 32) - len(events) + 1
    cursor.executemany(_ADD_EVENT, [(first + n, tid, e.kind, e.at, e.ref, e.data) for n, e in enumerate(events)])


def _journal_entry(cursor: Cursor, tid: int, entry: JournalRow) -> JournalRow | None:
    where = (tid, entry.ns, entry.checkpoint_id, entry.task_id, entry.seq)
    found = cursor.execute(_FIND_JOURNAL, where).fetchone()
    return None if found is None else rows.journal_row(found)


def _put_journal(cursor: Cursor, tid: int, entry: JournalRow) -> None:
    old = _journal_entry(cursor, tid, entry)
    if old is None:
        cursor.execute(_ADD_JOURNAL, (tid, *rows.of_journal(entry)))
    elif rules.may_replace(old, entry):
        ns, checkpoint_id, task_id, seq, *rest = rows.of_journal(entry)
        cursor.execute(_PUT_JOURNAL, (*rest, tid, ns, checkpoint_id, task_id, seq))
