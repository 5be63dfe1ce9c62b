"""Request ids, logs, metrics and health: what those see who watch over a server."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from langgraph_sdk import get_client

from tests.server.graphs import asking
from tests.server.serving import served
from waitpoint.server import create_app
from waitpoint.server.logs import JsonLines, Plain


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return create_app({"asking": asking()}, tmp_path / "threads.db")


@pytest_asyncio.fixture
async def http(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient]:
    async with served(app) as url, httpx.AsyncClient(base_url=url) as client:
        yield client


async def numbers(http: httpx.AsyncClient) -> dict[str, float]:
    """Read the metrics."""
    text = (await http.get("/metrics")).text
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}


async def asked(http: httpx.AsyncClient) -> tuple[str, str]:
    """Begin a thread that asks; return its id and its question's."""
    async with get_client(url=str(http.base_url)) as client:
        thread = (await client.threads.create())["thread_id"]
        values: Any = await client.runs.wait(thread, "asking", input={"log": []})
    return thread, values["__interrupt__"][0]["id"]


async def test_metrics_count_requests_by_route_runs_and_what_waits(http: httpx.AsyncClient) -> None:
    thread, question = await asked(http)
    seen = await numbers(http)
    route = "/threads/{thread_id}/runs/wait"
    assert seen[f'waitpoint_requests_total{{method="POST",route="{route}",status="200"}}'] == 1
    assert seen['waitpoint_runs_ended_total{graph="asking",status="success"}'] == 1
    assert seen['waitpoint_open_questions{graph="asking"}'] == 1
    assert seen["waitpoint_oldest_question_seconds"] > 0
    assert seen['waitpoint_runs{status="pending"}'] == seen['waitpoint_runs{status="running"}'] == 0
    assert seen["waitpoint_runs_here"] == 0
    body = {"assistant_id": "asking", "command": {"resume": {question: "yes"}}}
    await http.post(f"/threads/{thread}/runs/wait", json=body)
    seen = await numbers(http)
    assert 'waitpoint_open_questions{graph="asking"}' not in seen
    assert seen["waitpoint_oldest_question_seconds"] == 0
    assert seen['waitpoint_run_seconds_count{graph="asking"}'] == 2


async def test_open_streams_are_counted_while_they_are_open(http: httpx.AsyncClient) -> None:
    thread, _ = await asked(http)
    assert (await numbers(http))["waitpoint_open_streams"] == 0
    async with http.stream("GET", f"/threads/{thread}/stream") as stream:
        assert stream.status_code == 200
        assert (await numbers(http))["waitpoint_open_streams"] == 1


async def test_paths_that_lead_nowhere_make_no_numbers_of_their_own(http: httpx.AsyncClient) -> None:
    for name in ("a", "b"):
        await http.get(f"/nowhere/{name}")
    assert (await numbers(http))['waitpoint_requests_total{method="GET",route="none",status="404"}'] == 2


@pytest.mark.parametrize("given", ["abc-1", "a/b:c=d"])
async def test_the_id_of_a_request_is_the_callers(http: httpx.AsyncClient, given: str) -> None:
    assert (await http.get("/ok", headers={"x-request-id": given})).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "é"])
async def test_an_odd_id_of_a_request_is_replaced(http: httpx.AsyncClient, given: str) -> None:
    found = (await http.get("/ok", headers={"x-request-id": given.encode()})).headers["x-request-id"]  # type: ignore[dict-item]
    assert len(found) == 32


async def test_a_request_is_logged_with_its_ids_and_without_what_is_secret(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "waitpoint")
    thread, _ = await asked(http)
    caplog.clear()
    headers = {"x-request-id": "mine", "authorization": "Bearer s3cret"}
    await http.get(f"/threads/{thread}/state?token=s3cret", headers=headers)
    (record,) = [each for each in caplog.records if each.name == "waitpoint.http"]
    told = json.loads(JsonLines().format(record))
    assert told.pop("seconds") >= 0
    assert told.pop("at")
    assert told == {
        "level": "info", "logger": "waitpoint.http", "message": "request", "request_id": "mine", "method": "GET",
        "path": f"/threads/{thread}/state", "status": 200, "thread_id": thread,
    }  # fmt: skip
    assert f"200 GET /threads/{thread}/state " in Plain().format(record)
    assert "s3cret" not in caplog.text


def test_a_line_of_the_log_stays_one_line_whatever_it_tells() -> None:
    record = logging.makeLogRecord({"msg": "a\nb\x1b[2J", "name": "waitpoint", "levelname": "INFO"})
    assert "\n" not in Plain().format(record)
    assert "\x1b" not in Plain().format(record)
    assert "\n" not in JsonLines().format(record)


async def test_a_server_whose_store_is_away_is_alive_and_not_ready(
    app: FastAPI, http: httpx.AsyncClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await http.get("/health/ready")).json() == {"ready": True, "store": True, "dispatcher": True}
    app.state.host.ledger.close()
    caplog.set_level(logging.CRITICAL)
    assert (await http.get("/health/live")).json() == {"live": True}
    found = await http.get("/health/ready")
    assert found.status_code == 503
    assert found.json()["store"] is False


async def test_a_failure_of_the_server_tells_the_id_to_look_for_and_nothing_else(
    app: FastAPI, http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("the password is s3cret")

    caplog.set_level(logging.ERROR, "waitpoint")
    answer = await http.get("/broken", headers={"x-request-id": "mine"})
    assert answer.status_code == 500
    assert answer.json() == {
        "detail": "The server failed; its log tells why, under request id 'mine'", "code": "internal",
    }  # fmt: skip
    assert answer.headers["x-request-id"] == "mine"
    (record,) = [each for each in caplog.records if each.message == "request failed"]
    assert record.exc_info
