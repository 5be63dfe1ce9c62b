"""Looks at each request from outside: gives it an id, logs it, counts it, and ends open streams when the server stops.

A stream of events is ended as if it were whole, so browsers and clients come back and go on where they were. An answer that
is still being waited for is cut off instead: half a document must not be taken for one.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waitpoint.server.metrics import Metrics

REQUEST_ID = "x-request-id"
_GOOD_ID = re.compile(r"[A-Za-z0-9._:/=+-]{1,128}")
_log = logging.getLogger("waitpoint.http")


class Streams:
    """The responses that are being sent piece by piece, and whether they are to end."""

    def __init__(self) -> None:
        self.open: dict[asyncio.Task[Any], str] = {}  # with the kind of what they send
        self.is_closing = False

    def close(self) -> None:
        """End all, and those that begin later."""
        self.is_closing = True
        for task in self.open:
            task.cancel()


@dataclass(slots=True)
class _Response:
    """What is known of the response to one request."""

    status: int = 500
    is_begun: bool = False
    is_stream: bool = False
    is_events: bool = False


class Observed:
    """Middleware around the whole application."""

    def __init__(self, app: ASGIApp, streams: Streams, metrics: Metrics) -> None:
        self._app, self._streams, self._metrics = app, streams, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _GOOD_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        response, begun = _Response(), time.perf_counter()
        task = asyncio.current_task()
        assert task is not None

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = request_id
                response.status, response.is_begun = message["status"], True
                response.is_events = headers.get("content-type", "").startswith("text/event-stream")
                response.is_stream = "content-length" not in headers
                if response.is_stream:
                    self._streams.open[task] = "events" if response.is_events else "result"
                    if self._streams.is_closing:
                        task.cancel()
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except asyncio.CancelledError:
            if not (self._streams.is_closing and response.is_stream):
                raise
            task.uncancel()
            if response.is_events:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except Exception:
            _log.exception("request failed", extra={"request_id": request_id, **_place(scope)})
            if response.is_begun:
                raise
            told = {
                "detail": f"The server failed; its log tells why, under request id '{request_id}'",
                "code": "internal",
            }
            await JSONResponse(told, 500)(scope, receive, sent)
        finally:
            self._streams.open.pop(task, None)
            self._told(scope, request_id, response, time.perf_counter() - begun)

    def _told(self, scope: Scope, request_id: str, response: _Response, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "none"
        self._metrics.requested(scope["method"], route, response.status, None if response.is_stream else seconds)
        level = logging.DEBUG if route in ("/health/live", "/health/ready", "/metrics", "/ok") else logging.INFO
        facts = {"request_id": request_id, "status": response.status, "seconds": round(seconds, 4), **_place(scope)}
        _log.log(level, "request", extra=facts)


def _place(scope: Scope) -> dict[str, Any]:
    """Return what was asked for; never the query, which may hold what is secret."""
    found = {"method": scope["method"], "path": scope["path"]}
    ids = scope.get("path_params") or {}
    return found | {name: str(ids[name]) for name in ("thread_id", "run_id") if name in ids}
