"""The SQLite store for asyncio programs: the same store, whose upkeep is awaited too, as in LangGraph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waitpoint import clock
from waitpoint.checkpoint.base import offload
from waitpoint.store.sqlite import rows
from waitpoint.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    import asyncio


class AsyncSqliteStore(SqliteStore):
    """A `SqliteStore` for `async with`. It belongs to no event loop, and its asynchronous calls never block one."""

    async def setup(self) -> None:  # type: ignore[override]
        """Create or migrate the database now, which the first use does anyway."""
        await offload(self, self._database.open)

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        """Remove what has expired, and return how much it was; the next write does it anyway."""
        swept: int = await offload(self, self._database.write, rows.sweep, clock.now(), False)
        return swept

    async def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> asyncio.Future[None]:  # type: ignore[override]  # noqa: ARG002
        """Sweep now; every later write sweeps too, so no task is started. The future is done."""
        import asyncio

        await self.sweep_ttl()
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # type: ignore[override]  # noqa: ARG002, ASYNC109
        """Return True: there is no task that would have to stop."""
        return True
