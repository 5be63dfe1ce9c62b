"""Runs without a thread of their own: one is made for each, and goes some time after the run."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from waitpoint import clock
from waitpoint.checkpoint.base import offload
from waitpoint.hosting.host import DISCARD, Host, new_thread_id
from waitpoint.ledger.base import RunRow, ThreadRecord
from waitpoint.server.callers import Caller, TheCaller, TheHost
from waitpoint.server.langgraph.render import RunEvents
from waitpoint.server.langgraph.run_answers import EVENTS, REFUSALS, VALUES, RunAnswer
from waitpoint.server.langgraph.run_bodies import RunBody
from waitpoint.server.langgraph.runs import begun, run_json
from waitpoint.server.langgraph.streaming import leaving, place_of, streamed, waited
from waitpoint.server.webhooks import TheWebhooks, Webhooks

router = APIRouter(prefix="/runs", tags=["stateless runs"], responses=REFUSALS)

KEEP_MINUTES = 1.0  # after its end, for those who still read it


@router.post("", response_model=RunAnswer)
async def create(
    host: TheHost, caller: TheCaller, hooks: TheWebhooks, body: RunBody, response: Response
) -> dict[str, Any]:
    """Begin a run in a new thread and return at once."""
    run = await _begun(host, caller, hooks, body)
    response.headers["Content-Location"] = place_of(run)
    return run_json(run)


@router.post("/stream", responses=EVENTS, response_class=Response)
async def stream(host: TheHost, caller: TheCaller, hooks: TheWebhooks, body: RunBody) -> Response:
    """Begin a run in a new thread and send what happens in it."""
    run = await _begun(host, caller, hooks, body)
    events = RunEvents(body.modes, subgraphs=bool(body.stream_subgraphs))
    return streamed(host, run, events, leaving(host, run) if body.on_disconnect == "cancel" else None)


@router.post("/wait", responses=VALUES, response_class=Response)
async def wait(host: TheHost, caller: TheCaller, hooks: TheWebhooks, body: RunBody) -> Response:
    """Begin a run in a new thread and return what it came to, once it is over."""
    run = await _begun(host, caller, hooks, body)
    return waited(host, run, leaving(host, run) if body.on_disconnect == "cancel" else None)


@router.post("/batch", response_model=list[RunAnswer])
async def batch(host: TheHost, caller: TheCaller, hooks: TheWebhooks, bodies: list[RunBody]) -> list[dict[str, Any]]:
    """Begin several runs, each in a new thread."""
    for body in bodies:  # all are known before any is begun
        await host.find_assistant(body.assistant_id)
    return [run_json(await _begun(host, caller, hooks, body)) for body in bodies]


async def _begun(host: Host, caller: Caller, hooks: Webhooks, body: RunBody) -> RunRow:
    await host.find_assistant(body.assistant_id)
    at = clock.now()
    ttl = None if body.on_completion == "keep" else KEEP_MINUTES
    record = ThreadRecord(new_thread_id(), {}, at, at, ttl=ttl, ttl_strategy="delete" if ttl is None else DISCARD)
    await offload(host.ledger, host.ledger.add_thread, record)
    try:
        return await begun(host, caller, hooks, record.id, body, None)
    except Exception:
        await offload(host.ledger, host.ledger.forget_thread, record.id)
        raise
