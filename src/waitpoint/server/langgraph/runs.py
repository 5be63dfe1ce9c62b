"""Runs in a thread: begun, streamed, waited for, joined, cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from waitpoint import clock
from waitpoint.hosting.host import Host
from waitpoint.ledger.base import RunRow
from waitpoint.server import sse
from waitpoint.server.callers import Caller, TheCaller, TheHost
from waitpoint.server.langgraph.bodies import RunBody
from waitpoint.server.langgraph.render import RunEvents
from waitpoint.server.langgraph.threads import found

router = APIRouter(prefix="/threads/{thread_id}/runs", tags=["runs"])


@router.post("")
async def create(host: TheHost, caller: TheCaller, thread_id: str, body: RunBody, response: Response) -> dict[str, Any]:
    """Begin a run and return at once."""
    run = await begun(host, caller, thread_id, body)
    response.headers["Content-Location"] = f"/threads/{thread_id}/runs/{run.id}"
    return run_json(run)


@router.post("/stream")
async def stream(host: TheHost, caller: TheCaller, thread_id: str, body: RunBody) -> Response:
    """Begin a run and send what happens in it."""
    run = await begun(host, caller, thread_id, body)
    place = f"/threads/{thread_id}/runs/{run.id}"
    events = RunEvents(body.modes, subgraphs=bool(body.stream_subgraphs))
    return sse.response(_sent(host, run, events), {"Content-Location": place, "Location": f"{place}/stream"})


async def begun(host: Host, caller: Caller, thread_id: str, body: RunBody) -> RunRow:
    """Accept a run."""
    assistant = await host.find_assistant(body.assistant_id)
    if body.if_not_exists != "create":
        await found(host, thread_id)
    return await host.begin(
        thread_id,
        assistant,
        body.request(),
        by=caller.name,
        strategy=body.multitask_strategy or "enqueue",
        metadata=body.metadata,
        delay=body.after_seconds or 0.0,
    )


async def _sent(host: Host, run: RunRow, events: RunEvents, after: int = 0) -> AsyncIterator[bytes]:
    async for entry in host.follow(run.thread_id, after=after, run_id=run.id, silence=sse.HEARTBEAT_SECONDS):
        if entry is None:
            yield sse.HEARTBEAT
            continue
        for event in events.of(entry):
            yield event


def run_json(run: RunRow) -> dict[str, Any]:
    """Return a run as clients have it."""
    return {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "assistant_id": run.assistant_id,
        "status": run.status,
        "metadata": run.metadata,
        "kwargs": run.request,
        "multitask_strategy": run.strategy,
        "created_at": clock.iso(run.created_at),
        "updated_at": clock.iso(run.updated_at),
    }
