"""Server-sent events: how they are written, and a response that writes them (https://html.spec.whatwg.org, 9.2).

Lines end with LF alone, since one client splits at that only. Silence is filled with comments, by which clients tell a
dead connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from waitpoint.server.sending import Left, Sending

HEARTBEAT_SECONDS = 5.0
HEARTBEAT = b": heartbeat\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def event(name: str | None, data: bytes, id: str | int | None = None) -> bytes:
    """Return an event; `data` is JSON in one line."""
    head = b"" if name is None else b"event: %b\n" % name.encode()
    tail = b"" if id is None else b"id: %b\n" % str(id).encode()
    return b"%bdata: %b\n%b\n" % (head, data, tail)


def response(
    events: AsyncIterator[bytes], headers: Mapping[str, str] | None = None, left: Left | None = None
) -> Sending:
    """Return a response that sends these events as they come; `left` is awaited if the client goes before the last."""
    return Sending(events, "text/event-stream", {**_HEADERS, **(headers or {})}, left)
