"""The application: graphs behind HTTP, to be served alone or mounted into one's own ASGI application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine.runner import Runner
from waitpoint.hosting.host import Host
from waitpoint.inbox import Doors, router_of
from waitpoint.ledger.sqlite import SqliteLedger
from waitpoint.server import callers, errors, health, langgraph
from waitpoint.server.auth import Access, Guard, Tokens
from waitpoint.server.auth.access import Hook
from waitpoint.server.auth.guard import MAX_BODY, REQUESTS_A_MINUTE
from waitpoint.server.metrics import Metrics
from waitpoint.server.observing import Observed, Streams
from waitpoint.server.webhooks import Webhooks
from waitpoint.store.sqlite import SqliteStore
from waitpoint.version import __version__

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# What a page of another origin may read: without Content-Location it never learns the id of its run.
_EXPOSED = ["Content-Location", "Location", "X-Pagination-Total", "X-Pagination-Next", "x-request-id"]


@dataclass(frozen=True, slots=True)
class Security:
    """Who may call, from where, and how much.

    `authenticate` returns the `Caller` of a request, or None if the other ways are to decide; `tokens` are those of an
    identity provider. `cors_origins` are the origins of pages that may call (none named: any with a key; without keys
    those of this machine). `max_body` is in bytes.
    """

    authenticate: Hook | None = None
    tokens: Tokens | None = None
    cors_origins: Sequence[str] = ()
    max_body: int = MAX_BODY
    requests_a_minute: int = REQUESTS_A_MINUTE


def create_app(
    graphs: Mapping[str, Runner],
    database: str | Path,
    *,
    store: Any = None,
    webhook_hosts: Sequence[str] | None = None,
    security: Security | None = None,
) -> FastAPI:
    """Return an ASGI application that serves graphs, by name, with their threads in a SQLite file.

    `webhook_hosts` are the hosts that may be told of the end of a run; see `waitpoint.server.webhooks`. `security` says who
    may call: without it those who have an API key, once one was made.

    Mounted into another application it needs that one's lifespan: `async with app.router.lifespan_context(app): ...`.
    """
    saver = SqliteSaver(database)
    host = Host(graphs, saver, SqliteLedger(database), store or SqliteStore(database))
    return app_of(host, webhook_hosts, security)


def app_of(host: Host, webhook_hosts: Sequence[str] | None = None, security: Security | None = None) -> FastAPI:
    """Return the application of a host."""
    hooks = Webhooks(host, webhook_hosts)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        await host.start()
        hooks.start()
        try:
            yield
        finally:
            await hooks.stop()
            await host.stop(patience=0.5)

    app = FastAPI(title="Waitpoint", version=__version__, lifespan=lifespan)
    app.state.host, app.state.webhooks = host, hooks
    security = security or Security()
    access = Access(host.ledger, security.tokens, security.authenticate)
    # Whether callers had to say who they are when this began; a key that is made later is asked for from then on.
    app.state.is_guarded = bool(security.tokens or security.authenticate or host.ledger.api_keys())
    app.add_middleware(
        Guard, access=access, origins=security.cors_origins, max_body=security.max_body,
        requests_a_minute=security.requests_a_minute,
    )  # fmt: skip
    app.add_middleware(
        CORSMiddleware, allow_origins=security.cors_origins or ["*"], allow_methods=_METHODS, allow_headers=["*"],
        expose_headers=_EXPOSED,
    )  # fmt: skip
    app.state.streams, app.state.metrics = Streams(), Metrics(host)
    app.add_middleware(Observed, streams=app.state.streams, metrics=app.state.metrics)
    errors.install(app)
    app.include_router(health.router)
    app.include_router(langgraph.router)
    app.include_router(
        router_of(Doors(callers.host_of, callers.caller_of, errors.status_of, access.sign_in, access.sign_out))
    )
    return app
