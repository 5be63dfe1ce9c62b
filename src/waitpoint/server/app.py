"""The application: graphs behind HTTP, to be served alone or mounted into one's own ASGI application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine.runner import Runner
from waitpoint.hosting.host import Host
from waitpoint.inbox import Doors, router_of
from waitpoint.ledger.sqlite import SqliteLedger
from waitpoint.server import callers, errors, health, langgraph
from waitpoint.server.metrics import Metrics
from waitpoint.server.observing import Observed, Streams
from waitpoint.server.webhooks import Webhooks
from waitpoint.store.sqlite import SqliteStore
from waitpoint.version import __version__


def create_app(
    graphs: Mapping[str, Runner],
    database: str | Path,
    *,
    store: Any = None,
    webhook_hosts: Sequence[str] | None = None,
) -> FastAPI:
    """Return an ASGI application that serves graphs, by name, with their threads in a SQLite file.

    `webhook_hosts` are the hosts that may be told of the end of a run; see `waitpoint.server.webhooks`.

    Mounted into another application it needs that one's lifespan: `async with app.router.lifespan_context(app): ...`.
    """
    saver = SqliteSaver(database)
    host = Host(graphs, saver, SqliteLedger(database), store or SqliteStore(database))
    return app_of(host, webhook_hosts)


def app_of(host: Host, webhook_hosts: Sequence[str] | None = None) -> FastAPI:
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
    app.state.is_guarded = False  # whether callers must say who they are
    app.state.streams, app.state.metrics = Streams(), Metrics(host)
    app.add_middleware(Observed, streams=app.state.streams, metrics=app.state.metrics)
    errors.install(app)
    app.include_router(health.router)
    app.include_router(langgraph.router)
    app.include_router(router_of(Doors(callers.host_of, callers.caller_of, errors.status_of)))
    return app
