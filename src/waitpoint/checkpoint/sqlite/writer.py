"""The one writer of a database: a lone caller commits directly, callers that meet share one commit.

Whoever comes while nobody writes takes the *turn* and commits its own change. Those that come meanwhile queue up; at
the end of its turn the writer wakes the first of them, which applies all that are queued in one transaction, each in a
savepoint of its own, so that a refused one takes nothing back but itself. The others wake to their results. One sync to
disk then serves all of them.

Crash window: a change is acknowledged only after COMMIT returned; before that nothing of it is there.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from waitpoint.checkpoint.sqlite.rows import CarefulCursor, Cursor
from waitpoint.errors import StoreError

Change = TypeVar("Change")
Result = TypeVar("Result")


class _Job:
    """A change that waits for its turn, or (`apply` None) a thread that wants the turn for itself."""

    __slots__ = ("apply", "change", "durable", "error", "is_settled", "result", "thread", "woken")

    def __init__(self, apply: Callable[[Cursor, Any], Any] | None, change: Any, durable: bool, thread: int) -> None:
        self.apply = apply
        self.change = change
        self.durable = durable
        self.thread = thread
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_settled = False
        self.woken = threading.Lock()
        self.woken.acquire()


class Writer:
    """Applies changes in transactions on one connection, which it opens when it needs it.

    `explain` turns an error of SQLite into what the caller gets; a new one each time, since several may get it.
    `check_file` refuses durable changes where the open file is not the one that its path names any more.
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], explain: Callable[[sqlite3.Error], StoreError],
        check_file: Callable[[], None],
    ) -> None:  # fmt: skip
        self._connect = connect
        self._explain = explain
        self._check_file = check_file
        self._cursor: sqlite3.Cursor | None = None
        self._is_full: bool | None = None  # `synchronous` of the connection: FULL or NORMAL
        self.restart()

    def restart(self) -> None:
        """Forget everybody who waits: in a forked child they do not exist."""
        self._gate = threading.Lock()  # guards the two below, and is never held while writing
        self._turn: int | None = None  # the thread whose turn it is
        self._queue: deque[_Job] = deque()

    def run(self, apply: Callable[[Cursor, Change], Result], change: Change, durable: bool) -> Result:
        """Apply a change and return its result once it is committed; `durable` waits for the disk."""
        me = threading.get_ident()
        job = None
        try:
            with self._gate:
                if self._turn is None:
                    self._turn = me
                else:
                    job = _Job(apply, change, durable, me)
                    self._queue.append(job)
            if job is None:
                return self._alone(apply, change, durable)
            job.woken.acquire()
            if not job.is_settled:
                self._together(self._queued())
        finally:
            # Also when a signal interrupts this thread anywhere above: the turn must not be lost with it.
            if job is not None and not job.is_settled:
                self._withdraw(job)
            if self._turn == me:
                self.release()
        if job.error is not None:
            raise job.error
        result: Result = job.result
        return result

    def take(self, patience: float) -> bool:
        """Take the turn without writing, so that nobody else writes; False if it could not be had in time."""
        me = threading.get_ident()
        with self._gate:
            if self._turn is None:
                self._turn = me
                return True
            job = _Job(None, None, durable=False, thread=me)
            self._queue.append(job)
        is_woken = False
        try:
            is_woken = job.woken.acquire(timeout=patience)
        finally:
            if not is_woken:
                self._withdraw(job)
                self.leave()
        return is_woken

    def release(self) -> None:
        """End the turn: hand it to the first who waits."""
        with self._gate:
            if not self._queue:
                self._turn = None
                return
            first = self._queue[0]
            if first.apply is None:
                self._queue.popleft()
            self._turn = first.thread
            first.woken.release()

    def leave(self) -> None:
        """Release the turn if this thread has it."""
        if self._turn == threading.get_ident():
            self.release()

    def connect(self) -> None:
        """Open the connection if there is none; only for whoever has the turn."""
        if self._cursor is None:
            self._cursor = self._connect().cursor()
            self._cursor.row_factory = None  # a connection of the user's may have one
            self._is_full = None

    def vacuum(self) -> None:
        """Rewrite the file; only for whoever has the turn."""
        assert self._cursor is not None
        self._cursor.execute("VACUUM")
        self._cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def disconnected(self) -> sqlite3.Connection | None:
        """Return the connection, if there is one, and forget it; only for whoever has the turn."""
        cursor, self._cursor = self._cursor, None
        return None if cursor is None else cursor.connection

    def _withdraw(self, job: _Job) -> None:
        with self._gate:
            if job in self._queue:
                self._queue.remove(job)

    def _queued(self) -> list[_Job]:
        """Take the jobs that are queued, up to one that wants the turn itself."""
        batch: list[_Job] = []
        with self._gate:
            while self._queue and self._queue[0].apply is not None:
                batch.append(self._queue.popleft())
        return batch

    def _alone(self, apply: Callable[[Cursor, Change], Result], change: Change, durable: bool) -> Result:
        try:
            cursor = self._begun(durable)
            try:
                result = apply(cursor, change)
            except UnicodeEncodeError:
                cursor.execute("ROLLBACK")
                cursor.execute("BEGIN IMMEDIATE")
                result = apply(CarefulCursor(cursor), change)
            cursor.execute("COMMIT")
        except BaseException as error:
            self._take_back()
            if isinstance(error, sqlite3.Error):
                raise self._explain(error) from error
            raise
        return result

    def _together(self, batch: list[_Job]) -> None:
        ending = False
        try:
            cursor = self._begun(any(job.durable for job in batch))
            for job in batch:
                self._apply_saved(cursor, job)
            ending = True
            cursor.execute("COMMIT")
        except sqlite3.Error as error:
            for job in batch:
                job.error = self._explain(error)
        except StoreError as error:
            for job in batch:
                job.error = StoreError(*error.args)
        finally:
            is_interrupted = self._take_back() or not ending
            for job in batch:
                if is_interrupted and job.error is None:
                    job.error = StoreError("the write was interrupted - nothing was stored; repeat it")
                job.is_settled = True
                job.woken.release()

    def _apply_saved(self, cursor: sqlite3.Cursor, job: _Job) -> None:
        assert job.apply is not None
        cursor.execute("SAVEPOINT job")
        try:
            try:
                job.result = job.apply(cursor, job.change)
            except UnicodeEncodeError:
                cursor.execute("ROLLBACK TO job")
                job.result = job.apply(CarefulCursor(cursor), job.change)
        except Exception as error:  # whatever a change raises is its caller's
            if isinstance(error, sqlite3.Error) and not cursor.connection.in_transaction:
                raise  # SQLite took everything back: a full disk, for instance
            cursor.execute("ROLLBACK TO job")
            job.error = self._explain(error) if isinstance(error, sqlite3.Error) else error
        cursor.execute("RELEASE job")

    def _begun(self, durable: bool) -> sqlite3.Cursor:
        """Begin a write transaction; `synchronous` can be changed only before."""
        self.connect()
        cursor = self._cursor
        assert cursor is not None
        if durable:
            self._check_file()
        if durable is not self._is_full:
            cursor.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")
            self._is_full = durable
        cursor.execute("BEGIN IMMEDIATE")
        return cursor

    def _take_back(self) -> bool:
        """Take back a transaction that is still open; whether there was one."""
        if self._cursor is None or not self._cursor.connection.in_transaction:
            return False
        self._cursor.execute("ROLLBACK")
        return True
