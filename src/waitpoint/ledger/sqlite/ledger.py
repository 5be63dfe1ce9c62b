"""The SQLite ledger: the port's operations on a database file."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from waitpoint.checkpoint.base import ThreadKey
from waitpoint.checkpoint.sqlite.holder import Holder
from waitpoint.checkpoint.sqlite.rows import Cursor
from waitpoint.ledger.base import (
    AssistantRow,
    CancelAction,
    Document,
    KeyRow,
    Ledger,
    LogEntry,
    RunRow,
    RunStatus,
    SeenThread,
    ThreadFilter,
    ThreadRecord,
)
from waitpoint.ledger.sqlite import assistants, columns, log, runs, threads


class SqliteLedger(Holder, Ledger):
    """A server's ledger in the SQLite file of its threads; `source` as for `SqliteSaver`."""

    def __init__(self, source: sqlite3.Connection | str | Path, *, busy_timeout: float = 30.0) -> None:
        self._hold(source, busy_timeout, "ledger")

    # --- assistants ---

    def add_assistant(self, row: AssistantRow) -> AssistantRow | None:
        return self._database.write(assistants.add, row, durable=True)

    def change_assistant(self, row: AssistantRow) -> AssistantRow:
        return self._database.write(assistants.change, row, durable=True)

    def choose_version(self, assistant_id: str, version: int) -> AssistantRow | None:
        return self._database.write(assistants.choose, (assistant_id, version), durable=True)

    def assistants(
        self, *, ids: Sequence[str] | None = None, metadata: Mapping[str, Any] | None = None
    ) -> list[AssistantRow]:
        return self._database.read(assistants.listed, ids, metadata)

    def versions(self, assistant_id: str) -> list[AssistantRow]:
        return self._database.read(assistants.versions, assistant_id)

    def delete_assistant(self, assistant_id: str) -> bool:
        return self._database.write(assistants.delete, assistant_id, durable=True)

    # --- threads ---

    def add_thread(self, record: ThreadRecord) -> ThreadRecord | None:
        return self._database.write(threads.add, record, durable=True)

    def thread(self, thread_id: str) -> SeenThread | None:
        return self._database.read(threads.seen, thread_id)

    def threads(self, wanted: ThreadFilter) -> list[SeenThread]:
        return self._database.read(threads.listed, wanted)

    def count_threads(self, wanted: ThreadFilter) -> int:
        return self._database.read(threads.count, wanted)

    def change_thread(
        self, thread_id: str, at: float, *, metadata: Mapping[str, Any] | None = None, key: ThreadKey | None = None,
        halted: int | None = -1, ttl: float | None = None, ttl_strategy: str | None = None,
    ) -> ThreadRecord | None:  # fmt: skip
        given = None if metadata is None else dict(metadata)
        change = threads.Change(thread_id, at, given, key, halted, ttl, ttl_strategy, set_halted=halted != -1)
        return self._database.write(threads.change, change, durable=True)

    def forget_thread(self, thread_id: str) -> bool:
        return self._database.write(threads.forget, thread_id, durable=True)

    def expired(self, at: float) -> list[ThreadRecord]:
        return self._database.read(threads.expired, at)

    # --- runs ---

    def add_run(self, run: RunRow, key: ThreadKey) -> RunRow:
        return self._database.write(runs.add, (run, key), durable=True)

    def run(self, run_id: str) -> RunRow | None:
        return self._database.read(runs.one, run_id)

    def run_of_token(self, thread_id: str, token: str) -> RunRow | None:
        return self._database.read(runs.of_token, thread_id, token)

    def runs(
        self, *, thread_id: str | None = None, status: Sequence[RunStatus] | None = None, limit: int | None = None,
        offset: int = 0,
    ) -> list[RunRow]:  # fmt: skip
        return self._database.read(runs.listed, thread_id, status, limit, offset)

    def count_runs(self, *, thread_id: str | None = None, status: Sequence[RunStatus] | None = None) -> int:
        return self._database.read(runs.count, thread_id, status)

    def claim_run(self, owner: str, lease_until: float, at: float, graphs: Sequence[str]) -> RunRow | None:
        return self._database.write(runs.claim, (owner, lease_until, at, graphs), durable=False)

    def end_run(self, run_id: str, owner: str, status: RunStatus, outcome: Document, last: LogEntry) -> bool:
        return self._database.write(runs.end, (run_id, owner, status, outcome, last), durable=True)

    def give_back_run(self, run_id: str, owner: str, at: float) -> bool:
        return self._database.write(runs.give_back, (run_id, owner, at), durable=True)

    def cancel_run(self, run_id: str, action: CancelAction, at: float) -> RunRow | None:
        return self._database.write(runs.cancel, (run_id, action, at), durable=True)

    def delete_run(self, run_id: str) -> bool:
        return self._database.write(runs.delete, run_id, durable=True)

    def beat(self, owner: str, lease_until: float) -> None:
        self._database.write(runs.beat, (owner, lease_until), durable=False)

    def running(self) -> list[RunRow]:
        return self._database.read(runs.running)

    def next_due(self, after: float) -> float | None:
        return self._database.read(runs.next_due, after)

    # --- webhooks ---

    def due_hooks(self, at: float, limit: int = 100) -> list[RunRow]:
        return self._database.read(runs.due_hooks, at, limit)

    def change_hook(self, run: RunRow, hook_at: float | None, told: Document | None = None) -> bool:
        return self._database.write(runs.change_hook, (run, hook_at, told), durable=True)

    # --- the log ---

    def append(self, entries: Sequence[LogEntry]) -> list[LogEntry]:
        return self._database.write(log.append, entries, durable=False)

    def log(
        self, thread_id: str, *, after: int = 0, run_id: str | None = None, limit: int | None = None
    ) -> list[LogEntry]:
        return self._database.read(log.read, thread_id, after, run_id, limit)

    def last_entry(self, run_id: str, kind: str) -> LogEntry | None:
        return self._database.read(log.last_entry, run_id, kind)

    def last_seq(self, thread_id: str) -> int:
        return self._database.read(log.last_seq, thread_id)

    def touched(self, after: int) -> tuple[int, list[str]]:
        return self._database.read(log.touched, after)

    def prune_log(self, before: float, kinds: Sequence[str], limit: int = 100) -> int:
        return self._database.write(log.prune, (before, kinds, limit), durable=False)

    # --- keys ---

    def add_key(self, row: KeyRow) -> None:
        self._database.write(_add_key, row, durable=True)

    def api_keys(self) -> list[KeyRow]:
        return self._database.read(_keys)

    def revoke_key(self, key_id: str, at: float) -> bool:
        return self._database.write(_revoke_key, (key_id, at), durable=True)


def _add_key(cursor: Cursor, row: KeyRow) -> None:
    values = (row.id, row.name, row.hash, " ".join(row.scopes), row.created_at, row.revoked_at)
    cursor.execute(f"INSERT INTO api_key ({columns.KEY}) VALUES ({columns.marks(6)})", values)


def _keys(cursor: Cursor) -> list[KeyRow]:
    found = cursor.execute(f"SELECT {columns.KEY} FROM api_key ORDER BY created_at, id").fetchall()
    return [columns.key(each) for each in found]


def _revoke_key(cursor: Cursor, given: tuple[str, float]) -> bool:
    key_id, at = given
    cursor.execute("UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (at, key_id))
    return cursor.rowcount == 1
