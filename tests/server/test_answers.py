"""Answers over HTTP: who wins, what comes twice, old checkpoints, and decisions in the forms of older clients."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.agents.gated import Effects, approval
from tests.agents.scripted import Scripted, calls
from tests.server.clients import clients
from tests.server.graphs import asking
from tests.server.run_graphs import Gate, held
from waitpoint.agents import create_agent
from waitpoint.testing.witness import Witness


async def test_of_two_who_answer_at_once_one_wins_and_the_other_is_told_when(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        asked: Any = await client.runs.wait(thread, "asking", input={"log": []})
        (question,) = asked["__interrupt__"]

        async def answer(value: str) -> Any:
            body = {"assistant_id": "asking", "command": {"resume": {question["id"]: value}}}
            return await raw.post(f"/threads/{thread}/runs/wait", json=body)

        answers = await asyncio.gather(*(answer(value) for value in ("ana", "bob")))
        won, lost = sorted(answers, key=lambda found: found.status_code)
        assert (won.status_code, lost.status_code) == (200, 409)
        assert won.json()["log"] in (["plan", "ana", "act"], ["plan", "bob", "act"])
        assert lost.json()["code"] == "already_answered"
        assert lost.json()["interrupt_ids"] == [question["id"]]
        assert "was answered" in lost.json()["detail"]
        assert len(await client.runs.list(thread)) == 2


async def test_two_clicks_on_one_button_start_one_run(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "asking", input={"log": []})
        body = {"assistant_id": "asking", "command": {"resume": "yes"}}
        clicks = await asyncio.gather(*(raw.post(f"/threads/{thread}/runs", json=body) for _ in range(2)))
        assert sorted(click.status_code for click in clicks) == [200, 409]
        runs = await client.runs.list(thread)
        assert len(runs) == 2
        assert await client.runs.join(thread, runs[0]["run_id"]) == {"log": ["plan", "yes", "act"]}


async def test_the_same_request_with_the_same_token_is_the_same_run(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"asking": asking(), "held": held(gate)}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        place = f"/threads/{thread}/runs"
        body: dict[str, Any] = {"assistant_id": "held", "input": {"log": []}}
        twice = await asyncio.gather(*(raw.post(place, json=body, headers={"Idempotency-Key": "k1"}) for _ in range(2)))
        assert len({found.json()["run_id"] for found in twice}) == 1
        gate.opened.set()
        for _ in range(2):
            found = await raw.post(f"{place}/wait", json=body, headers={"Idempotency-Key": "k1"})
            assert found.json() == {"log": ["first", "second", "third"]}
        assert gate.passes == 1
        other = await raw.post(place, json={**body, "input": {"log": [1]}}, headers={"Idempotency-Key": "k1"})
        assert (other.status_code, other.json()["code"]) == (409, "token_used")
        assert len(await client.runs.list(thread)) == 1


async def test_an_answer_that_comes_again_with_its_token_gives_the_stored_outcome_and_another_is_refused(
    tmp_path: Path,
) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "asking", input={"log": []})
        place = f"/threads/{thread}/runs/wait"
        for _ in range(2):
            body = {"assistant_id": "asking", "command": {"resume": "yes", "token": "t1"}}
            assert (await raw.post(place, json=body)).json() == {"log": ["plan", "yes", "act"]}
        body = {"assistant_id": "asking", "command": {"resume": "wider", "token": "t1"}}
        refused = await raw.post(place, json=body)
        assert (refused.status_code, "stands" in refused.json()["detail"]) == (409, True)


async def test_the_head_as_checkpoint_resumes_and_an_older_one_asks_anew(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        modes: Any = ["checkpoints"]
        parts = [p async for p in client.runs.stream(thread, "asking", input={"log": []}, stream_mode=modes)]
        head = next(p for p in reversed(parts) if p.event == "checkpoints").data["config"]["configurable"]
        place: Any = {"checkpoint_id": head["checkpoint_id"], "checkpoint_ns": ""}
        once = await client.runs.wait(thread, "asking", command={"resume": "once"}, checkpoint=place)
        assert once == {"log": ["plan", "once", "act"]}
        again = await client.runs.wait(thread, "asking", command={"resume": "again"}, checkpoint=place)
        assert again == {"log": ["plan", "again", "act"]}


async def test_an_answer_to_a_thread_that_never_ran_is_refused(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        found = await raw.post(
            f"/threads/{thread}/runs/stream", json={"assistant_id": "asking", "command": {"resume": 1}}
        )
        assert (found.status_code, await client.runs.list(thread)) == (409, [])


PAY: dict[str, Any] = {"to": "bob", "amount": 5}


@pytest.mark.parametrize(
    ("answer", "done"),
    [
        ({"decisions": [{"type": "approve"}]}, ["paid 5 to bob"]),
        ({"type": "approve"}, ["paid 5 to bob"]),
        ([{"type": "approve"}], ["paid 5 to bob"]),
        ({"c1": {"type": "approve"}}, ["paid 5 to bob"]),
        ([{"type": "accept", "args": {"action": "pay", "args": PAY}}], ["paid 5 to bob"]),
        ([{"type": "accept", "args": None}], ["paid 5 to bob"]),
        ([{"type": "edit", "args": {"action": "pay", "args": {"to": "eve", "amount": "7"}}}], ["paid 7 to eve"]),
        ([{"type": "ignore", "args": None}], []),
        ([{"type": "response", "args": "not him"}], []),
        (
            {"decisions": [{"type": "edit", "editedAction": {"name": "pay", "args": {**PAY, "amount": 1}}}]},
            ["paid 1 to bob"],
        ),
    ],
)
@pytest.mark.parametrize(("mode", "by_id"), [("batched", False), ("per_call", True)])
async def test_decisions_are_taken_in_every_form(
    tmp_path: Path, mode: str, by_id: bool, answer: Any, done: list[str]
) -> None:
    effects = Effects(Witness(tmp_path / "effects"))
    model = Scripted(calls(("pay", "c1", PAY)), "done")
    agent = create_agent(model, effects.tools, middleware=[approval(mode)], name="agent")
    async with clients({"agent": agent}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        asked: Any = await client.runs.wait(thread, "agent", input={"messages": [{"role": "user", "content": "pay"}]})
        (question,) = asked["__interrupt__"]
        resume = {question["id"]: answer} if by_id else answer
        found: Any = await client.runs.wait(thread, "agent", command={"resume": resume})
        assert effects.lines() == done
        assert found["messages"][-1]["content"] == "done"
        if not done:
            (told,) = [m for m in found["messages"] if m["type"] == "tool"]
            assert ("not him" in told["content"]) is (answer[0]["type"] == "response")


async def test_a_decision_that_does_not_fit_is_refused_and_the_question_stays(tmp_path: Path) -> None:
    effects = Effects(Witness(tmp_path / "effects"))
    model = Scripted(calls(("wipe", "c1", {"path": "/"})), "done")
    agent = create_agent(model, effects.tools, middleware=[approval("batched")], name="agent")
    async with clients({"agent": agent}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        asked: Any = await client.runs.wait(thread, "agent", input={"messages": [{"role": "user", "content": "x"}]})
        (question,) = asked["__interrupt__"]
        for answer in ({"decisions": [{"type": "approve"}]}, [{"type": "accept", "args": None}], "yes", {"x": 1}):
            for resume in (answer, {question["id"]: answer}):
                body = {"assistant_id": "agent", "command": {"resume": resume}}
                assert (await raw.post(f"/threads/{thread}/runs", json=body)).status_code == 422
        assert (await client.threads.get(thread))["status"] == "interrupted"
        assert effects.lines() == []


async def test_a_batched_question_has_the_keys_that_older_clients_look_for_and_keeps_its_own(tmp_path: Path) -> None:
    effects = Effects(Witness(tmp_path / "effects"))
    agent = create_agent(
        Scripted(calls(("pay", "c1", PAY))), effects.tools, middleware=[approval("batched")], name="agent"
    )
    async with clients({"agent": agent}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        modes: Any = ["values", "updates"]
        hello = {"messages": [{"role": "user", "content": "pay"}]}
        parts = [p async for p in client.runs.stream(thread, "agent", input=hello, stream_mode=modes)]
        shown = [p.data["__interrupt__"][0] for p in parts if "__interrupt__" in (p.data or {})]
        assert len(shown) == 2
        assert shown[0] == shown[1]
        value = shown[0]["value"]
        (action,), (config,) = value["action_requests"], value["review_configs"]
        assert action["arguments"] == action["args"] == PAY
        assert config["actionName"] == config["action_name"] == "pay"
        assert config["allowedDecisions"] == config["allowed_decisions"]
        assert (value["actionRequests"], value["reviewConfigs"]) == ([action], [config])
