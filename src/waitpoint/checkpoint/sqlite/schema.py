"""Brings a database to the schema of this version: makes it, migrates it, or says why it cannot be used.

Rule: nothing in a file is changed before it is known to be ours or empty. `application_id` says whose it is,
`user_version` how far it got.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waitpoint.errors import StoreError

APPLICATION_ID = 0x57504E54  # "WPNT"

_HERE = Path(__file__).parent


def migrations() -> list[str]:
    """Return the numbered migrations, oldest first; number n leads from version n - 1 to n."""
    paths = sorted((_HERE / "migrations").glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return [path.read_text(encoding="utf-8") for path in paths]


def whole_schema() -> str:
    """Return the schema as it is now."""
    return (_HERE / "schema.sql").read_text(encoding="utf-8")


def prepare(connection: sqlite3.Connection, name: str, patience: float, *, in_memory: bool) -> None:
    """Make sure that the database has this version's schema; safe against other processes doing the same.

    Raises `StoreError` for a database that is another application's or a newer version's, and then changed nothing.
    """
    steps = migrations()
    with _transaction(connection, "BEGIN"):
        version = _version(connection, name, len(steps))
    if not in_memory and connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        _use_wal(connection, name, patience)
    if version == len(steps):
        return
    with _transaction(connection, "BEGIN IMMEDIATE"):
        version = _version(connection, name, len(steps))  # again: another process may have been faster
        for script in [whole_schema()] if version == 0 else steps[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, name: str, newest: int) -> int:
    """Return the schema version of a database of ours, 0 for an empty one; refuse any other."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    owner: int = connection.execute("PRAGMA application_id").fetchone()[0]
    tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner == 0 and version == 0 and tables == 0:
        return 0
    if owner != APPLICATION_ID:
        raise StoreError(
            f"'{name}' holds tables of another program - Waitpoint keeps threads in a database of its own; "
            "name a new file"
        )
    if version > newest:
        raise StoreError(
            f"'{name}' has schema version {version}, this Waitpoint knows versions up to {newest} - "
            "a newer release wrote it; upgrade the waitpoint package"
        )
    return version


def _use_wal(connection: sqlite3.Connection, name: str, patience: float) -> None:
    """Switch to the write-ahead log, so that readers never wait; the switch itself does not wait for others."""
    deadline = time.monotonic() + patience
    while True:
        try:
            mode: str = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname not in {"SQLITE_BUSY", "SQLITE_BUSY_RECOVERY"} or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        if mode == "wal":
            return
        raise StoreError(
            f"'{name}' lies on a file system without shared memory (journal mode '{mode}') - several processes could "
            "not share it safely; put it on a local disk"
        )


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
