"""Runs in a thread: begun, streamed, waited for, listed, joined, cancelled, deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response

from waitpoint import clock
from waitpoint.checkpoint.base import offload
from waitpoint.errors import NotFoundError
from waitpoint.hosting import encoding
from waitpoint.hosting.host import Host
from waitpoint.ledger.base import ACTIVE, CancelAction, RunRow, RunStatus, run_active
from waitpoint.server import sse
from waitpoint.server.callers import Caller, TheCaller, TheHost, needs
from waitpoint.server.langgraph import paging
from waitpoint.server.langgraph.render import RunEvents, run_done
from waitpoint.server.langgraph.run_answers import EVENTS, REFUSALS, VALUES, RunAnswer
from waitpoint.server.langgraph.run_bodies import CancelBody, RunBody
from waitpoint.server.langgraph.streaming import (
    came_to,
    found_run,
    leaving,
    place_of,
    position,
    streamed,
    waited,
)
from waitpoint.server.langgraph.threads import found
from waitpoint.server.webhooks import TheWebhooks, Webhooks

router = APIRouter(tags=["runs"], responses=REFUSALS)

Token = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID")]
Select = Annotated[list[str] | None, Query(description="The keys to return; all if none are named.")]


@router.post("/threads/{thread_id}/runs", response_model=RunAnswer)
async def create(
    host: TheHost, caller: TheCaller, hooks: TheWebhooks, thread_id: str, body: RunBody, response: Response,
    token: Token = None,
) -> dict[str, Any]:  # fmt: skip
    """Begin a run and return at once."""
    run = await begun(host, caller, hooks, thread_id, body, token)
    response.headers["Content-Location"] = place_of(run)
    return run_json(run)


@router.post("/threads/{thread_id}/runs/stream", responses=EVENTS, response_class=Response)
async def stream(
    host: TheHost, caller: TheCaller, hooks: TheWebhooks, thread_id: str, body: RunBody, token: Token = None
) -> Response:
    """Begin a run and send what happens in it."""
    run = await begun(host, caller, hooks, thread_id, body, token)
    events = RunEvents(body.modes, subgraphs=bool(body.stream_subgraphs))
    return streamed(host, run, events, leaving(host, run) if body.on_disconnect == "cancel" else None)


@router.post("/threads/{thread_id}/runs/wait", responses=VALUES, response_class=Response)
async def wait(
    host: TheHost, caller: TheCaller, hooks: TheWebhooks, thread_id: str, body: RunBody, token: Token = None
) -> Response:
    """Begin a run and return what it came to, once it is over."""
    run = await begun(host, caller, hooks, thread_id, body, token)
    return waited(host, run, leaving(host, run) if body.on_disconnect == "cancel" else None)


@router.get(
    "/threads/{thread_id}/runs",
    response_model=list[RunAnswer],
    response_model_exclude_unset=True,
    dependencies=[needs("read")],
)
async def listed(
    host: TheHost, thread_id: str, response: Response, limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0, status: RunStatus | None = None, select: Select = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """List the runs of a thread, newest first."""
    await found(host, thread_id)
    wanted: dict[str, Any] = {"thread_id": thread_id, "status": None if status is None else [status]}
    rows = await offload(host.ledger, lambda: host.ledger.runs(**wanted, limit=limit, offset=offset))
    total = await offload(host.ledger, lambda: host.ledger.count_runs(**wanted))
    paging.tell(response, total, offset, len(rows))
    return [paging.selected(run_json(row), select) for row in rows]


@router.get("/threads/{thread_id}/runs/{run_id}", response_model=RunAnswer, dependencies=[needs("read")])
async def read(host: TheHost, thread_id: str, run_id: str) -> dict[str, Any]:
    """Return a run."""
    return run_json(await found_run(host, thread_id, run_id))


@router.get(
    "/threads/{thread_id}/runs/{run_id}/join",
    responses=VALUES,
    response_class=Response,
    dependencies=[needs("read")],
)
async def join(host: TheHost, thread_id: str, run_id: str, cancel_on_disconnect: bool = False) -> Response:
    """Return what a run came to, once it is over."""
    run = await found_run(host, thread_id, run_id)
    return waited(host, run, leaving(host, run) if cancel_on_disconnect else None)


@router.get(
    "/threads/{thread_id}/runs/{run_id}/stream",
    responses=EVENTS,
    response_class=Response,
    dependencies=[needs("read")],
)
async def join_stream(
    host: TheHost, thread_id: str, run_id: str, last: LastEventId = None,
    stream_mode: Annotated[list[str] | None, Query(description="As the run's, if none is named.")] = None,
    cancel_on_disconnect: bool = False,
) -> Response:  # fmt: skip
    """Send what happens in a run from now on, or from the event after `Last-Event-ID` (-1: from the first)."""
    run = await found_run(host, thread_id, run_id)
    after = await position(host, thread_id, last)
    events = _events_of(run, [mode for each in stream_mode or () for mode in each.split(",") if mode], after)
    return streamed(host, run, events, leaving(host, run) if cancel_on_disconnect else None)


@router.post("/threads/{thread_id}/runs/{run_id}/cancel", responses={202: {"description": "It was told to stop."}})
async def cancel(
    host: TheHost, caller: TheCaller, thread_id: str, run_id: str, response: Response, wait: bool = False,
    action: CancelAction = "interrupt",
) -> Any:  # fmt: skip
    """Stop a run: what it finished stays (interrupt), or is undone with the run itself (rollback)."""
    caller.require("run")
    run = await found_run(host, thread_id, run_id)
    await host.cancel(run.id, action, wait=wait)
    if not wait:
        return Response(status_code=202)
    response.headers["Content-Location"], response.headers["Location"] = place_of(run), f"{place_of(run)}/join"
    return {}


@router.delete("/threads/{thread_id}/runs/{run_id}", status_code=204, response_class=Response)
async def delete(host: TheHost, caller: TheCaller, thread_id: str, run_id: str) -> Response:
    """Remove a run that is over; what it did in its thread stays."""
    caller.require("run")
    run = await found_run(host, thread_id, run_id)
    if run.status in ACTIVE or not await offload(host.ledger, host.ledger.delete_run, run_id):
        raise run_active(thread_id, [run_id])
    return Response(status_code=204)


@router.post("/runs/cancel", status_code=204, response_class=Response)
async def cancel_many(
    host: TheHost, caller: TheCaller, body: CancelBody, action: CancelAction = "interrupt"
) -> Response:
    """Stop runs: those of a thread that are named, or all of a status."""
    caller.require("run")
    wanted: tuple[RunStatus, ...] = ACTIVE if body.status in (None, "all") else (body.status,)  # type: ignore[assignment]
    if body.status is None and body.run_ids is None and body.thread_id is None:
        wanted = ()
    rows = await offload(host.ledger, lambda: host.ledger.runs(thread_id=body.thread_id, status=wanted))
    for run in rows:
        if body.run_ids is None or run.id in body.run_ids:
            try:
                await host.cancel(run.id, action, wait=False)
            except NotFoundError:
                continue  # it ended meanwhile
    return Response(status_code=204)


@router.get("/threads/{thread_id}/stream", responses=EVENTS, response_class=Response, dependencies=[needs("read")])
async def join_thread(
    host: TheHost, thread_id: str, last: LastEventId = None,
    stream_mode: Annotated[
        list[str] | None, Query(description="`run_modes`, `lifecycle` or `state_update`.")
    ] = None,
) -> Response:  # fmt: skip
    """Send what happens in all runs of a thread, now and later, until the client leaves."""
    await found(host, thread_id)
    modes = [mode for each in stream_mode or ("run_modes",) for mode in each.split(",") if mode]
    after = await position(host, thread_id, last)
    return sse.response(_of_thread(host, thread_id, after, frozenset(modes)))


async def _of_thread(host: Host, thread_id: str, after: int, modes: frozenset[str]) -> AsyncIterator[bytes]:
    readers: dict[str, RunEvents] = {}
    following = host.follow(thread_id, after=after, silence=sse.HEARTBEAT_SECONDS)
    async with aclosing(following) as entries:
        async for entry in entries:
            if entry is None:
                yield sse.HEARTBEAT
                continue
            run: RunRow | None = None
            if entry.run_id not in readers or entry.kind == "end":
                run = await offload(host.ledger, host.ledger.run, entry.run_id)
                readers.setdefault(entry.run_id, RunEvents([], subgraphs=False) if run is None else _events_of(run))
            if entry.kind == "end":
                if "state_update" in modes and run is not None:
                    yield sse.event("state_update", encoding.dumps((await came_to(host, run)).document()), entry.seq)
                yield run_done(entry)
                readers.pop(entry.run_id, None)
            elif "run_modes" in modes or ("lifecycle" in modes and entry.kind in ("metadata", "error")):
                for event in readers[entry.run_id].of(entry):
                    yield event


def _events_of(run: RunRow, modes: list[str] | None = None, after: int = 0) -> RunEvents:
    """Return the events for a reader of a run who asks for nothing else than the run was asked for."""
    asked = run.request.get("extra", {})
    subgraphs = bool(asked.get("subgraphs"))
    return RunEvents(modes or asked.get("stream_mode") or ["values"], subgraphs=subgraphs, after=after)


async def begun(
    host: Host, caller: Caller, hooks: Webhooks, thread_id: str, body: RunBody, token: str | None
) -> RunRow:
    """Accept a run."""
    request = body.request(token)
    command = request.command or {}
    if "resume" in command:
        caller.require("answer")
    if "resume" not in command or "update" in command or "goto" in command or request.on_pending == "withdraw":
        caller.require("run")
    if request.webhook is not None:
        hooks.policy.check(request.webhook)
    assistant = await host.find_assistant(body.assistant_id)
    if body.if_not_exists != "create":
        await found(host, thread_id)
    return await host.begin(
        thread_id,
        assistant,
        request,
        by=caller.name,
        strategy=body.multitask_strategy or "enqueue",
        metadata=body.metadata,
    )


def run_json(run: RunRow) -> dict[str, Any]:
    """Return a run as clients have it."""
    was_stopped = run.status == "interrupted"
    shown = {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "assistant_id": run.assistant_id,
        "status": run.status,
        "metadata": run.metadata,
        "kwargs": kwargs_of(run),
        "multitask_strategy": run.strategy,
        "created_at": clock.iso(run.created_at),
        "updated_at": clock.iso(run.updated_at),
        **({"cancel_reason": run.cancel or "interrupt"} if was_stopped else {}),
    }
    return dict(encoding.jsonable(shown))


def kwargs_of(run: RunRow) -> dict[str, Any]:
    """Return what a run was asked to do."""
    asked = run.request
    names = ("input", "command", "config", "context", "interrupt_before", "interrupt_after", "checkpoint_id", "webhook")
    extra = asked.get("extra", {})
    shown = {name: asked.get(name) for name in names}
    return {**shown, "stream_mode": extra.get("stream_mode"), "subgraphs": bool(extra.get("subgraphs"))}
