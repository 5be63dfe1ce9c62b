"""Every run leaves its thread at rest: one that had nothing to do, one that was cancelled at its end, one that lost."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, chain, ids, parallel, thread
from waitpoint.checkpoint.base import Commit, Move
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import owner
from waitpoint.errors import GraphDrained, NotFoundError, ThreadBusyError
from waitpoint.graph import END, START, StateGraph
from waitpoint.runtime import RunControl
from waitpoint.types import Command, interrupt

WAIT = 10


def a(state: State) -> State:
    return {"log": ["a"]}


def ask(state: State) -> State:
    return {"log": [interrupt("name?")]}


def ask_more(state: State) -> State:
    return {"log": [interrupt("age?")]}


def status(saver: Any) -> str:
    (row,) = saver.threads()
    return str(row.status)


@pytest.mark.parametrize("command", [Command(goto=END), Command(update={})], ids=["goto END", "empty update"])
def test_a_command_that_leads_nowhere_leaves_a_finished_thread_idle(saver: Any, call: Call, command: Any) -> None:
    graph, config = chain(saver, a), thread()
    call(graph, {"log": []}, config)
    assert call(graph, command, config) == {"log": ["a"]}
    assert status(saver) == "idle"


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_an_input_that_leads_nowhere_is_stored_and_leaves_the_thread_idle(
    saver: Any, call: Call, durability: str
) -> None:
    graph, config = StateGraph(State).add_node(a).add_edge(START, END).compile(checkpointer=saver), thread()
    assert call(graph, {"log": ["given"]}, config, durability=durability) == {"log": ["given"]}
    assert status(saver) == "idle"
    assert graph.get_state(config).values == {"log": ["given"]}


class CancelledAtItsEnd(SqliteSaver):
    """Cancels the run while the commit of its rest returns."""

    loop: asyncio.AbstractEventLoop
    running: asyncio.Task[Any] | None = None

    def commit(self, change: Commit) -> None:
        super().commit(change)
        if change.rest is not None and self.running is not None:
            is_cancelled = threading.Event()
            self.loop.call_soon_threadsafe(self.running.cancel)
            self.loop.call_soon_threadsafe(self.loop.call_soon, is_cancelled.set)
            self.running = None
            assert is_cancelled.wait(WAIT)


@pytest.mark.parametrize(("node", "expected"), [(a, "idle"), (ask, "waiting")])
def test_a_run_that_is_cancelled_while_its_rest_is_stored_has_rested(tmp_path: Path, node: Any, expected: str) -> None:
    async def cancelled(saver: CancelledAtItsEnd) -> None:
        saver.loop = asyncio.get_running_loop()
        saver.running = work = asyncio.ensure_future(chain(saver, node).ainvoke({"log": []}, thread()))
        with pytest.raises(asyncio.CancelledError):
            await work

    with CancelledAtItsEnd(tmp_path / "threads.db") as saver:
        asyncio.run(cancelled(saver))
        assert status(saver) == expected


def test_who_answers_on_a_dead_run_and_is_overtaken_by_another_answer_gets_the_end(saver: Any, call: Call) -> None:
    graph, config = parallel(saver, ask, ask_more), thread()
    asked = ids(call(graph, {"log": []}, config))
    (row,) = saver.threads()
    saver.move(Move(row.key, row, replace(row, status="running", owner="gone", lease_until=0.0, fence=row.fence + 1)))
    plain = saver.move

    def overtaken(change: Move) -> None:
        saver.move = plain
        graph.invoke(Command(resume={asked["age?"]: 30}), config)
        plain(change)

    saver.move = overtaken
    assert call(graph, Command(resume={asked["name?"]: "ann"}), config) == {"log": ["ann", 30]}
    assert status(saver) == "idle"


def test_an_update_does_not_take_a_thread_from_a_run_that_has_saved_nothing_yet(saver: Any, call: Call) -> None:
    is_started, may_go_on = threading.Event(), threading.Event()

    def slow(state: State) -> State:
        is_started.set()
        assert may_go_on.wait(WAIT)
        return {"log": ["slow"]}

    graph, config = chain(saver, slow), thread()
    with ThreadPoolExecutor() as pool:
        run = pool.submit(graph.invoke, {"log": []}, config, durability="exit")
        try:
            assert is_started.wait(WAIT)
            with pytest.raises(ThreadBusyError):
                call(graph, Command(update={"log": ["other"]}), config)
        finally:
            may_go_on.set()
        assert run.result(WAIT) == {"log": ["slow"]}


def test_who_waits_for_a_thread_that_is_deleted_is_told_so(saver: Any, call: Call) -> None:
    graph, config = chain(saver, ask), thread()
    call(graph, {"log": []}, config)
    (row,) = saver.threads()
    claim = owner.claim(saver)
    saver.move(Move(row.key, row, replace(row, status="running", owner=claim, lease_until=None, fence=row.fence + 1)))
    looked, looks = saver.thread, count()

    def deleted(key: Any) -> Any:
        if next(looks):  # at first the call only finds out that it has to wait
            saver.delete_thread(key.thread_id)
        return looked(key)

    saver.thread = deleted
    try:
        with pytest.raises(NotFoundError, match="was deleted while this call waited"):
            call(graph, None, config)
    finally:
        owner.release(claim)


def test_a_run_that_is_drained_inside_a_nested_graph_is_ready_and_not_failed(saver: Any, call: Call) -> None:
    control, config = RunControl(), thread()

    def last_before_the_stop(state: State) -> State:
        control.request_drain()
        return {}

    inner = (
        StateGraph(State)
        .add_node(last_before_the_stop)
        .add_node(a)
        .add_edge(START, "last_before_the_stop")
        .add_edge("last_before_the_stop", "a")
        .compile(name="inner")
    )
    graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)
    with pytest.raises(GraphDrained):
        call(graph, {"log": []}, config, control=control)
    assert status(saver) == "ready"
    assert call(graph, None, config)["log"] == ["a"]
    assert status(saver) == "idle"
