"""One SQLite database and its connections: one that writes, as many that read as there are readers at a time.

Rule: an error of SQLite leaves this file as a `StoreError` that says what to do. A connection must not cross a fork: a
child that inherits one (even if it never touches it again) shares no lock with its parent, whose closing then deletes
the write-ahead log under the child's feet. So all are closed before a fork, and opened again by whoever needs them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from waitpoint.checkpoint.sqlite.rows import CarefulCursor, Cursor
from waitpoint.checkpoint.sqlite.schema import prepare
from waitpoint.checkpoint.sqlite.writer import Writer
from waitpoint.errors import StoreError, UsageError

Args = ParamSpec("Args")
Change = TypeVar("Change")
Result = TypeVar("Result")

_FORK_PATIENCE = 5.0  # seconds that a fork waits for reads and writes to end

_REASONS = {
    "SQLITE_BUSY": "is locked by another process - it was waited for; end that one's transaction or raise busy_timeout",
    "SQLITE_LOCKED": "is locked by another statement - it belongs to this program; end its transaction",
    "SQLITE_READONLY": "may not be written to - its permissions forbid it; change those of the file and its folder",
    "SQLITE_NOTADB": "is not a SQLite database - it holds something else; name another file",
    "SQLITE_CORRUPT": "is damaged - SQLite cannot read it; restore it from a backup",
    "SQLITE_FULL": "cannot grow - the disk is full; make room, then repeat",
    "SQLITE_IOERR": "cannot be read or written - the disk failed; look into the system's log",
    "SQLITE_CANTOPEN": "cannot be opened - its folder must exist and be writable; check the path",
}


class Database:
    """A database that several threads and processes use at once. Opened at the first use."""

    def __init__(self, source: sqlite3.Connection | str | Path, busy_timeout: float, noun: str = "saver") -> None:
        self._noun = noun  # who holds it, for errors
        self._busy_timeout = busy_timeout
        self._given: sqlite3.Connection | None = None
        if isinstance(source, sqlite3.Connection):
            path = _path_of(source)
            if path == "":
                self._given = source  # lives in memory, so there is no second connection to it
        elif isinstance(source, str | Path):
            path = str(source)
        else:
            raise UsageError(f"cannot open a {type(source).__name__} - give a path, ':memory:' or a sqlite3.Connection")
        # A given connection may be another holder's too (a saver's, a store's): their transactions must not meet in it.
        self._alone = None if self._given is None else _shared.setdefault(id(self._given), threading.Lock())
        self.in_memory = path in {"", ":memory:"}
        self.name = ":memory:" if self.in_memory else path
        self._path = self.name if self.in_memory else str(Path(path).absolute())
        self._file: tuple[int, int] | None = None  # device and inode of what is open
        self._writer = Writer(self._connected, self._explained, self._check_file)
        self._readers: list[sqlite3.Cursor] = []
        self._reading = threading.Condition(threading.Lock())  # guards the three around it
        self._readers_out = 0
        self._is_paused = False
        self._is_open = False
        self._is_closed = False
        self._is_quiet = True  # at a fork: nobody was reading or writing
        _databases.add(self)

    def open(self) -> None:
        """Make sure that the database is there and has the schema; later calls do nothing."""
        self._writer.take(-1)
        try:
            self._writer.connect()
        finally:
            self._writer.leave()

    def vacuum(self) -> None:
        """Rewrite the file without the room that nothing takes up any more."""
        self._writer.take(-1)
        try:
            self._writer.connect()
            self._check_file()
            self._writer.vacuum()
        except sqlite3.Error as error:
            raise self._explained(error) from error
        finally:
            self._writer.leave()

    def write(self, apply: Callable[[Cursor, Change], Result], change: Change, durable: bool) -> Result:
        """Apply a change in a write transaction; see `Writer.run`."""
        if self._alone is None:
            return self._writer.run(apply, change, durable)
        with self._alone:
            return self._writer.run(apply, change, durable)

    def read(
        self, find: Callable[Concatenate[Cursor, Args], Result], *args: Args.args, **kwargs: Args.kwargs
    ) -> Result:
        """Read in one snapshot, without waiting for writers."""
        if self.in_memory:
            return self.write(lambda cursor, _: find(cursor, *args, **kwargs), None, durable=False)
        if not self._is_open:
            self.open()
        try:
            cursor = self._reader()
            try:
                return _in_snapshot(cursor, find, *args, **kwargs)
            finally:
                self._give_back(cursor)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def close(self) -> None:
        """Close all connections, once running reads and writes have ended."""
        self._is_closed = True
        if self._pause(self._busy_timeout):
            self._disconnect()
        self._resume()

    # --- connections --------------------------------------------------------------------------------------------------

    def _connected(self) -> sqlite3.Connection:
        """Open the writing connection, and the database with it."""
        if self._is_closed:
            raise self._closed()
        try:
            connection = self._given or self._connect()
            try:
                prepare(connection, self.name, self._busy_timeout, in_memory=self.in_memory)
            except BaseException:
                if self._given is None:
                    connection.close()
                raise
        except sqlite3.Error as error:
            raise self._explained(error) from error
        self._is_open = True
        self._file = self._found()
        return connection

    def _check_file(self) -> None:
        """Refuse to go on where the file is gone or another one is in its place: what is written could not be found."""
        if self._file != self._found():
            raise StoreError(
                f"database '{self.name}' was deleted or replaced while it was open - nothing was stored; put the file back, "
                f"or open a new {self._noun}"
            )

    def _found(self) -> tuple[int, int] | None:
        if self.in_memory:
            return None
        try:
            status = os.stat(self._path)  # noqa: PTH116 - before each durable commit, and a Path costs as much again
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False, cached_statements=256
        )

    def _reader(self) -> sqlite3.Cursor:
        with self._reading:
            while self._is_paused:
                self._reading.wait()
            if self._is_closed:
                raise self._closed()
            self._readers_out += 1
            if self._readers:
                return self._readers.pop()
        try:
            self._check_file()  # opening it would make an empty one
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
            return connection.cursor()
        except BaseException:
            with self._reading:
                self._readers_out -= 1
            raise

    def _give_back(self, cursor: sqlite3.Cursor) -> None:
        if cursor.connection.in_transaction:
            cursor.execute("ROLLBACK")
        with self._reading:
            self._readers_out -= 1
            self._readers.append(cursor)
            if self._is_paused:
                self._reading.notify_all()

    def _pause(self, patience: float) -> bool:
        """Keep readers and writers out; False if those inside did not leave in time."""
        is_written = not self._writer.take(patience)
        with self._reading:
            self._is_paused = True
            return self._reading.wait_for(lambda: self._readers_out == 0, patience) and not is_written

    def _resume(self) -> None:
        with self._reading:
            self._is_paused = False
            self._reading.notify_all()
        self._writer.leave()

    def _disconnect(self) -> None:
        for cursor in self._readers:
            cursor.connection.close()
        self._readers.clear()
        connection = self._writer.disconnected()
        if connection is not None and connection is not self._given:
            connection.close()

    # --- forks --------------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close what must not be inherited; a database in memory is inherited as a copy, between two changes."""
        self._is_quiet = self._pause(_FORK_PATIENCE)
        if self._is_quiet and not self.in_memory:
            self._disconnect()

    def after_fork_in_parent(self) -> None:
        """Let readers and writers in again."""
        self._resume()

    def after_fork_in_child(self) -> None:
        """Start anew: of all the threads only this one exists here."""
        if not self._is_quiet:
            _inherited.append((self._writer.disconnected(), *self._readers))  # never closed, which would do harm
            self._readers.clear()
        self._reading = threading.Condition(threading.Lock())
        self._readers_out = 0
        self._is_paused = False
        self._writer.restart()

    # --- errors -------------------------------------------------------------------------------------------------------

    def _closed(self) -> StoreError:
        return StoreError(
            f"the {self._noun} of '{self.name}' is closed - nothing can be read or stored; open a new one"
        )

    def _explained(self, error: sqlite3.Error) -> StoreError:
        code = getattr(error, "sqlite_errorname", "")
        reason = next((text for name, text in _REASONS.items() if code.startswith(name)), None)
        if code.startswith("SQLITE_CANTOPEN") and Path(self._path).is_dir():
            reason = "is a directory - a database is a file; name a file in it"
        if reason is None:
            reason = f"refused a statement - {error}; nothing was stored"
        return StoreError(f"database '{self.name}' {reason}")


