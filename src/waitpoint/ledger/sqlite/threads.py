"""Statements about threads, inside a transaction of their caller.

A search sees the threads that were made over the network and those that only the saver knows, which somebody ran from a
program or a terminal: both lie in one file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from waitpoint.checkpoint.base import ThreadKey, ThreadRow
from waitpoint.checkpoint.sqlite.rows import Cursor
from waitpoint.ledger.base import Document, SeenThread, ThreadFilter, ThreadRecord
from waitpoint.ledger.sqlite import columns

_ACTIVE = "EXISTS (SELECT 1 FROM run WHERE run.thread_id = s.id AND status IN ('pending', 'running'))"
_STATUS = f"""CASE WHEN {_ACTIVE} OR t.status = 'running' THEN 'busy'
    WHEN t.status = 'waiting' THEN 'interrupted' WHEN t.status = 'failed' THEN 'error'
    WHEN s.halted IS t.fence AND t.fence IS NOT NULL THEN 'interrupted' WHEN t.status = 'ready' THEN 'busy'
    ELSE 'idle' END"""
# The last thread of its id that only the saver knows is seen as if it had a record.
_SEEN = f"""
    WITH seen AS (
        SELECT {columns.THREAD} FROM served_thread
        UNION ALL
        SELECT thread_id, '{{}}', created_at, max(updated_at), graph, NULL, NULL, 'delete' FROM thread
        WHERE NOT EXISTS (SELECT 1 FROM served_thread WHERE id = thread_id) GROUP BY thread_id
    )"""
_ROW = (
    "t.status, t.fence, t.answer_seq, t.next_item, t.head, t.owner, t.lease_until, t.error, t.created_at, t.updated_at"
)
_COLUMNS = (
    "s.id, s.metadata, s.created_at, max(s.updated_at, coalesce(t.updated_at, 0)) AS changed_at, s.graph, s.halted, "
    f"s.ttl, s.ttl_strategy, {_ROW}, {_ACTIVE}, {_STATUS} AS wire_status"
)
_FROM = "FROM seen s LEFT JOIN thread t ON t.thread_id = s.id AND t.graph = s.graph"
_ORDER = {"created_at": "s.created_at", "updated_at": "changed_at", "thread_id": "s.id", "status": "wire_status"}


@dataclass(slots=True)
class Change:
    """What is to be set in a thread's record."""

    thread_id: str
    at: float
    metadata: Document | None = None
    key: ThreadKey | None = None
    halted: int | None = None
    ttl: float | None = None
    ttl_strategy: str | None = None
    set_halted: bool = False
    made: ThreadRecord | None = field(default=None)  # stored if there is none


def record(cursor: Cursor, thread_id: str) -> ThreadRecord | None:
    """Return the record of a thread that has one."""
    found = cursor.execute(f"SELECT {columns.THREAD} FROM served_thread WHERE id = ?", (thread_id,)).fetchone()
    return None if found is None else columns.thread(found)


def add(cursor: Cursor, made: ThreadRecord) -> ThreadRecord | None:
    """Insert a record, or return the one that is there."""
    there = seen(cursor, made.id)
    if there is not None:
        return there.record
    _insert(cursor, made)
    return None


def _insert(cursor: Cursor, made: ThreadRecord) -> None:
    values = columns.thread_values(made)
    cursor.execute(f"INSERT INTO served_thread ({columns.THREAD}) VALUES ({columns.marks(len(values))})", values)


def change(cursor: Cursor, wanted: Change) -> ThreadRecord | None:
    """Set what is wanted; a thread that only the saver knows gets a record by that."""
    now = record(cursor, wanted.thread_id)
    if now is None:
        known = seen(cursor, wanted.thread_id)
        now = wanted.made if known is None else known.record
        if now is None:
            return None
        _insert(cursor, now)
    now.metadata = {**now.metadata, **(wanted.metadata or {})}
    now.key = wanted.key or now.key
    now.halted = wanted.halted if wanted.set_halted else now.halted
    now.ttl = now.ttl if wanted.ttl is None else wanted.ttl
    now.ttl_strategy = wanted.ttl_strategy or now.ttl_strategy
    now.updated_at = wanted.at
    id_, *values = columns.thread_values(now)
    names = " = ?, ".join(columns.THREAD.split(", ")[1:])
    cursor.execute(f"UPDATE served_thread SET {names} = ? WHERE id = ?", (*values, id_))
    return now


