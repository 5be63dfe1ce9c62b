"""Statements about runs, inside a transaction of their caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from waitpoint.checkpoint.base import ThreadKey
from waitpoint.checkpoint.sqlite.rows import Cursor
from waitpoint.ledger.base import (
    ACTIVE,
    CancelAction,
    Document,
    LogEntry,
    RunRow,
    RunStatus,
    ThreadRecord,
    run_active,
)
from waitpoint.ledger.sqlite import columns, log, threads

_SELECT = f"SELECT {columns.RUN} FROM run"
_ACTIVE = "status IN ('pending', 'running')"
# The oldest due run of a thread in which nothing runs and nothing older is due.
_NEXT = f"""
    {_SELECT} AS r WHERE status = 'pending' AND due_at <= ? AND graph IN (%s)
        AND NOT EXISTS (SELECT 1 FROM run o WHERE o.thread_id = r.thread_id AND (
            o.status = 'running' OR (o.status = 'pending' AND o.due_at <= ? AND o.number < r.number)))
    ORDER BY due_at, number LIMIT 1"""


def one(cursor: Cursor, run_id: str) -> RunRow | None:
    """Return a run."""
    found = cursor.execute(f"{_SELECT} WHERE id = ?", (run_id,)).fetchone()
    return None if found is None else columns.run(found)


def add(cursor: Cursor, given: tuple[RunRow, ThreadKey]) -> RunRow:
    """Insert a run, with a record for its thread."""
    run, key = given
    if run.token is not None and (there := of_token(cursor, run.thread_id, run.token)) is not None:
        return there
    active = cursor.execute(f"SELECT id FROM run WHERE thread_id = ? AND {_ACTIVE}", (run.thread_id,)).fetchall()
    if active and run.strategy == "reject":
        raise run_active(run.thread_id, [id_ for (id_,) in active])
    if run.strategy in ("interrupt", "rollback"):
        for (id_,) in active:
            cancel(cursor, (id_, run.strategy, run.created_at))
    named = {"graph_id": run.graph, "assistant_id": run.assistant_id}
    made = ThreadRecord(run.thread_id, {}, run.created_at, run.created_at)
    seen = threads.seen(cursor, run.thread_id)
    known = {} if seen is None else seen.record.metadata
    metadata = {name: value for name, value in named.items() if name not in known}
    threads.change(cursor, threads.Change(run.thread_id, run.created_at, metadata, key, made=made))
    values = columns.run_values(run)
    cursor.execute(f"INSERT INTO run ({columns.RUN}) VALUES ({columns.marks(len(values))})", values)
    return run


def of_token(cursor: Cursor, thread_id: str, token: str) -> RunRow | None:
    """Return the run of a thread that has a token."""
    found = cursor.execute(f"{_SELECT} WHERE thread_id = ? AND token = ?", (thread_id, token)).fetchone()
    return None if found is None else columns.run(found)


def listed(
    cursor: Cursor, thread_id: str | None, status: Sequence[RunStatus] | None, limit: int | None, offset: int
) -> list[RunRow]:
    """Return runs, newest first."""
    where, values = _conditions(thread_id, status)
    values += [-1 if limit is None else limit, offset]
    statement = f"{_SELECT} WHERE {where} ORDER BY number DESC LIMIT ? OFFSET ?"
    return [columns.run(each) for each in cursor.execute(statement, values).fetchall()]


def count(cursor: Cursor, thread_id: str | None, status: Sequence[RunStatus] | None) -> int:
    """Return how many `listed` would list."""
    where, values = _conditions(thread_id, status)
    (number,) = cursor.execute(f"SELECT count(*) FROM run WHERE {where}", values).fetchone()
    return int(number)


def _conditions(thread_id: str | None, status: Sequence[RunStatus] | None) -> tuple[str, list[Any]]:
    parts: list[str] = ["1"]
    values: list[Any] = []
    if thread_id is not None:
        parts.append("thread_id = ?")
        values.append(thread_id)
    if status is not None:
        parts.append(f"status IN ({columns.marks(len(status))})")
        values += status
    return " AND ".join(parts), values


def claim(cursor: Cursor, claim_: tuple[str, float, float, Sequence[str]]) -> RunRow | None:
    """Take the next run that is due."""
    owner, lease_until, at, graphs = claim_
    found = cursor.execute(_NEXT % columns.marks(len(graphs)), (at, *graphs, at)).fetchone()
    if found is None:
        return None
    run = columns.run(found)
    run.status, run.owner, run.lease_until, run.updated_at, run.attempt = (
        "running",
        owner,
        lease_until,
        at,
        run.attempt + 1,
    )
    cursor.execute(
        "UPDATE run SET status = 'running', owner = ?, lease_until = ?, updated_at = ?, attempt = ? WHERE id = ?",
        (owner, lease_until, at, run.attempt, run.id),
    )
    return run


def end(cursor: Cursor, ended: tuple[str, str, RunStatus, Document, LogEntry]) -> bool:
    """Give a run its last status and its log the last entry, if its owner still has it."""
    run_id, owner, status, outcome, last = ended
    cursor.execute(
        "UPDATE run SET status = ?, outcome = ?, updated_at = ?, owner = NULL, lease_until = NULL"
        " WHERE id = ? AND owner = ? AND status = 'running'",
        (status, columns.text(outcome), last.at, run_id, owner),
    )
    if cursor.rowcount == 0:
        return False
    log.append(cursor, [last])
    return True


def give_back(cursor: Cursor, given: tuple[str, str, float]) -> bool:
    """Make a run pending again, if its owner still has it."""
    run_id, owner, at = given
    cursor.execute(
        "UPDATE run SET status = 'pending', updated_at = ?, owner = NULL, lease_until = NULL"
        " WHERE id = ? AND owner = ? AND status = 'running'",
        (at, run_id, owner),
    )
    return cursor.rowcount == 1


def cancel(cursor: Cursor, wanted: tuple[str, CancelAction, float]) -> RunRow | None:
    """Tell a run to stop; one that has not begun is over by that."""
    run_id, action, at = wanted
    run = one(cursor, run_id)
    if run is None or run.status not in ACTIVE:
        return run
    cursor.execute("UPDATE run SET cancel = ?, updated_at = ? WHERE id = ?", (action, at, run_id))
    if run.status == "pending":
        cursor.execute("UPDATE run SET status = 'interrupted' WHERE id = ?", (run_id,))
        if action == "rollback":
            delete(cursor, run_id)
        else:
            told = columns.text({"run_id": run_id, "status": "interrupted"}).encode()
            log.append(cursor, [LogEntry(run.thread_id, run_id, "end", "", at, told)])
    return one(cursor, run_id)


def delete(cursor: Cursor, run_id: str) -> bool:
    """Remove an ended run and what was logged of it."""
    cursor.execute(f"DELETE FROM run WHERE id = ? AND NOT {_ACTIVE}", (run_id,))
    if cursor.rowcount == 0:
        return False
    cursor.execute("DELETE FROM log_entry WHERE run_id = ?", (run_id,))
    return True


def beat(cursor: Cursor, given: tuple[str, float]) -> None:
    """Extend the leases of an owner."""
    owner, lease_until = given
    cursor.execute("UPDATE run SET lease_until = ? WHERE status = 'running' AND owner = ?", (lease_until, owner))


def running(cursor: Cursor) -> list[RunRow]:
    """Return all runs that somebody runs."""
    return [columns.run(each) for each in cursor.execute(f"{_SELECT} WHERE status = 'running'").fetchall()]


def next_due(cursor: Cursor, after: float) -> float | None:
    """When the next run falls due."""
    (found,) = cursor.execute(
        "SELECT min(due_at) FROM run WHERE status = 'pending' AND due_at > ?", (after,)
    ).fetchone()
    return None if found is None else float(found)


def due_hooks(cursor: Cursor, at: float, limit: int) -> list[RunRow]:
    """Return ended runs whose webhook is due."""
    statement = (
        f"{_SELECT} WHERE hook_at IS NOT NULL AND hook_at <= ? AND NOT {_ACTIVE} ORDER BY hook_at, number LIMIT ?"
    )
    return [columns.run(each) for each in cursor.execute(statement, (at, limit)).fetchall()]


def change_hook(cursor: Cursor, given: tuple[RunRow, float | None, Document | None]) -> bool:
    """Set when a webhook is tried next, if it is due as the caller has seen it."""
    run, hook_at, told = given
    patch = columns.text({} if told is None else {"webhook": told})
    cursor.execute(
        "UPDATE run SET hook_at = ?, outcome = json_patch(outcome, ?) WHERE id = ? AND hook_at = ?",
        (hook_at, patch, run.id, run.hook_at),
    )
    return cursor.rowcount == 1


assert ACTIVE == ("pending", "running")  # as the statements above have it
