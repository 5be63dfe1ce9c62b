"""Many readers at once: idle streams cost little memory, and busy ones get what happens while those are open."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest

from tests.server.commands import prepared, serving

IDLE, BUSY = 500, 50
KIB_PER_STREAM = 200  # five times what is measured
SECONDS = 30.0  # for fifty runs that begin at once, on a machine that does other things too

pytestmark = pytest.mark.slow


async def opened(port: int, thread: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream of a thread and return once the server has begun to send it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /threads/{thread}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    return reader, writer


def kib_of(pid: int) -> int:
    """Return the memory that a process has."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1])


async def ran(http: httpx.AsyncClient) -> float:
    """Run a thread to its question as a stream; return how long the first event took."""
    begun = time.monotonic()
    thread = (await http.post("/threads", json={})).json()["thread_id"]
    body: dict[str, Any] = {"assistant_id": "asking", "input": {"log": []}, "stream_mode": ["updates"]}
    first, events = 0.0, []
    async with http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                first = first or time.monotonic() - begun
                events.append(json.loads(line[6:]))
    assert [event for event in events if "__interrupt__" in event], events
    return first


async def test_hundreds_of_idle_streams_leave_room_for_busy_ones(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * IDLE + 500
    if hard < wanted:
        pytest.skip(f"{wanted} open files are needed, and {hard} are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with serving(prepared(tmp_path)) as server:
        port = int(server.url.rpartition(":")[2])
        limits = httpx.Limits(max_connections=BUSY)
        async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as http:
            await ran(http)
            threads = [(await http.post("/threads", json={})).json()["thread_id"] for _ in range(10)]
            before = kib_of(server.process.pid)
            idle = [await opened(port, threads[number % 10]) for number in range(IDLE)]
            try:
                per_stream = (kib_of(server.process.pid) - before) / IDLE
                assert per_stream < KIB_PER_STREAM
                took = await asyncio.gather(*(ran(http) for _ in range(BUSY)))
                assert max(took) < SECONDS
                record_property("KiB per idle stream", round(per_stream, 1))
                record_property("median seconds to first event", round(median(took), 3))
                begun = time.monotonic()
                assert server.stop() == 0
                assert time.monotonic() - begun < 3
                for reader, _ in idle:
                    assert (await reader.read()).endswith(b"0\r\n\r\n")  # each was closed as a whole one
            finally:
                for _, writer in idle:
                    writer.close()
