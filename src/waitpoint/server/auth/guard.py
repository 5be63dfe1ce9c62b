"""Stands before the whole application: nothing but a few open places is reached by a caller that is not known.

Without any key the server is its own machine's alone. Then a page from elsewhere could still reach it through the browser
of whoever sits there: so the Host must be a name of this machine (a foreign name may be pointed at it), and so must the
origin of a request that a page makes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waitpoint.errors import WaitpointError
from waitpoint.server.auth.access import Access
from waitpoint.server.auth.limits import Counted, Rate, too_large
from waitpoint.server.callers import Caller
from waitpoint.server.errors import body_of, status_of
from waitpoint.server.refusals import ForbiddenError, TooManyError, UnauthorizedError

OPEN = ("/ok", "/info", "/health", "/inbox/sign-in", "/inbox/static", "/waitpoint.js")
MAX_BODY = 10_000_000
REQUESTS_A_MINUTE = 6_000


class Guard:
    """Middleware around the application, inside that which answers for other origins (CORS)."""

    def __init__(
        self, app: ASGIApp, access: Access, *, origins: Sequence[str] = (), max_body: int = MAX_BODY,
        requests_a_minute: int = REQUESTS_A_MINUTE,
    ) -> None:  # fmt: skip
        self._app, self._access = app, access
        self._origins, self._max_body = frozenset(origins), max_body
        self._rate = Rate(requests_a_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        state = scope.setdefault("state", {})
        try:
            state["caller"] = await self._checked(connection, _path(scope))
        except WaitpointError as error:
            if not (isinstance(error, UnauthorizedError) and _path(scope).startswith("/inbox")):
                await _refused(error, scope, receive, send)
                return
            state["refusal"] = error  # the pages show the way to sign in
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            await self._served(scope, receive, send)

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; whatever is made of a body that was cut off, the caller is told that it was too large."""
        body, is_begun = Counted(receive, self._max_body), False

        async def sent(message: Message) -> None:
            nonlocal is_begun
            if is_begun or not body.is_too_large:
                is_begun = True
                await send(message)

        await self._app(scope, body, sent)
        if body.is_too_large and not is_begun:
            await _refused(too_large(self._max_body), scope, receive, send)

    async def _checked(self, connection: HTTPConnection, path: str) -> Caller:
        length = connection.headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > self._max_body:
            raise too_large(self._max_body)
        if not await self._access.is_guarded():
            self._check_place(connection)
            return Caller()
        address = connection.client.host if connection.client is not None else ""
        if any(path == place or path.startswith(f"{place}/") for place in OPEN):
            self._rate.take(f"address {address}")
            return Caller(None, frozenset())
        try:
            caller = await self._access.caller(connection, path)
        except UnauthorizedError:
            self._rate.take(f"address {address}")
            raise
        self._rate.take(f"caller {caller.name}")
        return caller

    def _check_place(self, connection: HTTPConnection) -> None:
        host = urlsplit(f"//{connection.headers.get('host', '')}").hostname or ""
        if not is_this_machine(host):
            raise ForbiddenError(
                f"No key was made yet, so only this machine may call, by its own name, and not as '{host}'; make a key "
                f"(waitpoint key create), or call 127.0.0.1"
            )
        origin = connection.headers.get("origin")
        if origin is not None and origin not in self._origins and not is_this_machine(urlsplit(origin).hostname or ""):
            raise ForbiddenError(
                f"No key was made yet, so pages of '{origin}' may not call; make a key (waitpoint key create), or name it in "
                f"[server] cors_origins"
            )


def is_this_machine(host: str) -> bool:
    """Whether a name can only mean this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _path(scope: Scope) -> str:
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


async def _refused(error: WaitpointError, scope: Scope, receive: Receive, send: Send) -> None:
    status = status_of(type(error))
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4000 + status, "reason": str(error)[:120]})
        return
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if isinstance(error, TooManyError):
        headers["Retry-After"] = str(error.retry_after)
    await JSONResponse(body_of(error), status, headers=headers)(scope, receive, send)
