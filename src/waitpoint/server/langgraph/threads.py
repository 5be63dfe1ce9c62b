"""Threads: made, found, changed, deleted."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from waitpoint import clock
from waitpoint.checkpoint.base import offload
from waitpoint.errors import ConflictError, NotFoundError
from waitpoint.hosting.host import new_thread_id
from waitpoint.ledger.base import SeenThread, ThreadRecord
from waitpoint.server.callers import TheHost
from waitpoint.server.langgraph.bodies import ThreadBody

router = APIRouter(prefix="/threads", tags=["threads"])


@router.post("")
async def create(host: TheHost, body: ThreadBody) -> dict[str, Any]:
    """Make a thread."""
    at = clock.now()
    record = ThreadRecord(body.thread_id or new_thread_id(), body.metadata or {}, at, at)
    there = await offload(host.ledger, host.ledger.add_thread, record)
    if there is not None and body.if_exists != "do_nothing":
        raise ConflictError(f"Thread '{record.id}' exists already; take another id, or say if_exists: \"do_nothing\"")
    return thread_json(await found(host, record.id))


@router.get("/{thread_id}")
async def read(host: TheHost, thread_id: str) -> dict[str, Any]:
    """Return a thread."""
    return thread_json(await found(host, thread_id))


async def found(host: TheHost, thread_id: str) -> SeenThread:
    """Return a thread that there is. Raises `NotFoundError`."""
    seen: SeenThread | None = await offload(host.ledger, host.ledger.thread, thread_id)
    if seen is None:
        raise NotFoundError(f"Thread with ID '{thread_id}' not found; make it with POST /threads")
    return seen


def thread_json(seen: SeenThread) -> dict[str, Any]:
    """Return a thread as clients have it."""
    record = seen.record
    return {
        "thread_id": record.id,
        "created_at": clock.iso(record.created_at),
        "updated_at": clock.iso(record.updated_at),
        "metadata": record.metadata,
        "status": seen.status,
        "config": {"configurable": {}},
        "values": None,
        "interrupts": {},
    }
