"""Finds out who sent a request: by an API key, a bearer token, a cookie of the pages, or a hook of one's own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request, Response
from starlette.requests import HTTPConnection

from waitpoint.checkpoint.base import offload
from waitpoint.ledger.base import KeyRow, Ledger
from waitpoint.server.auth import sessions
from waitpoint.server.auth.keys import PREFIX, Keys
from waitpoint.server.auth.tokens import Tokens
from waitpoint.server.callers import Caller
from waitpoint.server.refusals import UnauthorizedError

Hook = Callable[[HTTPConnection], Caller | Awaitable[Caller | None] | None]


class Access:
    """The ways to say who one is. `hook` is asked first; None from it means that the other ways decide."""

    def __init__(self, ledger: Ledger, tokens: Tokens | None = None, hook: Hook | None = None) -> None:
        self._ledger, self._tokens, self._hook = ledger, tokens, hook
        self._keys = Keys(ledger)

    async def is_guarded(self) -> bool:
        """Whether callers have to say who they are: once there is a way to."""
        if self._hook is not None or self._tokens is not None:
            return True
        await offload(self._ledger, self._keys.refresh)
        return self._keys.are_used

    async def caller(self, connection: HTTPConnection, path: str) -> Caller:
        """Return who sent a request. Raises `UnauthorizedError`."""
        if self._hook is not None:
            found = self._hook(connection)
            found = await found if inspect.isawaitable(found) else found
            if isinstance(found, Caller):
                return found
        given = _given(connection)
        await offload(self._ledger, self._keys.refresh)
        if given is None and path.startswith("/inbox"):  # a cookie is worth something on the pages only
            row = sessions.key_of(self._keys, connection.cookies.get(sessions.COOKIE, ""))
            if row is not None:
                return _of(row)
        if given is None:
            raise UnauthorizedError("The request bears no key; send it as x-api-key, or as Authorization: Bearer")
        if self._tokens is not None and not given.startswith(PREFIX):
            caller: Caller = await offload(self._ledger, self._tokens.caller, given)
            return caller
        row = self._keys.of(given)
        if row is None:
            raise UnauthorizedError("The key is unknown or was revoked; ask for another (waitpoint key create)")
        return _of(row)

    # --- the pages ---

    async def sign_in(self, request: Request, key: str) -> Callable[[Response], None] | None:
        """Return what puts a key's caller into a response's cookies, None for a key that is not valid."""
        await offload(self._ledger, self._keys.refresh)
        row = self._keys.of(key.strip())
        if row is None:
            return None
        path = f"{str(request.scope.get('root_path', '')).rstrip('/')}/inbox"

        def put(response: Response) -> None:
            response.set_cookie(
                sessions.COOKIE, sessions.made(row), max_age=sessions.SECONDS, path=path, httponly=True, samesite="lax",
                secure=request.url.scheme == "https",
            )  # fmt: skip

        return put

    def sign_out(self, request: Request, response: Response) -> None:
        """Take the caller out of the cookies."""
        response.delete_cookie(sessions.COOKIE, path=f"{str(request.scope.get('root_path', '')).rstrip('/')}/inbox")


def _given(connection: HTTPConnection) -> str | None:
    """Return the key or token of a request; an empty one is none. A browser can give a WebSocket no headers."""
    kind, _, token = connection.headers.get("authorization", "").partition(" ")
    bearer = token.strip() if kind.lower() == "bearer" else ""
    query: Any = connection.query_params.get("key", "") if connection.scope["type"] == "websocket" else ""
    return connection.headers.get("x-api-key", "").strip() or bearer or query or None


def _of(row: KeyRow) -> Caller:
    return Caller(row.name, frozenset(row.scopes))
