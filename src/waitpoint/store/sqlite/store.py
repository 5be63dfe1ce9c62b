"""The SQLite store: the port's operations on a database file."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from waitpoint import clock
from waitpoint.checkpoint.base import offload
from waitpoint.checkpoint.sqlite.holder import Holder
from waitpoint.store.base import IndexConfig, Result, TTLConfig
from waitpoint.store.batches import Batch, BatchStore
from waitpoint.store.sqlite import rows

if TYPE_CHECKING:
    from concurrent.futures import Future


class SqliteStore(Holder, BatchStore):
    """Keeps items in a SQLite file: one of its own, or that of a saver. Several threads and processes may use it.

    `conn` is a path, ":memory:" or an open connection, as for `SqliteSaver`. `index` makes items searchable by meaning
    (see `IndexConfig`), `ttl` says how they expire (see `TTLConfig`). `busy_timeout`: seconds to wait for other processes.

    Opened and brought to the present schema at the first use; errors are `StoreError`. What `put` wrote is on disk when
    it returns. Works as a context manager, `with` and `async with`, and without.
    """

    def __init__(
        self,
        conn: sqlite3.Connection | str | Path,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        busy_timeout: float = 30.0,
    ) -> None:
        self._configure(index, ttl)
        self._hold(conn, busy_timeout, "store")

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str | Path,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        busy_timeout: float = 30.0,
    ) -> Self:
        """Return a store for a path or ":memory:"; it is a context manager, too."""
        return cls(conn_string, index=index, ttl=ttl, busy_timeout=busy_timeout)

    def setup(self) -> None:
        """Create or migrate the database now, which the first use does anyway."""
        self._database.open()

    def sweep_ttl(self) -> int:
        """Remove what has expired, and return how much it was; the next write does it anyway."""
        return self._database.write(rows.sweep, clock.now(), durable=False)

    def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> Future[None]:  # noqa: ARG002 - LangGraph's
        """Sweep now; every later write sweeps too, so no thread is started. The future is done."""
        from concurrent.futures import Future

        self.sweep_ttl()
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - LangGraph's signature
        """Return True: there is no thread that would have to stop."""
        return True

    async def __aenter__(self) -> Self:
        await offload(self, self._database.open)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await offload(self, self.close)

    def _apply(self, batch: Batch) -> list[Result]:
        if batch.puts:
            return self._database.write(rows.apply, batch, durable=True)
        results, touched = self._database.read(rows.read, batch)
        if touched:
            self._database.write(rows.refresh, (touched, batch.at), durable=False)
        return results
