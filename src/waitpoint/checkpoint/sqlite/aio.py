"""The SQLite saver for asyncio programs: the same saver, with the asyncio forms of opening and closing."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from waitpoint.checkpoint.base import offload
from waitpoint.checkpoint.sqlite.saver import SqliteSaver


class AsyncSqliteSaver(SqliteSaver):
    """A `SqliteSaver` that is an asyncio context manager too.

    It belongs to no event loop: one saver serves several loops and plain threads at once. The engine calls it in worker
    threads, so it never blocks a loop.
    """

    async def __aenter__(self) -> Self:
        await offload(self, self.setup)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the saver cannot be used afterwards."""
        await offload(self, self.close)
