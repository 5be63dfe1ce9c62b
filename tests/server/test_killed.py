"""A server that is killed goes on where it was: no answer is lost, nothing finished runs twice, streams rejoin."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client

from tests.server.killed import running
from tests.server.run_graphs import meet
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import answers
from waitpoint.records import Answer

pytestmark = pytest.mark.slow

MODES: Any = ["values", "updates"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("reached", "go"):
        os.mkfifo(tmp_path / name)
    return tmp_path


async def at(pipe: Path, mode: str) -> None:
    """Come to a pipe where the graph waits."""
    await asyncio.to_thread(meet, pipe, mode)


def notes(folder: Path) -> list[str]:
    return (folder / "notes").read_text(encoding="utf-8").split()


async def read(parts: Any) -> list[Any]:
    return [(part.id, part.event, part.data) async for part in parts]


async def test_a_stream_goes_on_after_the_server_was_killed_in_the_middle(folder: Path) -> None:
    with running(folder) as first:
        async with get_client(url=first.url) as client:
            thread = (await client.threads.create())["thread_id"]
            run = (await client.runs.create(thread, "noting", input={"log": []}, stream_mode=MODES))["run_id"]
            await at(folder / "reached", "r")
            seen = []
            async for part in client.runs.join_stream(thread, run, last_event_id="-1"):
                seen.append((part.id, part.event, part.data))
                if part.event == "values" and part.data == {"log": ["plan"]}:
                    break
    with running(folder) as second:
        async with get_client(url=second.url) as client:
            rest = asyncio.create_task(read(client.runs.join_stream(thread, run, last_event_id=seen[-1][0])))
            await at(folder / "reached", "r")
            await at(folder / "go", "w")
            after = await rest
            whole = await read(client.runs.join_stream(thread, run, last_event_id="-1"))
            assert [*seen, *after] == whole
            ids = [int(id_) for id_, _, _ in whole]
            assert ids == sorted(set(ids))
            assert [data["attempt"] for _, event, data in whole if event == "metadata"] == [1, 2]
            assert [data for _, event, data in whole if event == "updates"][:2] == [
                {"plan": {"log": ["plan"]}},
                {"work": {"log": ["work"]}},
            ]
            assert whole[-2][2]["log"] == ["plan", "work"]
            (question,) = whole[-2][2]["__interrupt__"]
            assert notes(folder) == ["plan", "work", "work"]  # what had not finished began again
            found = await client.runs.wait(thread, "noting", command={"resume": {question["id"]: "yes"}})
            assert found == {"log": ["plan", "work", "yes", "act"]}
            assert notes(folder) == ["plan", "work", "work", "answered", "act"]


async def test_an_answer_that_was_stored_when_the_server_was_killed_is_acted_on_by_the_next(folder: Path) -> None:
    with running(folder) as first:
        async with get_client(url=first.url) as client:
            thread = (await client.threads.create())["thread_id"]
            run = await client.runs.create(thread, "noting", input={"log": []})
            await at(folder / "reached", "r")
            await at(folder / "go", "w")
            asked: Any = await client.runs.join(thread, run["run_id"])
            (question,) = asked["__interrupt__"]
    with SqliteSaver(folder / "threads.db") as saver:  # what a request does first, before its run is stored
        answers.answer(saver, question["id"], Answer("yes", by="ana"))
    with running(folder) as second:
        async with get_client(url=second.url) as client:
            async for part in await client.threads.join_stream(thread, last_event_id="-1"):
                if part.event == "values" and "act" in part.data["log"]:
                    break
            assert part.data == {"log": ["plan", "work", "yes", "act"]}
            assert notes(folder) == ["plan", "work", "answered", "act"]
            with pytest.raises(Exception, match="was answered by 'ana'"):
                await client.runs.create(thread, "noting", command={"resume": {question["id"]: "no"}})


async def test_a_run_that_waited_for_its_turn_when_the_server_was_killed_has_it_later(folder: Path) -> None:
    with running(folder) as first:
        async with get_client(url=first.url) as client:
            thread = (await client.threads.create())["thread_id"]
            one = await client.runs.create(thread, "noting", input={"log": [1]})
            two = await client.runs.create(thread, "noting", input={"log": [2]}, multitask_strategy="enqueue")
            await at(folder / "reached", "r")
    with running(folder) as second:
        async with get_client(url=second.url) as client:
            await at(folder / "reached", "r")
            await at(folder / "go", "w")
            asked: Any = await client.runs.join(thread, one["run_id"])
            assert asked["log"] == [1, "plan", "work"]
            refused: Any = await client.runs.join(thread, two["run_id"])
            assert refused["__error__"]["pending_ids"] == [asked["__interrupt__"][0]["id"]]
            assert (await client.runs.get(thread, two["run_id"]))["status"] == "error"
            assert (await client.runs.get(thread, one["run_id"]))["status"] == "success"


async def test_a_run_that_was_told_to_stop_when_the_server_was_killed_does_not_begin_again(folder: Path) -> None:
    with running(folder) as first:
        async with get_client(url=first.url) as client:
            thread = (await client.threads.create())["thread_id"]
            run = (await client.runs.create(thread, "noting", input={"log": []}))["run_id"]
            await at(folder / "reached", "r")
            await client.runs.cancel(thread, run)  # its step is a plain function, which nothing can stop
    with running(folder) as second:
        async with get_client(url=second.url) as client:
            parts = await read(client.runs.join_stream(thread, run, last_event_id="-1"))
            assert parts[-1][2]["status"] == "interrupted"
            assert (await client.threads.get(thread))["status"] == "interrupted"
            assert notes(folder) == ["plan", "work"]


async def test_many_threads_come_to_their_ends_though_the_server_is_killed_among_them(folder: Path) -> None:
    threads: dict[str, str] = {}
    seen: dict[str, str] = {}  # the last event that a reader of each thread saw
    finished: set[tuple[str, str]] = set()  # steps whose end somebody saw
    accepted: set[str] = set()  # threads whose answer was taken

    async def lived(client: Any, name: str, killing: Any) -> None:
        """Follow a thread, answer what it asks, and kill the server once half of the answers were taken."""
        with contextlib.suppress(httpx.HTTPError):
            async for part in await client.threads.join_stream(threads[name], last_event_id=seen.get(name, "-1")):
                if part.event == "updates" and "__interrupt__" in part.data:
                    await answered(client, name)
                    accepted.add(name)
                    if killing is not None and len(accepted) >= 5:
                        killing()
                elif part.event == "updates":
                    finished.update((name, step) for step in part.data)
                elif part.event == "end" or part.data.get("status") == "run_done":
                    state = await client.threads.get(threads[name])
                    if state["status"] == "idle":
                        return
                seen[name] = part.id  # what was not acted on is read again

    async def answered(client: Any, name: str) -> None:
        headers = {"Idempotency-Key": f"answer to {name}"}
        await client.runs.create(
            threads[name], "counted", command={"resume": name}, stream_mode=["updates"], headers=headers
        )

    with running(folder) as first:
        async with get_client(url=first.url) as client:
            for name in map(str, range(10)):
                threads[name] = (await client.threads.create())["thread_id"]
                await client.runs.create(
                    threads[name], "counted", input={"name": name, "log": []}, stream_mode=["updates"]
                )
            await asyncio.gather(*(lived(client, name, first.kill) for name in threads))
    before = set(finished)
    assert 5 <= len(accepted) <= 10
    with running(folder) as second:
        async with get_client(url=second.url) as client:
            await asyncio.gather(*(lived(client, name, None) for name in threads))
            for name, thread in threads.items():
                state: Any = await client.runs.wait(thread, "counted", input=None)
                assert state["log"] == ["plan", name, "act"]
                done = lines(folder, name)
                for step in ("plan", "act"):
                    assert done.count(step) == 1 or (name, step) not in before, (name, done)
                assert set(done) == {"plan", "act"}


def lines(folder: Path, name: str) -> list[str]:
    path = folder / f"counted-{name}"
    return path.read_text(encoding="utf-8").split() if path.exists() else []
