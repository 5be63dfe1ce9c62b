"""The reads as statements; each function runs inside a read transaction, so that what it returns is one moment's."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from waitpoint.checkpoint import rules
from waitpoint.checkpoint.base import (
    CheckpointRow,
    EventRow,
    JournalRow,
    Loaded,
    PendingFilter,
    QuestionRow,
    Status,
    ThreadKey,
    ThreadRow,
    Whole,
)
from waitpoint.checkpoint.sqlite.rows import (
    CHECKPOINT,
    JOURNAL,
    OUTCOME,
    QUESTION,
    THREAD,
    Cursor,
    checkpoint_row,
    event_row,
    journal_row,
    outcome_row,
    question_row,
    thread_row,
)
from waitpoint.config import check_count

_NO_THREAD = -1
_ALL = -1  # as a LIMIT
_LAST_CHARACTER = "\U0010ffff"

_TID = "SELECT tid FROM thread WHERE thread_id = ? AND graph = ?"
_THREAD = THREAD.select("WHERE thread_id = ? AND graph = ?", first="tid, ")
_CHECKPOINT = CHECKPOINT.select("WHERE tid = ? AND ns = ? AND id = ?")
_NEWEST = CHECKPOINT.select("WHERE tid = ? AND ns = ? ORDER BY id DESC LIMIT ?")
_OLDER = CHECKPOINT.select("WHERE tid = ? AND ns = ? AND id < ? ORDER BY id DESC LIMIT ?")
_OUTCOMES = OUTCOME.select("WHERE tid = ? AND ns = ? AND checkpoint_id = ? ORDER BY at, task_id")
_JOURNAL = JOURNAL.select("WHERE tid = ? AND ns = ? AND checkpoint_id = ? ORDER BY at, task_id, seq")
_ENTRY = JOURNAL.select("WHERE tid = ? AND ns = ? AND checkpoint_id = ? AND task_id = ? AND seq = ?")
_ITEMS = "SELECT key & 0xFFFFFFFF, data FROM item WHERE key >= ? AND key < ?"
_EVENTS = "SELECT kind, at, ref, data, key & 0xFFFFFFFF FROM event WHERE key > ? AND key <= ? ORDER BY key LIMIT ?"

_ALL_CHECKPOINTS = CHECKPOINT.select("WHERE tid = ? ORDER BY ns, id")
_ALL_OUTCOMES = OUTCOME.select("WHERE tid = ? ORDER BY ns, checkpoint_id, task_id")
_ALL_JOURNAL = JOURNAL.select("WHERE tid = ? ORDER BY ns, checkpoint_id, task_id, seq")
_ALL_ITEMS = "SELECT key & 0xFFFFFFFF FROM item WHERE key BETWEEN ? AND ? ORDER BY key"

# CROSS JOIN keeps the order of the tables: of one thread its questions, of all threads the open questions in order.
_ALL_QUESTIONS = "question CROSS JOIN thread ON thread.tid = question.tid"
_OF_THREAD = "thread CROSS JOIN question ON question.tid = thread.tid"
_QUESTION = QUESTION.select("WHERE question.id = ?", _ALL_QUESTIONS)
_ASKED_AT_ROOT = QUESTION.select(
    "WHERE question.tid = ? AND question.root_checkpoint = ? ORDER BY asked_at, ns, task_id, seq", _ALL_QUESTIONS
)
_ASKED_BELOW = QUESTION.select(
    "WHERE question.tid = ? AND question.ns = ? AND question.checkpoint_id = ? AND question.ns <> '' "
    "ORDER BY asked_at, ns, task_id, seq",
    _ALL_QUESTIONS,
)
_ALL_OF_THREAD = QUESTION.select("WHERE question.tid = ? ORDER BY asked_at, ns, task_id, seq, id", _ALL_QUESTIONS)
_ANSWERABLE = "(question.status = 'open' OR (question.status = 'answered' AND question.replaceable))"
_OLDEST_FIRST = "ORDER BY asked_at, ns, task_id, seq, id"
_NEWEST_FIRST = "ORDER BY asked_at DESC, ns DESC, task_id DESC, seq DESC, id DESC"

_order_of_question = attrgetter("asked_at", "ns", "task_id", "seq", "id")


def find_tid(cursor: Cursor, key: ThreadKey) -> int:
    """Find the number of a thread; one that no row has if the thread does not exist."""
    found = cursor.execute(_TID, key).fetchone()
    if found is None:
        rules.check_key(key)
        return _NO_THREAD
    tid: int = found[0]
    return tid


def find_thread(cursor: Cursor, key: ThreadKey) -> ThreadRow | None:
    """Read a thread's row."""
    return find_numbered_thread(cursor, key)[1]


