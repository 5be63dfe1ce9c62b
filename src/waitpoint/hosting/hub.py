"""Wakes those who wait for something to happen in a thread, whichever process it happens in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


class Hub:
    """Counts what happens in each thread; belongs to one event loop.

    A waiter takes the count first, then looks, then waits for another count: so nothing that happens between is missed.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._readers: dict[str, int] = {}
        self.total = 0
        self._any: set[asyncio.Event] = set()

    def count(self, thread_id: str) -> int:
        """Return how often something happened in a thread."""
        return self._counts.get(thread_id, 0)

    def changed(self, thread_ids: Iterable[str]) -> None:
        """Say that something happened in these threads."""
        for thread_id in thread_ids:
            self.total += 1
            waiting = self._waiting.get(thread_id)
            if waiting is None:
                continue  # who comes later looks first
            self._counts[thread_id] = self._counts.get(thread_id, 0) + 1
            for event in waiting:
                event.set()
        for event in self._any:
            event.set()

    async def wait(self, thread_id: str, count: int, timeout: float) -> bool:  # noqa: ASYNC109
        """Wait until more than `count` has happened in a thread; False if nothing did in `timeout` seconds."""
        if self.count(thread_id) != count:
            return True
        waiting = self._waiting.setdefault(thread_id, set())
        return await _woken(waiting, timeout)

    async def wait_any(self, total: int, timeout: float) -> bool:  # noqa: ASYNC109
        """Wait until more than `total` has happened in all threads."""
        return self.total != total or await _woken(self._any, timeout)

    def join(self, thread_id: str) -> None:
        """Begin to count for a reader of a thread."""
        self._waiting.setdefault(thread_id, set())
        self._readers[thread_id] = self._readers.get(thread_id, 0) + 1

    def leave(self, thread_id: str) -> None:
        """Say that a reader has gone who joined."""
        self._readers[thread_id] -= 1
        if not self._readers[thread_id]:
            for kept in (self._readers, self._waiting, self._counts):
                kept.pop(thread_id, None)

    def close(self) -> None:
        """Wake all."""
        for waiting in (*self._waiting.values(), self._any):
            for event in waiting:
                event.set()


async def _woken(waiting: set[asyncio.Event], timeout: float) -> bool:  # noqa: ASYNC109
    event = asyncio.Event()
    waiting.add(event)
    try:
        await asyncio.wait_for(event.wait(), timeout)
    except TimeoutError:
        return False
    else:
        return True
    finally:
        waiting.discard(event)
