"""What readers of a run get: its events, or once it is over what it came to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from waitpoint.checkpoint.base import offload
from waitpoint.errors import NotFoundError, UsageError
from waitpoint.hosting import encoding
from waitpoint.hosting.host import Host
from waitpoint.hosting.results import RunResult, result_of
from waitpoint.ledger.base import ACTIVE, RunRow
from waitpoint.server import sse
from waitpoint.server.langgraph.render import RunEvents
from waitpoint.server.sending import Left, Sending


def place_of(run: RunRow) -> str:
    """Return where a run is found."""
    return f"/threads/{run.thread_id}/runs/{run.id}"


def streamed(host: Host, run: RunRow, events: RunEvents, left: Left | None = None) -> Sending:
    """Return the response that sends a run's events."""
    headers = {"Content-Location": place_of(run), "Location": f"{place_of(run)}/stream"}
    return sse.response(_sent(host, run, events), headers, left)


async def _sent(host: Host, run: RunRow, events: RunEvents) -> AsyncIterator[bytes]:
    if run.outcome.get("pruned"):
        yield sse.event("gap", encoding.dumps(_too_old(run)))
    following = host.follow(run.thread_id, after=events.start, run_id=run.id, silence=sse.HEARTBEAT_SECONDS)
    async with aclosing(following) as entries:
        async for entry in entries:
            if entry is None:
                yield sse.HEARTBEAT
                continue
            for event in events.of(entry):
                yield event
            if entry.kind == "end":
                return
    # It had ended before this reader came, or is gone with its log.
    now: RunRow | None = await offload(host.ledger, host.ledger.run, run.id)
    yield sse.event("end", encoding.dumps({"run_id": run.id, "status": "rollback" if now is None else now.status}))


def _too_old(run: RunRow) -> dict[str, Any]:
    state = f"/threads/{run.thread_id}/state"
    text = f"Run '{run.id}' ended long ago, and what it showed is no longer kept; read the thread's state at {state}"
    return {"run_id": run.id, "message": text, "state": state}


def waited(host: Host, run: RunRow, left: Left | None = None) -> Sending:
    """Return the response that sends what a run came to, once it is over; line ends keep the connection alive."""
    headers = {"Content-Location": place_of(run), "Location": f"{place_of(run)}/join"}
    return Sending(_result_sent(host, run), "application/json", headers, left)


async def _result_sent(host: Host, run: RunRow) -> AsyncIterator[bytes]:
    if run.status in ACTIVE:
        last = time.monotonic()
        after = await offload(host.ledger, host.ledger.last_seq, run.thread_id)
        following = host.follow(run.thread_id, after=after, run_id=run.id, silence=sse.HEARTBEAT_SECONDS)
        async with aclosing(following) as entries:
            async for _ in entries:
                if time.monotonic() - last >= sse.HEARTBEAT_SECONDS:
                    last = time.monotonic()
                    yield b"\n"
    try:
        document = (await came_to(host, run)).document()
    except Exception as error:  # noqa: BLE001 - the answer has begun, so whatever it is stands in it
        document = {"__error__": encoding.error_json(error)}
    yield encoding.dumps(document)


async def came_to(host: Host, run: RunRow) -> RunResult:
    """Return what a run came to that is over."""
    now: RunRow | None = await offload(host.ledger, host.ledger.run, run.id)
    if now is None:
        text = f"Run '{run.id}' was rolled back or deleted, so it came to nothing"
        return RunResult(None, [], {"error": "RunGone", "message": text})
    graph = host.graphs[run.graph]
    result: RunResult = await offload(host.ledger, result_of, now, graph, host.ledger, host.saver)
    return result


async def found_run(host: Host, thread_id: str, run_id: str) -> RunRow:
    """Return a run of a thread. Raises `NotFoundError`."""
    run: RunRow | None = await offload(host.ledger, host.ledger.run, run_id)
    if run is None or run.thread_id != thread_id:
        raise NotFoundError(
            f"Thread '{thread_id}' has no run '{run_id}'; list its runs with GET /threads/{thread_id}/runs"
        )
    return run


async def position(host: Host, thread_id: str, last_event_id: str | None) -> int:
    """Return the number of the entry after which a reader goes on: the one it saw, none (-1), or the last there is."""
    if last_event_id is None:
        last: int = await offload(host.ledger, host.ledger.last_seq, thread_id)
        return last
    given = last_event_id.strip()
    if given == "-1":
        return 0
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise UsageError(
            f"Last-Event-ID is {last_event_id[:80]!r}, and ids of events are numbers here; send the id of the last event "
            f"that was seen, or -1 for all"
        )
    return int(given)


def leaving(host: Host, run: RunRow) -> Left:
    """Return what cancels a run when its reader leaves."""

    async def left() -> None:
        try:
            await host.cancel(run.id, wait=False)
        except NotFoundError:
            return  # it was over already

    return left
