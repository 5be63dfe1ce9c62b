"""Whether the server lives, whether it is ready for work, and its numbers, for those who watch over it."""

from __future__ import annotations

import asyncio
import logging
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from waitpoint.checkpoint.base import offload
from waitpoint.server.callers import TheHost, needs

_log = logging.getLogger("waitpoint.http")
_STORE_SECONDS = 5.0

router = APIRouter(tags=["operations"])


class Live(BaseModel):
    """The process answers."""

    live: Literal[True] = True


class Ready(BaseModel):
    """What the server needs for its work, and whether it has it."""

    ready: bool
    store: bool
    dispatcher: bool


@router.get("/health/live")
async def live() -> Live:
    """Tell that the process answers; if not, start it anew."""
    return Live()


@router.get("/health/ready", response_model=Ready, responses={503: {"model": Ready, "description": "Not ready"}})
async def ready(request: Request, host: TheHost) -> JSONResponse:
    """Tell whether requests should be sent here: the store is reachable, and runs are being executed."""
    try:
        async with asyncio.timeout(_STORE_SECONDS):
            await offload(host.ledger, lambda: host.ledger.next_due(0.0))
        has_store = True
    except Exception as error:  # noqa: BLE001 - whatever keeps the store away, this is not ready
        _log.warning("the store is not reachable - %s: %s", type(error).__name__, error)
        has_store = False
    executes = host.dispatcher.is_alive and not request.app.state.streams.is_closing
    told = Ready(ready=has_store and executes, store=has_store, dispatcher=executes)
    return JSONResponse(told.model_dump(), 200 if told.ready else 503)


@router.get(
    "/metrics", response_class=Response, dependencies=[needs("read")],
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)  # fmt: skip
async def metrics(request: Request, host: TheHost) -> Response:
    """Tell the server's numbers, for Prometheus."""
    state = request.app.state
    text: bytes = await offload(host.ledger, state.metrics.text, len(state.streams.open))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
