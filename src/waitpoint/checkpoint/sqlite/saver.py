"""The SQLite saver: the port's methods on a database file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Self

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
    PendingFilter,
    QuestionRow,
    Record,
    Settle,
    Status,
    ThreadKey,
    ThreadRow,
    Whole,
)
from waitpoint.checkpoint.sqlite import reads, writes
from waitpoint.checkpoint.sqlite.holder import Holder


class SqliteSaver(Holder, BaseCheckpointSaver):
    """Keeps threads in a SQLite file that several threads and processes may use at once.

    `conn` is a path, ":memory:" or an open connection. Of a connection to a file only the path is used, and connections
    of our own are opened to it; one to a database in memory is used itself, and stays the caller's to close.
    `busy_timeout`: seconds to wait for other processes.

    Opened and brought to the present schema at the first use; errors are `StoreError`. Works as a context manager, and
    without: what is left open is closed with the program.
    """

    def __init__(self, conn: sqlite3.Connection | str | Path, *, busy_timeout: float = 30.0) -> None:
        self._hold(conn, busy_timeout, "saver")
        self._transitions = writes.Transitions()
        self._file = Path(self._database.name).resolve()

    @property
    def identity(self) -> str:
        """What database this is: that of two savers on one file is equal."""
        return super().identity if self._database.in_memory else f"sqlite:{self._file}"

    @classmethod
    def from_conn_string(cls, conn_string: str | Path, *, busy_timeout: float = 30.0) -> Self:
        """Return a saver for a path or ":memory:"; it is a context manager, too."""
        return cls(conn_string, busy_timeout=busy_timeout)

    def setup(self) -> None:
        """Create or migrate the database now, which the first use does anyway."""
        self._database.open()

    def vacuum(self) -> None:
        """Give the room of what was deleted or pruned back to the file system; others wait while the file is rewritten."""
        self._database.vacuum()

    # --- transitions --------------------------------------------------------------------------------------------------

    def move(self, change: Move) -> None:
        """Apply a `Move`."""
        self._database.write(self._transitions.move, change, change.durable)

    def commit(self, change: Commit) -> None:
        """Apply a `Commit`."""
        self._database.write(self._transitions.commit, change, change.durable)

    def settle(self, change: Settle) -> ThreadRow:
        """Apply a `Settle`."""
        return self._database.write(self._transitions.settle, change, durable=True)

    def record(self, change: Record) -> bool:
        """Apply a `Record`."""
        return self._database.write(self._transitions.record, change, durable=True)

    def cut(self, change: Cut) -> None:
        """Apply a `Cut`."""
        self._database.write(writes.cut, change, durable=True)

    def beat(self, owner: str, lease_until: float) -> None:
        """Extend the lease of all threads that `owner` runs."""
        self._database.write(writes.beat, (owner, lease_until), durable=False)

    def delete_thread(self, thread_id: str) -> None:
        """Remove all rows of a thread, of all graphs."""
        rules.check_text("thread_id", thread_id)
        self._database.write(writes.delete_thread, thread_id, durable=True)

    # --- reads --------------------------------------------------------------------------------------------------------

    def thread(self, key: ThreadKey) -> ThreadRow | None:
        """Read a thread's row."""
        return self._database.read(reads.find_thread, key)

    def load(self, key: ThreadKey, ns: str = "", checkpoint_id: str | None = None) -> Loaded:
        """Read a namespace at its newest checkpoint (the root: at the thread's head) or at the one named."""
        return self._database.read(reads.load, key, ns, checkpoint_id)

    def entry(self, key: ThreadKey, ns: str, checkpoint_id: str, task_id: str, seq: int) -> JournalRow | None:
        """Read one journal entry."""
        return self._database.read(reads.entry, key, (ns, checkpoint_id, task_id, seq))

    def whole(self, key: ThreadKey) -> Whole | None:
        """Read all of a thread in one snapshot; the data of items is left out."""
        return self._database.read(reads.whole, key)

    def items(self, key: ThreadKey, ranges: Sequence[tuple[int, int]]) -> dict[int, bytes]:
        """Read items by half-open ranges of numbers."""
        return self._database.read(reads.items, key, ranges)

    def history(
        self, key: ThreadKey, ns: str = "", *, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRow]:
        """List checkpoints of a namespace, newest first, with ids smaller than `before`."""
        return self._database.read(reads.history, key, ns, before, limit)

    def questions(self, wanted: PendingFilter) -> list[QuestionRow]:
        """List questions over all threads, by the time they were asked, then by (ns, task_id, seq, id)."""
        return self._database.read(reads.questions, wanted)

    def count(self, wanted: PendingFilter) -> int:
        """Count what `questions` would list without its limit."""
        return self._database.read(reads.count, wanted)

    def threads(
        self, *, status: Status | None = None, thread_id: str | None = None, limit: int | None = None, offset: int = 0,
        changed_before: float | None = None,
    ) -> list[ThreadRow]:  # fmt: skip
        """List threads, newest change first, then by id and graph."""
        return self._database.read(reads.threads, status, thread_id, limit, offset, changed_before)

    def events(self, key: ThreadKey, *, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """List a thread's record in order, from the event after number `after`."""
        return self._database.read(reads.events, key, after, limit)
