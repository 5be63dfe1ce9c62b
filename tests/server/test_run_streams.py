"""Streams of runs: what comes in which mode, in which order, and after a cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.clients import clients
from tests.server.graphs import asking
from tests.server.run_graphs import Gate, asking_inside, failing, held, speaking, two_questions

HELLO = {"messages": [{"role": "user", "content": "hello"}]}


async def test_questions_come_last_and_together_in_updates_and_values(tmp_path: Path) -> None:
    async with clients({"two": two_questions()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        modes: Any = ["values", "updates"]
        parts = [p async for p in client.runs.stream(thread, "two", input={"log": ["in"]}, stream_mode=modes)]
        assert [p.event for p in parts] == ["metadata", "values", "updates", "values", "end"]
        asked = parts[2].data["__interrupt__"]
        assert [i["value"]["text"] for i in asked] == ["a", "b"]
        assert parts[3].data == {"log": ["in"], "__interrupt__": asked}
        assert parts[0].data["attempt"] == 1
        assert parts[-1].data == {"run_id": parts[0].data["run_id"], "status": "success"}
        again = [p async for p in client.runs.stream(thread, "two", input=None, stream_mode=modes)]
        assert [p.event for p in again][-3:] == ["updates", "values", "end"]
        assert again[-2].data == parts[3].data


async def test_a_question_from_inside_shows_at_the_root_with_and_without_subgraphs(tmp_path: Path) -> None:
    async with clients({"nested": asking_inside()}, tmp_path / "x.db") as (client, _):
        for subgraphs in (False, True):
            thread = (await client.threads.create())["thread_id"]
            stream = client.runs.stream(
                thread, "nested", input={"log": []}, stream_mode=["values", "updates"], stream_subgraphs=subgraphs
            )
            parts = [p async for p in stream]
            assert [p.event for p in parts][-3:] == ["updates", "values", "end"]
            assert parts[-2].data["__interrupt__"] == parts[-3].data["__interrupt__"]
            assert any(p.event.startswith("values|child:") for p in parts) is subgraphs


async def test_messages_come_in_pieces_or_growing(tmp_path: Path) -> None:
    async with clients({"speaking": speaking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        modes: Any = ["messages", "messages-tuple"]
        parts = [p async for p in client.runs.stream(thread, "speaking", input=HELLO, stream_mode=modes)]
        pieces = [p.data[0] for p in parts if p.event == "messages"]
        assert "".join(piece["content"] for piece in pieces) == "good day to you"
        assert {piece["type"] for piece in pieces} == {"AIMessageChunk"}
        assert next(p.data[1]["langgraph_node"] for p in parts if p.event == "messages") == "say"
        grown = [p.data[0] for p in parts if p.event == "messages/partial"]
        assert [m["content"] for m in grown][:3] == ["good", "good ", "good day"]
        assert (grown[-1]["content"], grown[-1]["type"], grown[-1]["id"]) == ("good day to you", "ai", "m1")
        (told,) = [p.data for p in parts if p.event == "messages/metadata"]
        assert list(told) == ["m1"]
        run = parts[0].data["run_id"]
        seen = [p for p in parts if p.event == "messages/partial"][3]
        rejoined = client.runs.join_stream(thread, run, stream_mode="messages", last_event_id=seen.id)
        assert [p.data[0]["content"] for p in [p async for p in rejoined] if p.event == "messages/partial"] == [
            m["content"] for m in grown[4:]
        ]


async def test_events_tell_of_graph_nodes_and_model(tmp_path: Path) -> None:
    async with clients({"speaking": speaking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        parts = [p async for p in client.runs.stream(thread, "speaking", input=HELLO, stream_mode="events")]
        events = [p.data for p in parts if p.event == "events"]
        kinds = [e["event"] for e in events]
        assert (kinds[0], kinds[-1]) == ("on_chain_start", "on_chain_end")
        assert events[0]["run_id"] == parts[0].data["run_id"]
        assert [e["metadata"]["langgraph_node"] for e in events if e["name"] == "say"][:1] == ["say"]
        assert "on_chat_model_stream" in kinds
        joined = [
            p
            async for p in client.runs.join_stream(
                thread, parts[0].data["run_id"], stream_mode="values", last_event_id="-1"
            )
        ]
        assert joined[-2].data["messages"][-1]["content"] == "good day to you"


async def test_tasks_checkpoints_and_debug_come_as_asked(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        modes: Any = ["tasks", "checkpoints", "debug"]
        parts = [p async for p in client.runs.stream(thread, "asking", input={"log": []}, stream_mode=modes)]
        tasks = [p.data for p in parts if p.event == "tasks"]
        assert [t["name"] for t in tasks if "triggers" in t] == ["plan", "review"]
        assert [i["value"] for i in tasks[-1]["interrupts"]] == [{"text": "Go on?"}]
        checkpoints = [p.data for p in parts if p.event == "checkpoints"]
        assert checkpoints[-1]["values"] == {"log": ["plan"]}
        assert checkpoints[-1]["next"] == ["review"]
        assert {p.data["type"] for p in parts if p.event == "debug"} == {"checkpoint", "task", "task_result"}


async def test_an_error_comes_before_the_end_which_comes_after_the_status(tmp_path: Path) -> None:
    async with clients({"failing": failing()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        statuses = []
        async for part in client.runs.stream(thread, "failing", input={"log": []}):
            if part.event == "error":
                assert part.data == {"error": "ValueError", "message": "kaboom"}
            if part.event == "end":
                run = await client.runs.get(thread, part.data["run_id"])
                statuses.append((part.data["status"], run["status"]))
        assert statuses == [("error", "error")]


async def test_a_reader_that_was_cut_off_goes_on_without_a_gap_or_a_double(tmp_path: Path) -> None:
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        seen = []
        run = ""
        async for part in client.runs.stream(thread, "held", input={"log": []}, stream_mode=["values", "updates"]):
            run = run or part.data["run_id"]
            seen.append(part)
            if part.event == "updates":
                break
        await gate.reached.wait()
        gate.opened.set()
        rest = [p async for p in client.runs.join_stream(thread, run, last_event_id=seen[-1].id)]
        whole = [p async for p in client.runs.join_stream(thread, run, last_event_id="-1")]
        assert [(p.id, p.event, p.data) for p in (*seen, *rest)] == [(p.id, p.event, p.data) for p in whole]
        assert [p.event for p in whole].count("updates") == 3
        live = [p async for p in client.runs.join_stream(thread, run)]
        assert [(p.event, p.data["status"]) for p in live] == [("end", "success")]


async def test_an_id_of_an_event_that_is_none_is_refused(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        run = await client.runs.create(thread, "asking", input={"log": []})
        place = f"/threads/{thread}/runs/{run['run_id']}/stream"
        found = await raw.get(place, headers={"Last-Event-ID": "1796046964290-0"})
        assert (found.status_code, "or -1 for all" in found.json()["detail"]) == (422, True)


async def test_a_thread_is_followed_over_all_its_runs(tmp_path: Path) -> None:
    async with clients({"asking": asking()}, tmp_path / "x.db") as (client, _):
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "asking", input={"log": []})
        await client.runs.wait(thread, "asking", command={"resume": "yes"})
        found = []
        async for part in await client.threads.join_stream(thread, stream_mode="run_modes", last_event_id="-1"):
            found.append((part.event, part.data))
            if [data.get("status") for _, data in found].count("run_done") == 2:
                break
        assert [e for e, _ in found].count("values") == 6
        brief = []
        async for part in await client.threads.join_stream(
            thread, stream_mode=["lifecycle", "state_update"], last_event_id="-1"
        ):
            brief.append(part)
            if [p.data.get("status") for p in brief].count("run_done") == 2:
                break
        assert [p.event for p in brief] == ["metadata", "state_update", "metadata"] * 2
        assert brief[-2].data == {"log": ["plan", "yes", "act"]}


@pytest.mark.parametrize("call", ["stream", "wait"])
async def test_silence_is_filled_so_that_the_connection_is_known_to_live(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waitpoint.server.sse.HEARTBEAT_SECONDS", 0.02)
    gate = Gate()
    async with clients({"held": held(gate)}, tmp_path / "x.db") as (client, raw):
        thread = (await client.threads.create())["thread_id"]
        body = {"assistant_id": "held", "input": {"log": []}, "stream_mode": "values"}
        sign = b": heartbeat\n\n" if call == "stream" else b"\n"
        text = b""
        async with raw.stream("POST", f"/threads/{thread}/runs/{call}", json=body) as response:
            async for piece in response.aiter_raw():
                text += piece
                if text.endswith(sign * 3):
                    gate.opened.set()
        assert gate.passes == 1
        assert b'{"log":["first","second","third"]}' in text
