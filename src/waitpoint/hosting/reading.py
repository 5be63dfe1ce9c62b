"""Follows the log of a thread: what is there, then what comes, without a gap and without a double."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from waitpoint.checkpoint.base import offload
from waitpoint.hosting.hub import Hub
from waitpoint.ledger.base import ACTIVE, Ledger, LogEntry

PAGE = 500  # entries that are read at once


async def follow(
    ledger: Ledger, hub: Hub, thread_id: str, *, after: int = 0, run_id: str | None = None, silence: float = 5.0
) -> AsyncGenerator[LogEntry | None]:
    """Yield the entries of a thread after number `after`; None after each `silence` seconds without one.

    With `run_id` only those of that run, and it ends with it; else it goes on until the reader leaves.
    """
    hub.join(thread_id)
    try:
        while True:
            count = hub.count(thread_id)
            is_over = False
            if run_id is not None:  # looked up before the log is read: then the log is whole
                run = await offload(ledger, ledger.run, run_id)
                is_over = run is None or run.status not in ACTIVE
            while True:
                entries = await offload(
                    ledger, lambda at=after: ledger.log(thread_id, after=at, run_id=run_id, limit=PAGE)
                )
                for entry in entries:
                    after = entry.seq
                    yield entry
                    if run_id is not None and entry.kind == "end":
                        return
                if len(entries) < PAGE:
                    break
            if is_over:
                return
            while not entries and not await hub.wait(thread_id, count, silence):
                yield None
                if run_id is not None:
                    break  # its run may be gone, which the log does not tell
    finally:
        hub.leave(thread_id)
