"""Several requests for one thread at once, and runs that are to stop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.server.clients import clients
from tests.server.graphs import asking
from tests.server.run_graphs import Gate, asking_later, held
from tests.server.serving import served
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.hosting.host import Host
from waitpoint.ledger.sqlite import SqliteLedger
from waitpoint.server.app import app_of


async def test_runs_wait_for_one_another_by_default(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first = await client.runs.create(thread, "held", input={"log": ["a"]})
        await gate.reached.wait()
        second = await client.runs.create(thread, "held", input={"log": ["b"]})
        assert (await client.runs.get(thread, second["run_id"]))["status"] == "pending"
        assert (await client.threads.get(thread))["status"] == "busy"
        gate.opened.set()
        once = ["first", "second", "third"]
        assert await client.runs.join(thread, first["run_id"]) == {"log": ["a", *once]}
        assert await client.runs.join(thread, second["run_id"]) == {"log": ["a", *once, "b", *once]}


async def test_new_input_whose_turn_finds_an_open_question_ends_as_an_error_that_lists_it(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"asking": asking_later(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first = await client.runs.create(thread, "asking", input={"log": []})
        await gate.reached.wait()
        second = await client.runs.create(thread, "asking", input={"log": ["more"]})
        gate.opened.set()
        asked: Any = await client.runs.join(thread, first["run_id"])
        parts = [p async for p in client.runs.join_stream(thread, second["run_id"], last_event_id="-1")]
        (error,) = [p.data for p in parts if p.event == "error"]
        assert error["error"] == "PendingQuestionsError"
        assert error["pending_ids"] == [asked["__interrupt__"][0]["id"]]
        assert (await client.runs.get(thread, second["run_id"]))["status"] == "error"
        assert (await client.threads.get(thread))["status"] == "interrupted"


async def test_new_input_on_a_thread_that_waits_is_refused_and_names_what_is_open(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        first: Any = await client.runs.wait(thread, "asking", input={"log": []})
        (question,) = first["__interrupt__"]
        body: dict[str, Any] = {"assistant_id": "asking", "input": {"log": ["new"]}}
        refused = await raw.post(f"/threads/{thread}/runs", json=body)
        assert refused.status_code == 409
        assert refused.json()["pending_ids"] == [question["id"]]
        assert "Go on?" in refused.json()["detail"]
        withdrawn = await raw.post(f"/threads/{thread}/runs/wait", json={**body, "on_pending": "withdraw"})
        assert withdrawn.json()["log"] == ["plan", "new", "plan"]
        assert withdrawn.json()["__interrupt__"][0]["id"] != question["id"]


async def test_a_request_that_does_not_want_to_wait_is_refused(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first = await client.runs.create(thread, "held", input={"log": []})
        await gate.reached.wait()
        with pytest.raises(ConflictError, match=first["run_id"]):
            await client.runs.create(thread, "held", input={"log": []}, multitask_strategy="reject")
        gate.opened.set()
        await client.runs.join(thread, first["run_id"])
        assert len(await client.runs.list(thread)) == 1


async def test_interrupting_keeps_the_finished_steps_of_the_active_run(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first = await client.runs.create(thread, "held", input={"log": ["a"]})
        await gate.reached.wait()
        second = await client.runs.create(thread, "held", input={"log": ["b"]}, multitask_strategy="interrupt")
        gate.opened.set()
        found = await client.runs.join(thread, second["run_id"])
        assert found == {"log": ["a", "first", "b", "first", "second", "third"]}
        assert (await client.runs.get(thread, first["run_id"]))["status"] == "interrupted"


async def test_rolling_back_leaves_no_trace_of_the_active_run(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first = await client.runs.create(thread, "held", input={"log": ["a"]})
        await gate.reached.wait()
        reader = asyncio.create_task(_read(client.runs.join_stream(thread, first["run_id"], last_event_id="-1")))
        second = await client.runs.create(thread, "held", input={"log": ["b"]}, multitask_strategy="rollback")
        gate.opened.set()
        assert await client.runs.join(thread, second["run_id"]) == {"log": ["b", "first", "second", "third"]}
        with pytest.raises(NotFoundError):
            await client.runs.get(thread, first["run_id"])
        assert (await reader)[-1].data == {"run_id": first["run_id"], "status": "rollback"}


@pytest.mark.parametrize("mode", ["values", "events"])
async def test_a_cancelled_run_stops_and_can_be_gone_on_with(tmp_path: Path, mode: Any) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        run = await client.runs.create(thread, "held", input={"log": []}, stream_mode=mode)
        await gate.reached.wait()
        await client.runs.cancel(thread, run["run_id"], wait=True)
        assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"
        seen = await client.threads.get(thread)
        assert (seen["status"], seen["interrupts"]) == ("interrupted", {})
        assert await client.runs.join(thread, run["run_id"]) == {"log": ["first"]}
        with pytest.raises(NotFoundError, match="nothing to cancel"):
            await client.runs.cancel(thread, run["run_id"])
        gate.opened.set()
        assert await client.runs.wait(thread, "held", input=None) == {"log": ["first", "second", "third"]}


async def test_a_cancelled_thread_takes_new_input_and_drops_the_rest_of_the_old_work(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        run = await client.runs.create(thread, "held", input={"log": ["a"]})
        await gate.reached.wait()
        await client.runs.cancel(thread, run["run_id"], wait=True)
        gate.opened.set()
        found = await client.runs.wait(thread, "held", input={"log": ["b"]})
        assert found == {"log": ["a", "first", "b", "first", "second", "third"]}


async def test_cancelling_with_rollback_removes_the_run(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        run = await client.runs.create(thread, "held", input={"log": ["a"]})
        await gate.reached.wait()
        await client.runs.cancel(thread, run["run_id"], wait=True, action="rollback")
        with pytest.raises(NotFoundError):
            await client.runs.get(thread, run["run_id"])
        seen = await client.threads.get(thread)
        assert (seen["status"], seen["values"] or {}) == ("idle", {})


async def test_many_are_cancelled_at_once_whether_they_began_or_not(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        runs = [await client.runs.create(thread, "held", input={"log": [n]}) for n in range(3)]
        await gate.reached.wait()
        await client.runs.cancel_many(thread_id=thread, run_ids=[run["run_id"] for run in runs[:2]])
        for run in runs[:2]:
            parts = await _read(client.runs.join_stream(thread, run["run_id"], last_event_id="-1"))
            assert parts[-1].data["status"] == "interrupted"
        gate.opened.set()
        assert (await client.runs.join(thread, runs[2]["run_id"])) == {
            "log": [0, "first", 2, "first", "second", "third"]
        }
        await client.runs.cancel_many(status="all")


class HeldLedger(SqliteLedger):
    """Stores the end of a run only when it is let."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reached, self.opened = threading.Event(), threading.Event()

    def end_run(self, *args: Any) -> bool:
        self.reached.set()
        assert self.opened.wait(10)
        return super().end_run(*args)


