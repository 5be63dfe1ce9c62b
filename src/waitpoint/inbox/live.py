"""Tells open pages that something changed, so that they read anew what the store has."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from fastapi import Request

from waitpoint.checkpoint.base import BaseCheckpointSaver, PendingFilter, offload
from waitpoint.hosting.host import Host

LOOK_SECONDS = 1.0  # how often the store is asked; whatever process changes it, pages learn of it
HEARTBEAT_LOOKS = 5


class Watch:
    """Looks at what waits, once for all pages that are open."""

    def __init__(self) -> None:
        self._seen: tuple[int, str] = (0, "")
        self._at = -1.0
        self._lock = asyncio.Lock()

    async def state(self, host: Host) -> tuple[int, str]:
        """Return how much waits, and a mark that changes with it; at most as old as one look."""
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._at >= LOOK_SECONDS / 2:
                self._seen = await offload(host.saver, _seen, host.saver)
                self._at = now
        return self._seen


def _seen(saver: BaseCheckpointSaver) -> tuple[int, str]:
    count = saver.count(PendingFilter())
    newest = saver.questions(PendingFilter(newest_first=True, limit=1))
    threads = saver.threads(limit=1)
    last = f"{threads[0].key}{threads[0].updated_at}{threads[0].status}" if threads else ""
    return count, f"{count}:{newest[0].id if newest else ''}:{last}"


async def changes(request: Request, host: Host, watch: Watch) -> AsyncIterator[bytes]:
    """Yield an event for each change, as server-sent events, until the page is closed."""
    yield b"retry: 2000\n\n"
    mark, quiet = "", 0
    while not await request.is_disconnected():
        count, seen = await watch.state(host)
        if seen != mark:
            mark, quiet = seen, 0
            yield b"event: changed\ndata: %b\n\n" % json.dumps({"waiting": count}).encode()
        else:
            quiet += 1
            if quiet % HEARTBEAT_LOOKS == 0:
                yield b": heartbeat\n\n"
        with contextlib.suppress(TimeoutError):
            await host.hub.wait_any(host.hub.total, LOOK_SECONDS)