def _in_snapshot(
    cursor: sqlite3.Cursor, find: Callable[Concatenate[Cursor, Args], Result], *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    cursor.execute("BEGIN")
    try:
        found = find(cursor, *args, **kwargs)
    except UnicodeEncodeError:
        found = find(CarefulCursor(cursor), *args, **kwargs)
    cursor.execute("COMMIT")
    return found


def _path_of(connection: sqlite3.Connection) -> str:
    """Return the file of a connection that a user gave, "" if it lives in memory."""
    try:
        if connection.in_transaction:
            raise UsageError("the connection is inside a transaction - it would hold others up; commit it first")
        path: str = connection.execute("PRAGMA database_list").fetchone()[2]
    except sqlite3.Error as error:
        raise UsageError(f"cannot use that connection - {error}; give a path or an open connection") from error
    return path


# --- forks ------------------------------------------------------------------------------------------------------------

_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_shared: weakref.WeakValueDictionary[int, threading.Lock] = weakref.WeakValueDictionary()  # by a connection's id
_inherited: list[Any] = []
_forking = threading.Lock()  # taken first, so that two forks cannot hold each other's databases
_held: list[Database] = []


def _before_fork() -> None:
    _forking.acquire()
    _held.extend(_databases)
    for database in _held:
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in _held:
        database.after_fork_in_parent()
    _held.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    global _forking  # noqa: PLW0603 - the parent's lock is held by a thread that may not exist here
    _forking = threading.Lock()
    for database in _held:
        database.after_fork_in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
