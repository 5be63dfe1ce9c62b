"""What reaches the caller when a store fails, a run is cancelled or its consumer hangs, and what is kept then."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Consumed
from tests.behaviours.graphs import State, chain, parallel, thread
from waitpoint.config import get_stream_writer
from waitpoint.errors import StoreError
from waitpoint.testing.faults import FaultySaver, Points, fail
from waitpoint.types import Command, interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def ask(state: State) -> State:
    return {"log": [interrupt("ok?")]}


# --- stores that fail -------------------------------------------------------------------------------------------------


def every_fault(saver: Any, play: Any) -> list[str]:
    """Play once without a fault, then with one at each point that was passed; return those points."""
    points = Points()
    play(FaultySaver(saver, points), thread())
    for number, name in enumerate(points.passed, 1):
        config = thread()
        with pytest.raises(StoreError, match="disk is full") as raised:
            play(FaultySaver(saver, Points(number, fail)), config)
        assert repr(name) in str(raised.value)
    return points.passed


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_store_that_fails_at_any_transition_is_heard_by_whoever_streams(
    saver: Any, streamed: Call, durability: str
) -> None:
    """B119"""

    def play(faulty: Any, config: Any) -> None:
        graph = chain(faulty, a, ask)
        streamed(graph, {"log": []}, config, durability=durability)
        streamed(graph, Command(resume="yes"), config, durability=durability)

    assert len(every_fault(saver, play)) >= 6


@pytest.mark.parametrize("what", ["output", "events", "interrupts"])
def test_it_is_heard_by_whoever_follows_events(saver: Any, consumed: Consumed, what: str) -> None:
    """B119, B196"""
    assert every_fault(saver, lambda faulty, config: consumed(chain(faulty, a, ask), what, {"log": []}, config))


@pytest.mark.parametrize("form", ["update_state", "aupdate_state"])
def test_it_is_heard_by_whoever_changes_the_state(saver: Any, form: str) -> None:
    """B119: and the thread is as it was"""
    config, points = thread(), Points(1, fail)
    chain(saver, a, ask).invoke({"log": []}, config)
    graph = chain(FaultySaver(saver, points), a, ask)
    with pytest.raises(StoreError, match="disk is full"):
        if form == "update_state":
            graph.update_state(config, {"log": ["x"]})
        else:
            asyncio.run(graph.aupdate_state(config, {"log": ["x"]}))
    assert chain(saver, a, ask).get_state(config).values == {"log": ["a"]}
    assert len(saver.pending()) == 1


# --- cancelled runs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["ainvoke", "astream"])
async def test_a_cancelled_run_cancels_its_node_and_keeps_what_finished(saver: Any, way: str) -> None:
    """B122"""
    started, told = asyncio.Event(), []

    async def waits(state: State) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("node")
            raise

    graph, config = chain(saver, a, waits), thread()

    async def consume() -> None:
        if way == "ainvoke":
            await graph.ainvoke({"log": []}, config)
        async for _ in graph.astream({"log": []}, config):
            pass

    run = asyncio.create_task(consume())
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert told == ["node"]
    state = await graph.aget_state(config)
    assert (state.values, state.next) == ({"log": ["a"]}, ("waits",))


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("point", ["before commit (a done, checkpoint)", "before commit (asked by ask"])
async def test_a_write_that_has_begun_ends_before_the_cancellation_reaches_the_caller(
    saver: Any, point: str, durability: str
) -> None:
    """B122"""
    begun, go_on = threading.Event(), threading.Event()

    def hold(name: str) -> None:
        if "commit" in name and not begun.is_set() and _fits(name, point):
            begun.set()
            assert go_on.wait(10)

    graph, config = chain(FaultySaver(saver, Points(told=hold)), a, ask), thread()
    run = asyncio.create_task(graph.ainvoke({"log": []}, config, durability=durability))
    await asyncio.to_thread(begun.wait, 10)
    run.cancel()
    for _ in range(50):  # the loop has every chance to let the caller go
        await asyncio.sleep(0)
    assert not run.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await run
    state = await chain(saver, a, ask).aget_state(config)
    assert state.values == {"log": ["a"]}
    assert [i.value for i in state.interrupts] == (["ok?"] if "ask" in point else [])


def _fits(name: str, point: str) -> bool:
    return name.startswith("before") and ("asked by ask" in name if "ask" in point else "a done" in name)


# --- consumers that hang ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["updates", "custom"])
async def test_a_consumer_that_hangs_does_not_defeat_the_step_timeout(saver: Any, mode: str) -> None:
    """B191"""
    told: list[str] = []

    async def quick(state: State) -> State:
        get_stream_writer()("quick")
        return {"log": ["quick"]}

    async def slow(state: State) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    graph, config = parallel(saver, quick, slow), thread()
    graph.step_timeout = 0.05
    parts = []
    with pytest.raises(asyncio.TimeoutError):
        async for part in graph.astream({"log": []}, config, stream_mode=mode):
            parts.append(part)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 0.15)
    assert parts == [{"quick": {"log": ["quick"]}} if mode == "updates" else "quick"]
    assert told == ["cancelled"]
    assert (await graph.aget_state(config)).next == ("slow",)


def test_a_blocking_consumer_that_hangs_does_not_defeat_it_either(saver: Any) -> None:
    """B191"""
    never, release = threading.Event(), threading.Event()

    def slow(state: State) -> State:
        get_stream_writer()("slow")
        release.wait(10)
        return {"log": ["late"]}

    graph, config = chain(saver, slow), thread()
    graph.step_timeout = 0.05
    with pytest.raises(TimeoutError):
        for _ in graph.stream({"log": []}, config, stream_mode="custom"):
            never.wait(0.15)
    release.set()
    assert graph.get_state(config).values == {"log": []}
