"""Statements about the log, inside a transaction of their caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from waitpoint.checkpoint.sqlite.rows import Cursor
from waitpoint.ledger.base import LogEntry
from waitpoint.ledger.sqlite import columns

_INSERT = f"INSERT INTO log_entry ({columns.LOG}) VALUES ({columns.marks(7)})"


def append(cursor: Cursor, entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Add entries, numbered within their threads; a thread that was forgotten meanwhile takes none."""
    last: dict[str, int | None] = {}
    kept = []
    for entry in entries:
        if entry.thread_id not in last:
            found = cursor.execute("SELECT last_seq FROM served_thread WHERE id = ?", (entry.thread_id,)).fetchone()
            last[entry.thread_id] = None if found is None else found[0]
        before = last[entry.thread_id]
        if before is not None:
            entry.seq = last[entry.thread_id] = before + 1
            kept.append(entry)
    cursor.executemany(_INSERT, [entry._fields() for entry in kept])
    cursor.executemany(
        "UPDATE served_thread SET last_seq = ? WHERE id = ?",
        [(seq, id_) for id_, seq in last.items() if seq is not None],
    )
    return kept


def read(cursor: Cursor, thread_id: str, after: int, run_id: str | None, limit: int | None) -> list[LogEntry]:
    """Return entries in order."""
    values: list[Any] = [thread_id, after]
    condition = ""
    if run_id is not None:
        condition = "AND run_id = ?"
        values.append(run_id)
    values.append(-1 if limit is None else limit)
    statement = f"SELECT {columns.LOG} FROM log_entry WHERE thread_id = ? AND seq > ? {condition} ORDER BY seq LIMIT ?"
    return [columns.entry(each) for each in cursor.execute(statement, values).fetchall()]


def last_entry(cursor: Cursor, run_id: str, kind: str) -> LogEntry | None:
    """Return a run's newest entry of a kind, of the outermost graph."""
    statement = (
        f"SELECT {columns.LOG} FROM log_entry WHERE run_id = ? AND kind = ? AND ns = '' ORDER BY number DESC LIMIT 1"
    )
    found = cursor.execute(statement, (run_id, kind)).fetchone()
    return None if found is None else columns.entry(found)


def last_seq(cursor: Cursor, thread_id: str) -> int:
    """Return the number of a thread's last entry."""
    found = cursor.execute("SELECT last_seq FROM served_thread WHERE id = ?", (thread_id,)).fetchone()
    return 0 if found is None else int(found[0])


def touched(cursor: Cursor, after: int) -> tuple[int, list[str]]:
    """Return how far the log goes, and whose threads have entries after a position."""
    (last,) = cursor.execute("SELECT coalesce(max(number), 0) FROM log_entry").fetchone()
    found = cursor.execute("SELECT DISTINCT thread_id FROM log_entry WHERE number > ?", (after,)).fetchall()
    return int(last), [id_ for (id_,) in found]


def prune(cursor: Cursor, wanted: tuple[float, Sequence[str], int]) -> int:
    """Remove entries of some kinds of runs that ended long ago, and note it in their outcome."""
    before, kinds, limit = wanted
    found = cursor.execute(
        "SELECT id FROM run WHERE is_pruned = 0 AND updated_at < ? AND status NOT IN ('pending', 'running')"
        " ORDER BY updated_at LIMIT ?",
        (before, limit),
    ).fetchall()
    for (id_,) in found:
        cursor.execute(
            f"DELETE FROM log_entry WHERE run_id = ? AND kind IN ({columns.marks(len(kinds))})", (id_, *kinds)
        )
        cursor.execute(
            "UPDATE run SET is_pruned = 1, outcome = json_set(outcome, '$.pruned', json('true')) WHERE id = ?", (id_,)
        )
    return len(found)
