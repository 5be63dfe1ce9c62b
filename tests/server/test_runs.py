"""Runs as resources: made, waited for, read, listed, joined, deleted; what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.server.clients import clients
from tests.server.graphs import asking
from tests.server.run_graphs import Gate, asking_inside, failing, held, two_questions


async def test_waiting_gives_values_with_the_question_and_then_without(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first: Any = await client.runs.wait(thread, "asking", input={"log": []})
        assert first["log"] == ["plan"]
        assert [i["value"] for i in first["__interrupt__"]] == [{"text": "Go on?"}]
        assert await client.runs.wait(thread, "asking", command={"resume": "yes"}) == {"log": ["plan", "yes", "act"]}


async def test_two_questions_at_once_come_with_the_values_and_are_answered_one_by_one(tmp_path: Path) -> None:
    async with clients({"two": two_questions()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first: Any = await client.runs.wait(thread, "two", input={"log": ["in"]})
        assert first["log"] == ["in"]
        a, b = first["__interrupt__"]
        with pytest.raises(ConflictError, match="multiple pending interrupts"):
            await client.runs.create(thread, "two", command={"resume": "both?"})
        assert (await client.threads.get(thread))["status"] == "interrupted"
        second: Any = await client.runs.wait(thread, "two", command={"resume": {a["id"]: 1}})
        assert [i["id"] for i in second["__interrupt__"]] == [b["id"]]
        assert await client.runs.wait(thread, "two", command={"resume": {b["id"]: 2}}) == {
            "log": ["in", ["a", 1], ["b", 2]]
        }


async def test_a_question_inside_is_answered_by_its_id_alone(tmp_path: Path) -> None:
    async with clients({"nested": asking_inside()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first: Any = await client.runs.wait(thread, "nested", input={"log": []})
        (question,) = first["__interrupt__"]
        assert await client.runs.wait(thread, "nested", command={"resume": {question["id"]: "ok"}}) == {"log": ["ok"]}


@pytest.mark.parametrize("answer", [False, "", 0, [], {}, None, {"a": 1}])
async def test_any_value_is_an_answer(tmp_path: Path, answer: Any) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "asking", input={"log": []})
        body = {"assistant_id": "asking", "command": {"resume": answer}, "input": {}, "feedback_keys": ["x"]}
        found = await raw.post(f"/threads/{thread}/runs/wait", json=body)
        assert found.json() == {"log": ["plan", answer, "act"]}


async def test_a_failed_run_tells_its_error_where_it_is_waited_for_and_joined(tmp_path: Path) -> None:
    async with clients({"failing": failing()}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        found = await raw.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "failing", "input": {"log": []}})
        assert found.status_code == 200
        assert found.json() == {"__error__": {"error": "ValueError", "message": "kaboom"}}
        (run,) = await client.runs.list(thread)
        assert run["status"] == "error"
        assert found.headers["content-location"] == f"/threads/{thread}/runs/{run['run_id']}"
        assert found.headers["location"] == f"/threads/{thread}/runs/{run['run_id']}/join"
        with pytest.raises(Exception, match="kaboom"):
            await client.runs.wait(thread, "failing", input={"log": []})
        assert (await raw.get(found.headers["location"])).json() == found.json()
        assert (await client.threads.get(thread))["status"] == "error"


async def test_runs_are_listed_in_pages_and_read_and_deleted_when_they_are_over(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"asking": asking(), "held": held(gate)}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        made: list[str] = []
        for _ in range(3):
            made.append((await client.runs.create(thread, "asking", input={"log": []}))["run_id"])
            await client.runs.join(thread, made[-1])
            await client.runs.wait(thread, "asking", command={"goto": "__end__"})
        pages = await raw.get(
            f"/threads/{thread}/runs", params={"limit": 4, "offset": 1, "select": ["run_id", "status"]}
        )
        assert [set(run) for run in pages.json()] == [{"run_id", "status"}] * 4
        assert pages.headers["x-pagination-total"] == "6"
        assert pages.headers["x-pagination-next"] == "5"
        assert pages.json()[0]["run_id"] == made[2]
        run = await client.runs.get(thread, made[0])
        assert (run["status"], run["metadata"], run["multitask_strategy"]) == ("success", {}, "enqueue")
        assert run["kwargs"]["input"] == {"log": []}
        await client.runs.delete(thread, made[0])
        with pytest.raises(NotFoundError, match="has no run"):
            await client.runs.get(thread, made[0])
        active = await client.runs.create(thread, "held", input={"log": []})
        await gate.reached.wait()
        with pytest.raises(ConflictError, match="active run"):
            await client.runs.delete(thread, active["run_id"])
        gate.opened.set()
        assert await client.runs.join(thread, active["run_id"]) == {"log": ["first", "second", "third"]}
        assert await client.runs.list(thread, status="error") == []


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({}, 422, "assistant_id"),
        ({"assistant_id": "asking", "stream_mode": "nonsense"}, 422, "stream_mode"),
        ({"assistant_id": "nope", "input": {}}, 404, "Invalid assistant ID: 'nope'"),
        ({"assistant_id": "asking", "command": {"resume": 1}}, 409, "Nothing is pending"),
        ({"assistant_id": "asking", "config": {"configurable": 3}}, 422, "configurable"),
        ({"assistant_id": "asking", "command": {"goto": {"no": "node"}}}, 422, "goto"),
        ({"assistant_id": "asking", "webhook": "file:///etc/passwd"}, 422, "http or https"),
        ({"assistant_id": "asking", "webhook": "http://169.254.169.254/latest"}, 422, "link-local"),
    ],
)
async def test_a_request_that_does_not_fit_is_refused_before_anything_runs(
    tmp_path: Path, body: dict[str, Any], status: int, text: str
) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        found = await raw.post(f"/threads/{thread}/runs", json=body)
        assert (found.status_code, text in found.json()["detail"]) == (status, True), found.text
        assert await client.runs.list(thread) == []


async def test_an_unknown_thread_is_made_only_on_demand(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, _):
        thread = "5a0c6a4e-0000-4000-8000-000000000001"
        with pytest.raises(NotFoundError):
            await client.runs.create(thread, "asking", input={"log": []})
        found: Any = await client.runs.wait(thread, "asking", input={"log": []}, if_not_exists="create")
        assert found["log"] == ["plan"]
        assert (await client.threads.get(thread))["metadata"]["graph_id"] == "asking"


async def test_a_delayed_run_waits_for_its_time(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        late = await client.runs.create(thread, "asking", input={"log": ["late"]}, after_seconds=3600)
        now: Any = await client.runs.wait(thread, "asking", input={"log": ["now"]})
        assert now["log"] == ["now", "plan"]
        assert (await client.runs.get(thread, late["run_id"]))["status"] == "pending"


async def test_breakpoints_stop_and_no_input_goes_on(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first = [
            p
            async for p in client.runs.stream(
                thread, "asking", input={"log": []}, stream_mode=["updates"], interrupt_before=["plan"]
            )
        ]
        assert first[-2].data == {"__interrupt__": []}
        seen = await client.threads.get(thread)
        assert (seen["status"], seen["interrupts"]) == ("interrupted", {})
        second: Any = await client.runs.wait(thread, "asking", input=None)
        assert second["log"] == ["plan"]


async def test_going_to_the_end_closes_what_is_open(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        first: Any = await client.runs.wait(thread, "asking", input={"log": []})
        assert await client.runs.wait(thread, "asking", command={"goto": "__end__"}) == {"log": ["plan"]}
        assert (await client.threads.get(thread))["status"] == "idle"
        with pytest.raises(ConflictError, match="withdrawn"):
            await client.runs.create(thread, "asking", command={"resume": {first["__interrupt__"][0]["id"]: "yes"}})


async def test_an_update_comes_with_the_answer_and_config_and_context_reach_the_run(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "asking", input={"log": [], "__interrupt__": [{"id": "x"}]})
        command: Any = {"resume": "yes", "update": {"log": ["extra"]}}
        found: Any = await client.runs.wait(
            thread, "asking", command=command, metadata={"from": "test"}, config={"tags": ["t"], "recursion_limit": 30}
        )
        assert sorted(found["log"]) == ["act", "extra", "plan", "yes"]
        (run, _) = await client.runs.list(thread)
        assert run["metadata"] == {"from": "test"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"assistant_id": "asking", "metadata": {"a": NaN}}', "no JSON"),
        ('{"assistant_id": "asking", "input": {"log": [-Infinity]}}', "no JSON"),
        ('{"assistant_id": "asking", "input": ' + "[" * 500 + "]" * 500 + "}", "deeper than"),
    ],
)
async def test_what_no_store_can_hold_is_refused_at_the_door(tmp_path: Path, body: str, text: str) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (_, raw):
        found = await raw.post("/runs/wait", content=body, headers={"Content-Type": "application/json"})
        assert (found.status_code, text in found.json()["detail"]) == (422, True), found.text


async def test_lone_surrogates_are_taken_and_shown_replaced(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, raw):
        body = '{"assistant_id": "asking", "input": {"log": ["\\ud83d"]}, "metadata": {"x": "\\ud83d"}}'
        found = await raw.post("/runs", content=body, headers={"Content-Type": "application/json"})
        assert (found.status_code, found.json()["metadata"]) == (200, {"x": "?"})
        joined: Any = await client.runs.join(found.json()["thread_id"], found.json()["run_id"])
        assert joined["log"] == ["?", "plan"]
