"""A server with the clients that tests speak to it with: the SDK's, and a bare one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.server.serving import served
from waitpoint.server import create_app


@contextlib.asynccontextmanager
async def clients(
    graphs: Mapping[str, Any], database: Path, **options: Any
) -> AsyncGenerator[tuple[LangGraphClient, httpx.AsyncClient]]:
    """Serve graphs; the value is the SDK's client and a bare one."""
    async with (
        served(create_app(graphs, database, **options)) as url,
        get_client(url=url) as client,
        httpx.AsyncClient(base_url=url, timeout=30) as raw,
    ):
        yield client, raw
