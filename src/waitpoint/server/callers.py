"""Who calls, and what they may do: every route asks here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from waitpoint.hosting.host import Host
from waitpoint.server.refusals import ForbiddenError

SCOPES = ("run", "answer", "read", "admin")


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller; `name` is None where no key is configured, and then everything is allowed."""

    name: str | None = None
    scopes: frozenset[str] = frozenset(SCOPES)

    def require(self, scope: str) -> None:
        """Let the caller pass who has a scope; `admin` has all. Raises `ForbiddenError`."""
        if scope not in self.scopes and "admin" not in self.scopes:
            has = ", ".join(map(repr, sorted(self.scopes))) or "none"
            raise ForbiddenError(
                f"'{self.name}' may not do this: it needs the scope '{scope}', and the key has {has}; use a key that has it"
            )


def host_of(request: Request) -> Host:
    """Return the host behind the application."""
    host: Host = request.app.state.host
    return host


async def caller_of(request: Request) -> Caller:
    """Return who sent a request. Raises what the guard refused it for, where that was left to the route."""
    refusal: Any = getattr(request.state, "refusal", None)
    if refusal is not None:
        raise refusal
    found: Any = getattr(request.state, "caller", None)
    return found if isinstance(found, Caller) else Caller()


TheHost = Annotated[Host, Depends(host_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]


def needs(scope: str) -> Any:
    """Return a dependency of a route that only callers with this scope may use."""

    async def check(caller: TheCaller) -> None:
        caller.require(scope)

    return Depends(check)
