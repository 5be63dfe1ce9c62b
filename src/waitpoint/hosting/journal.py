"""Writes the log: what runs show goes to the ledger in groups, and readers are woken once it is there.

Rule: nothing is shown to anyone before it is stored, so the number of an entry means the same after a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from waitpoint.checkpoint.base import offload
from waitpoint.hosting.hub import Hub
from waitpoint.ledger.base import Ledger, LogEntry

_log = logging.getLogger("waitpoint.hosting")

_MANY = 512  # entries that may wait to be stored before runs are held up


class Journal:
    """The log of all threads, as one process writes it."""

    def __init__(self, ledger: Ledger, hub: Hub) -> None:
        self._ledger, self._hub = ledger, hub
        self._pending: list[LogEntry] = []
        self._lock = asyncio.Lock()
        self._writing: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many entries are not stored yet."""
        return len(self._pending)

    def put(self, entries: Sequence[LogEntry]) -> None:
        """Have entries stored as soon as may be."""
        self._pending += entries
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            await self.flush()
        except Exception:  # noqa: BLE001 - they are kept, and whoever flushes next is told
            _log.exception("the log could not be written; it is tried again")

    def told(self, thread_id: str) -> None:
        """Wake the readers of a thread whose log grew in another transaction."""
        self._hub.changed([thread_id])

    async def room(self) -> None:
        """Wait until not too much waits to be stored."""
        if len(self._pending) > _MANY:
            await self.flush()

    async def flush(self) -> None:
        """Return once all that was put is stored."""
        async with self._lock:
            while self._pending:
                entries, self._pending = self._pending, []
                try:
                    stored: list[LogEntry] = await offload(self._ledger, self._ledger.append, entries)
                except Exception:
                    self._pending = [*entries, *self._pending]
                    raise
                self._hub.changed({entry.thread_id for entry in stored})