def find_numbered_thread(cursor: Cursor, key: ThreadKey) -> tuple[int, ThreadRow | None]:
    """Read a thread's number and row."""
    rules.check_key(key)
    found = cursor.execute(_THREAD, key).fetchone()
    return (_NO_THREAD, None) if found is None else (found[0], thread_row(found[1:]))


def load(cursor: Cursor, key: ThreadKey, ns: str, checkpoint_id: str | None) -> Loaded:
    """Read a namespace at its newest checkpoint (the root: at the thread's head) or at the one named."""
    tid, thread = find_numbered_thread(cursor, key)
    if thread is None:
        return Loaded(None, None, [], [], [])
    if checkpoint_id is None and ns == "":
        checkpoint_id = thread.head
    if checkpoint_id is None:
        values = cursor.execute(_NEWEST, (tid, ns, 1)).fetchone() if ns else None
    else:
        values = cursor.execute(_CHECKPOINT, (tid, ns, checkpoint_id)).fetchone()
    if values is None:
        return Loaded(thread, None, [], [], [])
    checkpoint = checkpoint_row(values)
    where = (tid, ns, checkpoint.id)
    outcomes = [outcome_row(values) for values in cursor.execute(_OUTCOMES, where)]
    journal = [journal_row(values) for values in cursor.execute(_JOURNAL, where)]
    asked = cursor.execute(_ASKED_BELOW, where) if ns else cursor.execute(_ASKED_AT_ROOT, (tid, checkpoint.id))
    return Loaded(thread, checkpoint, outcomes, journal, [question_row(values) for values in asked])


def entry(cursor: Cursor, key: ThreadKey, place: tuple[str, str, str, int]) -> JournalRow | None:
    """Read one journal entry."""
    found = cursor.execute(_ENTRY, (find_tid(cursor, key), *place)).fetchone()
    return None if found is None else journal_row(found)


def whole(cursor: Cursor, key: ThreadKey) -> Whole | None:
    """Read all of a thread but the data of its items."""
    tid, thread = find_numbered_thread(cursor, key)
    if thread is None:
        return None
    checkpoints = [checkpoint_row(values) for values in cursor.execute(_ALL_CHECKPOINTS, (tid,))]
    outcomes = [outcome_row(values) for values in cursor.execute(_ALL_OUTCOMES, (tid,))]
    journal = [journal_row(values) for values in cursor.execute(_ALL_JOURNAL, (tid,))]
    asked = [question_row(values) for values in cursor.execute(_ALL_OF_THREAD, (tid,))]
    numbers = [seq for (seq,) in cursor.execute(_ALL_ITEMS, (tid << 32, (tid << 32) + 0xFFFF_FFFF))]
    return Whole(thread, checkpoints, numbers, outcomes, journal, asked)


def items(cursor: Cursor, key: ThreadKey, ranges: Sequence[tuple[int, int]]) -> dict[int, bytes]:
    """Read items by half-open ranges of numbers."""
    first = find_tid(cursor, key) << 32
    found: dict[int, bytes] = {}
    for start, end in ranges:
        found.update(cursor.execute(_ITEMS, (first + start, first + end)))
    return found


def history(cursor: Cursor, key: ThreadKey, ns: str, before: str | None, limit: int | None) -> list[CheckpointRow]:
    """List checkpoints of a namespace, newest first, with ids smaller than `before`."""
    check_count("limit", limit)
    tid, most = find_tid(cursor, key), _ALL if limit is None else limit
    if before is None:
        return [checkpoint_row(values) for values in cursor.execute(_NEWEST, (tid, ns, most))]
    return [checkpoint_row(values) for values in cursor.execute(_OLDER, (tid, ns, before, most))]


