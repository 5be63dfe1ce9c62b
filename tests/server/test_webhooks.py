"""The end of a run is told to the address that it named, once it is over, and again until that succeeds."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.server.clients import clients
from tests.server.graphs import asking
from tests.server.run_graphs import failing
from tests.server.serving import served
from waitpoint import clock
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import UsageError
from waitpoint.hosting.host import Host
from waitpoint.hosting.requests import RunRequest
from waitpoint.ledger.sqlite import SqliteLedger
from waitpoint.server.webhooks import PAUSES_SECONDS, Policy, Webhooks


class Receiver:
    """An address that takes notes, and fails as often as it is told to."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = list(statuses)
        self.told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.app: Any = Starlette(routes=[Route("/hook", self._take, methods=["POST"])])

    async def _take(self, request: Request) -> Response:
        await self.told.put(json.loads(await request.body()))
        status = self._statuses.pop(0) if self._statuses else 200
        return Response(status_code=status, headers={"Location": "/elsewhere"})


async def test_a_webhook_is_told_how_the_run_ended_and_what_is_asked(tmp_path: Path) -> None:
    receiver = Receiver()
    async with (
        served(receiver.app) as there,
        clients({"asking": asking(), "failing": failing()}, tmp_path / "x.db") as (client, _),
    ):
        thread = (await client.threads.create())["thread_id"]
        asked: Any = await client.runs.wait(thread, "asking", input={"log": []}, webhook=f"{there}/hook")
        told = await asyncio.wait_for(receiver.told.get(), 10)
        (run,) = await client.runs.list(thread)
        assert {k: told[k] for k in ("run_id", "thread_id", "status")} == {
            "run_id": run["run_id"],
            "thread_id": thread,
            "status": "success",
        }
        assert told["thread_status"] == "interrupted"
        assert told["interrupts"] == asked["__interrupt__"]
        assert (told["values"], told["error"]) == ({"log": ["plan"]}, None)
        assert told["run_started_at"] <= told["run_ended_at"] <= told["webhook_sent_at"]
        await client.runs.create(thread, "failing", input={"log": []}, webhook=f"{there}/hook")
        told = await asyncio.wait_for(receiver.told.get(), 10)
        assert (told["status"], told["error"]["message"]) == ("error", "kaboom")


async def test_a_webhook_that_was_not_told_when_the_server_died_is_told_by_the_next(tmp_path: Path) -> None:
    receiver = Receiver(500, 302)
    path = tmp_path / "x.db"
    host = Host({"asking": asking()}, SqliteSaver(path), SqliteLedger(path))
    async with served(receiver.app) as there:
        await host.start()
        assistant = await host.find_assistant("asking")
        run = await host.begin("t", assistant, RunRequest(input={"log": []}, modes=["values"], webhook=f"{there}/hook"))
        await host.wait_for(run)
        await host.stop()
        at = clock.now()
        hooks = Webhooks(Host({"asking": asking()}, SqliteSaver(path), ledger := SqliteLedger(path)))
        async with httpx.AsyncClient() as client:
            for tries, pause in enumerate((*PAUSES_SECONDS[:2], 0), 1):
                await hooks.deliver(client)
                assert receiver.told.get_nowait()["run_id"] == run.id
                now = ledger.run(run.id)
                assert now is not None
                assert now.outcome["webhook"]["tries"] == tries
                if pause:
                    assert now.hook_at is not None
                    assert now.hook_at >= at + pause
                    await hooks.deliver(client)
                    assert receiver.told.empty()  # not before its time
                    assert ledger.change_hook(now, at)
            assert now.hook_at is None
            assert now.outcome["webhook"]["status"] == 200
            await hooks.deliver(client)
            assert receiver.told.empty()


@pytest.mark.parametrize(
    ("hosts", "url", "is_allowed"),
    [
        (None, "https://example.com/x", True),
        (None, "http://10.1.2.3:8080/x", True),
        (None, "ftp://example.com/x", False),
        (None, "http://user:secret@example.com/", False),
        (None, "http://[fe80::1]/", False),
        (None, "http://[::ffff:169.254.169.254]/", False),
        (None, "http://", False),
        (None, "http://example.com:99999/", False),
        (["*.example.com", "hooks"], "https://a.example.com/x", True),
        (["*.example.com", "hooks"], "https://HOOKS/x", True),
        (["*.example.com", "hooks"], "https://example.com.evil.org/x", False),
    ],
)
def test_only_some_addresses_may_be_told(hosts: list[str] | None, url: str, is_allowed: bool) -> None:
    if is_allowed:
        Policy(hosts).check(url)
        return
    with pytest.raises(UsageError):
        Policy(hosts).check(url)


def test_a_name_that_stands_for_a_link_local_address_is_refused_when_it_is_looked_up() -> None:
    with pytest.raises(UsageError, match="stands for a link-local address"):
        Policy().check_resolved("http://0xA9FEA9FE/")
    Policy().check_resolved("http://127.0.0.1/")
