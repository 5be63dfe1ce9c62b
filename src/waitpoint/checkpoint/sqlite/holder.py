"""What holds a SQLite database open: saver, store and cache alike."""

from __future__ import annotations

import sqlite3
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

from waitpoint.checkpoint.sqlite.database import Database


class Holder:
    """Opens a database at its first use, closes it when asked, at the end of a `with`, or with the program.

    `source` is a path, ":memory:" or an open connection. Of a connection to a file only the path is used, and
    connections of our own are opened to it; one to a database in memory is used itself, and stays the caller's to close.
    `busy_timeout`: seconds to wait for other processes. `noun` names the holder in errors.
    """

    blocking: bool

    def _hold(self, source: sqlite3.Connection | str | Path, busy_timeout: float, noun: str) -> None:
        self._database = Database(source, busy_timeout, noun)
        self.blocking = not self._database.in_memory
        self._closing = weakref.finalize(self, self._database.close)

    def close(self) -> None:
        """Close the connections; nothing can be read or stored afterwards."""
        self._closing()

    def __enter__(self) -> Self:
        self._database.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