def events(cursor: Cursor, key: ThreadKey, after: int, limit: int | None) -> list[EventRow]:
    """List a thread's record in order, from the event after number `after`."""
    check_count("limit", limit)
    first = find_tid(cursor, key) << 32
    where = (first + max(after, 0), first + 0xFFFF_FFFF, _ALL if limit is None else limit)
    return [event_row(values) for values in cursor.execute(_EVENTS, where)]


# --- over all threads -------------------------------------------------------------------------------------------------


def find_question(cursor: Cursor, id: str) -> QuestionRow | None:
    """Read a question's row."""
    found = cursor.execute(_QUESTION, (id,)).fetchone()
    return None if found is None else question_row(found)


def questions(cursor: Cursor, wanted: PendingFilter) -> list[QuestionRow]:
    """List questions over all threads, by the time they were asked, then by (ns, task_id, seq, id)."""
    rules.check_filter(wanted)
    if wanted.ids is not None:
        found = _named(cursor, wanted)
        found.sort(key=_order_of_question, reverse=wanted.newest_first)
        return found[wanted.offset : None if wanted.limit is None else wanted.offset + wanted.limit]
    tables, where, values = _conditions(wanted)
    order = _NEWEST_FIRST if wanted.newest_first else _OLDEST_FIRST
    most = _ALL if wanted.limit is None else wanted.limit
    statement = QUESTION.select(f"{where} {order} LIMIT ? OFFSET ?", tables)
    return [question_row(found) for found in cursor.execute(statement, (*values, most, wanted.offset))]


def count(cursor: Cursor, wanted: PendingFilter) -> int:
    """Count what `questions` would list without its limit."""
    rules.check_filter(wanted)
    if wanted.ids is not None:
        return len(_named(cursor, wanted))
    tables, where, values = _conditions(wanted)
    statement = f"SELECT count(*) FROM {tables} {where}"  # noqa: S608 - fixed parts, values are bound
    number: int = cursor.execute(statement, values).fetchone()[0]
    return number


def _named(cursor: Cursor, wanted: PendingFilter) -> list[QuestionRow]:
    found = [find_question(cursor, name) for name in rules.unique(wanted.ids or ())]
    return [
        row
        for row in found
        if row is not None
        and (row.can_answer or not wanted.answerable)
        and wanted.thread_id in {None, row.key.thread_id}
        and wanted.graph in {None, row.key.graph}
        and wanted.node in {None, row.node}
        and row.id.startswith(wanted.id_prefix or "")
    ]


def _conditions(wanted: PendingFilter) -> tuple[str, str, list[str]]:
    """Return the tables and the WHERE of a listing, and the values to bind."""
    named = {"thread.thread_id": wanted.thread_id, "thread.graph": wanted.graph, "question.node": wanted.node}
    equal = {column: value for column, value in named.items() if value is not None}
    terms = [_ANSWERABLE] * wanted.answerable + [f"{column} = ?" for column in equal]
    values = list(equal.values())
    if wanted.id_prefix is not None:
        terms.append("question.id >= ? AND question.id < ?")
        values += [wanted.id_prefix, wanted.id_prefix + _LAST_CHARACTER]
    tables = _ALL_QUESTIONS if wanted.thread_id is None else _OF_THREAD
    return tables, f"WHERE {' AND '.join(terms) or 'TRUE'}", values


def threads(
    cursor: Cursor, status: Status | None, thread_id: str | None, limit: int | None, offset: int,
    changed_before: float | None,
) -> list[ThreadRow]:  # fmt: skip
    """List threads, newest change first, then by id and graph."""
    check_count("limit", limit)
    check_count("offset", offset)
    if thread_id is not None:
        rules.check_text("thread_id", thread_id)
    # The index of due threads serves only a statement that names such a status in its text.
    by_status = f"status = '{status}'" if status in {"ready", "running"} else "status = ?"
    named = {by_status: status, "thread_id = ?": thread_id, "updated_at < ?": changed_before}
    equal = {term: value for term, value in named.items() if value is not None}
    where = " AND ".join(equal) or "TRUE"
    order = "ORDER BY updated_at DESC, thread_id, graph LIMIT ? OFFSET ?"
    statement = THREAD.select(f"WHERE {where} {order}")
    values = [value for term, value in equal.items() if "?" in term]
    most = _ALL if limit is None else limit
    return [thread_row(found) for found in cursor.execute(statement, (*values, most, offset))]