async def test_a_run_that_is_cancelled_when_it_has_just_paused_keeps_its_question(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    ledger = HeldLedger(path)
    app = app_of(Host({"asking": asking()}, SqliteSaver(path), ledger))
    async with served(app) as url, get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        run = await client.runs.create(thread, "asking", input={"log": []})
        assert await asyncio.to_thread(ledger.reached.wait, 10)
        await client.runs.cancel(thread, run["run_id"])
        ledger.opened.set()
        asked: Any = await client.runs.join(thread, run["run_id"])
        assert asked["__interrupt__"][0]["value"] == {"text": "Go on?"}
        assert (await client.threads.get(thread))["status"] == "interrupted"
        found: Any = await client.runs.wait(thread, "asking", command={"resume": "yes"})
        assert found == {"log": ["plan", "yes", "act"]}


async def test_a_reader_that_leaves_cancels_its_run_if_it_said_so(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, raw):
        for leaves, status in (("cancel", "interrupted"), ("continue", "success")):
            gate.reached.clear()
            gate.opened.clear()
            thread = (await client.threads.create())["thread_id"]
            run = ""
            body = {"assistant_id": "held", "input": {"log": []}, "on_disconnect": leaves}
            async with raw.stream("POST", f"/threads/{thread}/runs/stream", json=body) as response:
                run = response.headers["content-location"].rpartition("/")[2]
                await gate.reached.wait()
            reader = asyncio.create_task(_read(client.runs.join_stream(thread, run, last_event_id="-1")))
            if leaves == "continue":
                gate.opened.set()
            assert (await reader)[-1].data["status"] == status


async def _read(parts: Any) -> list[Any]:
    return [part async for part in parts]
