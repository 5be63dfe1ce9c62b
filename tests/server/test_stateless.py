"""Runs without a thread of their own, and what is taken away in time."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.server.graphs import asking
from tests.server.serving import served
from waitpoint import clock
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.cli import main
from waitpoint.hosting.host import Host
from waitpoint.ledger.base import ThreadFilter
from waitpoint.ledger.sqlite import SqliteLedger
from waitpoint.server.app import app_of


@asynccontextmanager
async def hosted(path: Path) -> AsyncGenerator[tuple[Host, Any]]:
    """Serve a graph; the value is the host and a client."""
    host = Host({"asking": asking()}, SqliteSaver(path), SqliteLedger(path))
    async with served(app_of(host)) as url, get_client(url=url) as client:
        yield host, client


def count(host: Host) -> int:
    """Return how many threads there are."""
    return host.ledger.count_threads(ThreadFilter())


async def later(host: Host, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let so much time pass, and have the host tidy up."""
    now = clock.now()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: now + seconds)
        await host.tidy()


async def test_a_stateless_run_gives_its_question_and_its_thread_goes_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosted(tmp_path / "x.db") as (host, client):
        found = await client.runs.wait(None, "asking", input={"log": []})
        assert found["__interrupt__"][0]["value"] == {"text": "Go on?"}
        parts = [p async for p in client.runs.stream(None, "asking", input={"log": []}, stream_mode="values")]
        assert parts[-1].data["status"] == "success"
        kept = await client.runs.wait(None, "asking", input={"log": []}, on_completion="keep")
        assert kept["log"] == ["plan"]
        assert count(host) == 3
        await later(host, monkeypatch, 50)
        assert count(host) == 3
        await later(host, monkeypatch, 70)
        assert count(host) == 1
        assert [row.status for row in host.saver.threads()] == ["waiting"]


async def test_a_batch_is_begun_whole_or_not_at_all(tmp_path: Path) -> None:
    async with hosted(tmp_path / "x.db") as (host, client):
        one: Any = {"assistant_id": "asking", "input": {"log": ["x"]}}
        runs: Any = await client.runs.create_batch([one, one])
        assert len({run["thread_id"] for run in runs}) == 2
        for run in runs:
            assert (await client.runs.join(run["thread_id"], run["run_id"]))["log"] == ["x", "plan"]  # type: ignore[call-overload]
        with pytest.raises(NotFoundError):
            await client.runs.create_batch([one, {"assistant_id": "nope"}])
        assert count(host) == 2
        run = await client.runs.create(None, "asking", input={"log": ["x"]})
        assert (await client.runs.join(run["thread_id"], run["run_id"]))["log"] == ["x", "plan"]
        with pytest.raises(ConflictError):
            await client.runs.create(None, "asking", command={"resume": 1})
        assert count(host) == 3


async def test_the_bulk_of_an_old_log_goes_and_readers_are_told_so_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosted(tmp_path / "x.db") as (host, client):
        thread = (await client.threads.create())["thread_id"]
        asked = await client.runs.wait(thread, "asking", input={"log": []})
        (run,) = await client.runs.list(thread)
        await later(host, monkeypatch, host.keep_log_seconds - 60)
        full = [p.event async for p in client.runs.join_stream(thread, run["run_id"], last_event_id="-1")]
        assert full == ["metadata", "values", "values", "values", "end"]
        await later(host, monkeypatch, host.keep_log_seconds + 60)
        parts = [p async for p in client.runs.join_stream(thread, run["run_id"], last_event_id="-1")]
        assert [p.event for p in parts] == ["gap", "metadata", "end"]
        assert parts[0].data["state"] == f"/threads/{thread}/state"
        assert await client.runs.join(thread, run["run_id"]) == asked  # from the thread itself
        found = await client.runs.wait(thread, "asking", command={"resume": {asked["__interrupt__"][0]["id"]: "yes"}})
        assert found["log"] == ["plan", "yes", "act"]


async def test_a_thread_whose_time_is_over_goes_unless_it_waits_for_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosted(tmp_path / "x.db") as (host, client):
        threads = [(await client.threads.create())["thread_id"] for _ in range(2)]
        for thread in threads:
            host.ledger.change_thread(thread, clock.now(), ttl=10.0, ttl_strategy="delete")
            await client.runs.wait(thread, "asking", input={"log": []})
        await client.runs.wait(threads[0], "asking", command={"resume": "yes"})
        await later(host, monkeypatch, 599)
        assert count(host) == 2
        await later(host, monkeypatch, 601)
        with pytest.raises(NotFoundError):
            await client.threads.get(threads[0])
        found: Any = await client.runs.wait(threads[1], "asking", command={"resume": "late"})
        assert found == {"log": ["plan", "late", "act"]}


async def test_a_thread_that_was_answered_from_a_terminal_is_run_by_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.db"
    async with hosted(path) as (_, client):
        thread = (await client.threads.create())["thread_id"]
        asked = await client.runs.wait(thread, "asking", input={"log": []})
        (question,) = asked["__interrupt__"]
        arguments = ["answer", question["id"], '"yes"', "--no-run", "--by", "ana", "--json"]
        with pytest.raises(SystemExit) as left:
            main([*arguments, "--store", f"sqlite:///{path}"])
        assert left.value.code in (0, None)
        assert json.loads(capsys.readouterr().out)
        async for part in await client.threads.join_stream(thread, last_event_id="-1"):
            if part.event == "values" and "act" in part.data["log"]:
                break
        assert (await client.runs.list(thread))[0]["status"] in ("running", "success")
