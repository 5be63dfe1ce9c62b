"""The SQLite store for asyncio programs: the same store, with the asyncio form of `setup`."""

from __future__ import annotations

from waitpoint.checkpoint.base import offload
from waitpoint.store.sqlite.store import SqliteStore


class AsyncSqliteStore(SqliteStore):
    """A `SqliteStore` whose `setup` is awaited. It belongs to no event loop, and never blocks one."""

    async def setup(self) -> None:  # type: ignore[override]  # LangGraph's form
        """Create or migrate the database now, which the first use does anyway."""
        await offload(self, self._database.open)