def seen(cursor: Cursor, thread_id: str) -> SeenThread | None:
    """Return one thread as a search would show it."""
    found = cursor.execute(f"{_SEEN} SELECT {_COLUMNS} {_FROM} WHERE s.id = ?", (thread_id,)).fetchone()
    return None if found is None else _seen(found)


def listed(cursor: Cursor, wanted: ThreadFilter) -> list[SeenThread]:
    """Return the threads that fit, in order."""
    where, values, is_exact = _conditions(wanted)
    order = f"{_ORDER[wanted.order_by]} {'ASC' if wanted.ascending else 'DESC'}, s.id"
    limit, offset = -1 if wanted.limit is None else wanted.limit, wanted.offset
    statement = f"{_SEEN} SELECT {_COLUMNS} {_FROM} WHERE {where} ORDER BY {order}"
    if is_exact:
        found = cursor.execute(f"{statement} LIMIT ? OFFSET ?", (*values, limit, offset)).fetchall()
        return [_seen(each) for each in found]
    fitting = [_seen(each) for each in cursor.execute(statement, values).fetchall()]
    fitting = [each for each in fitting if columns.is_contained(wanted.metadata, each.record.metadata)]
    return fitting[offset:] if wanted.limit is None else fitting[offset : offset + wanted.limit]


def count(cursor: Cursor, wanted: ThreadFilter) -> int:
    """Count the threads that fit."""
    where, values, is_exact = _conditions(wanted)
    if is_exact:
        (number,) = cursor.execute(
            f"{_SEEN} SELECT count(*) FROM (SELECT {_COLUMNS} {_FROM} WHERE {where})", values
        ).fetchone()
        return int(number)
    everything = ThreadFilter(wanted.ids, wanted.metadata, wanted.status)
    return len(listed(cursor, everything))


def _conditions(wanted: ThreadFilter) -> tuple[str, tuple[Any, ...], bool]:
    """Return the condition, its values, and whether it says all that is wanted."""
    parts, values, is_exact = ["1"], [], True
    if wanted.ids is not None:
        parts.append(f"s.id IN ({columns.marks(len(wanted.ids))})")
        values += list(wanted.ids)
    if wanted.status is not None:
        parts.append("wire_status = ?")
        values.append(wanted.status)
    for key, value in wanted.metadata.items():
        if isinstance(value, str):
            parts.append("EXISTS (SELECT 1 FROM json_each(s.metadata) WHERE key = ? AND type = 'text' AND atom = ?)")
            values += [key, value]
        else:
            is_exact = False
    return " AND ".join(parts), tuple(values), is_exact


def _seen(found: tuple[Any, ...]) -> SeenThread:
    known = columns.thread(found[:8])
    row = None
    if known.key is not None and found[8] is not None:
        row = ThreadRow(known.key, *found[8:18])
    return SeenThread(known, row, bool(found[18]), found[19])


def expired(cursor: Cursor, at: float) -> list[ThreadRecord]:
    """Return the threads whose time is over and that nothing is done with."""
    names = ", ".join(f"s.{name}" for name in columns.THREAD.split(", "))
    found = cursor.execute(
        f"SELECT {names} FROM served_thread s WHERE s.ttl IS NOT NULL AND NOT {_ACTIVE}"
        " AND NOT EXISTS (SELECT 1 FROM run WHERE run.thread_id = s.id AND hook_at IS NOT NULL)"
        " AND max(s.updated_at, coalesce((SELECT max(t.updated_at) FROM thread t WHERE t.thread_id = s.id), 0))"
        " + 60 * s.ttl <= ?",
        (at,),
    ).fetchall()
    return [columns.thread(each) for each in found]


def forget(cursor: Cursor, thread_id: str) -> bool:
    """Remove what the ledger has of a thread."""
    changed = 0
    for table, column in (("served_thread", "id"), ("run", "thread_id"), ("log_entry", "thread_id")):
        cursor.execute(f"DELETE FROM {table} WHERE {column} = ?", (thread_id,))
        changed += cursor.rowcount
    return changed > 0
