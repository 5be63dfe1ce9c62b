"""Failed, dead and cancelled runs of a thread that others go on with, in an order made certain by gates.

Guarantees: decided-once, no-answer-left-behind, finished-is-not-rerun, never-wedged.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, TypedDict

import pytest

from tests.crash.actors import CONFIG, Actor, asked, at_rest
from tests.crash.checks import all_questions
from tests.crash.programs.raced import one_question
from waitpoint.checkpoint.base import BaseCheckpointSaver, Move, ThreadKey
from waitpoint.engine import answers, owner
from waitpoint.errors import (
    AlreadyAnsweredError,
    StoreError,
)
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt, step


class State(TypedDict):
    log: Annotated[list[str], operator.add]


# --- a failed thread --------------------------------------------------------------------------------------------------


def picky(saver: BaseCheckpointSaver, did: Callable[[str], object]) -> Any:
    """A node that fails on every answer but one."""

    def ask(state: State) -> dict[str, Any]:
        answer = interrupt("which?")
        did(answer)
        if answer != "right":
            raise ValueError(answer)
        return {"log": [answer]}

    graph = StateGraph(State)
    graph.add_node(ask)
    graph.add_edge(START, "ask")
    return graph.compile(checkpointer=saver, name="picky")


def failed(actor: Actor) -> str:
    """Bring a thread to fail on its answer, which may then be replaced; return the question's id."""
    question: str = actor.graph.invoke({"log": []}, CONFIG)["__interrupt__"][0].id
    with pytest.raises(ValueError, match="wrong"):
        actor.graph.invoke(Command(resume="wrong"), CONFIG)
    return question


def test_a_replacing_answer_that_is_first_is_what_both_runs_act_on(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    answering, going = actors(2, lambda saver: picky(saver, did.append))
    question = failed(answering)
    going.hold("before move").start(None, CONFIG).arrived()
    answering.hold("after settle").start(Command(resume={question: "right"}), CONFIG).arrived()
    going.go()
    answering.go()
    assert [answering.result(), going.result()] == [{"log": ["right"]}] * 2
    assert did == ["wrong", "right"]
    at_rest(store, "idle")


def test_an_answer_that_a_run_is_acting_on_is_not_replaced_under_its_feet(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    answering, going = actors(2, lambda saver: picky(saver, did.append))
    question = failed(answering)
    answering.hold("before settle").start(Command(resume={question: "right"}), CONFIG).arrived()
    going.hold("after move", "before commit").start(None, CONFIG).arrived()
    going.go().arrived()  # its body has taken the old answer
    error = answering.go().error()
    assert isinstance(error, AlreadyAnsweredError)
    assert error.still_to_run
    assert isinstance(going.go().error(), ValueError)
    assert answering.start(Command(resume={question: "right"}), CONFIG).result() == {"log": ["right"]}
    assert did == ["wrong", "wrong", "right"]
    at_rest(store, "idle")


def beside_picky(saver: BaseCheckpointSaver, did: Callable[[str], object]) -> Any:
    """A node that fails on its answer, beside one that waits for its own."""

    def ask(state: State) -> dict[str, Any]:
        answer = interrupt("which?")
        did(answer)
        if answer != "right":
            raise ValueError(answer)
        return {"log": [answer]}

    def other(state: State) -> dict[str, Any]:
        return {"log": [interrupt("other?")]}

    graph = StateGraph(State)
    for node in (ask, other):
        graph.add_node(node)
        graph.add_edge(START, node.__name__)
    return graph.compile(checkpointer=saver, name="beside")


def test_an_answer_is_not_replaced_while_a_run_for_another_answer_acts_on_it_again(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    replacing, answering = actors(2, lambda saver: beside_picky(saver, did.append))
    replacing.graph.invoke({"log": []}, CONFIG)
    ids = asked(store)
    with pytest.raises(ValueError, match="wrong"):
        replacing.graph.invoke(Command(resume={ids["ask"]: "wrong"}), CONFIG)
    replacing.hold("before settle").start(Command(resume={ids["ask"]: "right"}), CONFIG).arrived()
    answering.hold("before commit").start(Command(resume={ids["other"]: "other"}), CONFIG).arrived()
    error = replacing.go().error()
    assert isinstance(error, AlreadyAnsweredError)
    assert isinstance(answering.go().error(), ValueError)
    assert replacing.start(Command(resume={ids["ask"]: "right"}), CONFIG).result() == {"log": ["right", "other"]}
    assert did == ["wrong", "wrong", "right"]
    at_rest(store, "idle")


def two_at_once(saver: BaseCheckpointSaver, did: list[str]) -> Any:
    """A node that asks two questions at once, and fails at its second attempt before it reaches the second."""

    async def one() -> str:
        return str(interrupt("one?"))

    async def two() -> str:
        return str(interrupt("two?"))

    async def ask(state: State) -> dict[str, Any]:
        did.append("attempt")
        if len(did) == 1:
            return {"log": await asyncio.gather(one(), two())}
        first = await one()
        if len(did) == 2:
            raise ValueError("not now")
        return {"log": [first, await two()]}

    graph = StateGraph(State)
    graph.add_node(ask)
    graph.add_edge(START, "ask")
    return graph.compile(checkpointer=saver, name="two_at_once")


def test_an_answer_that_comes_while_its_node_fails_is_read_by_an_attempt_before_the_thread_rests(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    (runner,) = actors(1, lambda saver: two_at_once(saver, did))
    runner.start_async({"log": []}, CONFIG).result()
    ids = {q.value: q.id for q in store.pending()}
    runner.hold("before commit (ask failed").start_async(Command(resume={ids["one?"]: "1"}), CONFIG).arrived()
    assert answers.answer(store, ids["two?"], "2").status == "running"
    assert runner.go().result() == {"log": ["1", "2"]}
    assert len(did) == 3
    at_rest(store, "idle")


# --- a dead run -------------------------------------------------------------------------------------------------------


def test_two_take_over_from_a_dead_run_at_once_and_one_runs(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    pair = actors(2, lambda saver: one_question(saver, did.append))
    for n in range(10):
        config = {"configurable": {"thread_id": f"round {n}"}}
        pair[0].graph.invoke({"log": []}, config)
        (question,) = store.pending(thread_id=f"round {n}")
        row = answers.answer(store, question.id, "yes")
        orphan(store, row.key)
        barrier = threading.Barrier(2)
        for actor in pair:
            actor.meet("before move", barrier).start(None, config)
        assert [actor.result() for actor in pair] == [{"log": ["yes", "end"]}] * 2
        assert did.count(f"round {n} after") == 1


def orphan(store: BaseCheckpointSaver, key: ThreadKey) -> None:
    """Leave a thread as a process does that dies right after it claimed it."""
    row = store.thread(key)
    assert row is not None
    dead = owner.me().rpartition("/")[0] + "/1/gone"
    store.move(Move(key, row, replace(row, status="running", fence=row.fence + 1, owner=dead, lease_until=None)))


# --- a store that fails beside a sibling at work ----------------------------------------------------------------------


@pytest.mark.parametrize("start", ["start", "start_async"])
def test_nobody_gets_the_thread_while_a_sibling_of_a_failed_commit_is_still_at_work(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]], start: str
) -> None:
    free = threading.Event()

    def quick(state: State) -> dict[str, Any]:
        did.append("quick")
        return {"log": ["quick"]}

    def slow(state: State) -> dict[str, Any]:
        free.wait(10)
        did.append("slow")
        return {"log": ["slow"]}

    def build(saver: BaseCheckpointSaver) -> Any:
        graph = StateGraph(State)
        for node in (quick, slow):
            graph.add_node(node)
            graph.add_edge(START, node.__name__)
        return graph.compile(checkpointer=saver, name="beside")

    def full_disk() -> None:
        raise StoreError("the disk is full")

    runner, other = actors(2, build)
    runner.hold("before commit (quick done").gate.hold("before commit (quick done", full_disk)
    getattr(runner, start)({"log": []}, CONFIG).arrived().go()
    waiting = other.start(None, CONFIG)
    assert not runner.ends_within(0.1)  # it has failed, and waits for its sibling
    assert not waiting.ends_within(0)
    free.set()
    assert isinstance(runner.error(), StoreError)
    assert waiting.result() == {"log": ["quick", "slow"]}
    assert sorted(did) == ["quick", "slow"]


# --- cancelled while a step is written down ---------------------------------------------------------------------------


@pytest.mark.parametrize("in_doubt", ["rerun", "ask"])
def test_a_step_that_is_being_recorded_when_its_run_is_cancelled_is_not_repeated(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]], in_doubt: Any
) -> None:
    point = "before commit (step done" if in_doubt == "rerun" else "before record done"
    assert cancelled_in_a_step(store, did, actors, in_doubt, point) == {"log": ["effect"]}
    assert did == ["effect"]
    at_rest(store, "idle")


def test_a_step_that_was_cancelled_just_before_it_began_is_not_in_doubt(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    point = "before commit (step executing"
    assert cancelled_in_a_step(store, did, actors, "ask", point) == {"log": ["effect"]}
    assert did == ["effect"]
    assert all_questions(store, "t") == []


def cancelled_in_a_step(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]], in_doubt: Any, point: str
) -> Any:
    """Cancel a run while its step is held at a point, and go on at once; return the end."""

    async def effect() -> str:
        did.append("effect")
        return "effect"

    async def node(state: State) -> dict[str, Any]:
        return {"log": [await step(effect, in_doubt=in_doubt)]}

    def build(saver: BaseCheckpointSaver) -> Any:
        graph = StateGraph(State)
        graph.add_node(node)
        graph.add_edge(START, "node")
        return graph.compile(checkpointer=saver, name="cancelled")

    (actor,) = actors(1, build)

    async def cancelled() -> Any:
        run = asyncio.create_task(actor.graph.ainvoke({"log": []}, CONFIG))
        await asyncio.to_thread(arrived.wait, 10)
        run.cancel()
        for _ in range(10):
            await asyncio.sleep(0)  # the cancellation reaches the node
        run.cancel()
        asyncio.get_running_loop().call_later(0.05, free.set)
        with pytest.raises(asyncio.CancelledError):
            await run
        return await actor.graph.ainvoke(None, CONFIG)

    arrived, free = threading.Event(), threading.Event()
    actor.gate.hold(point, lambda: (arrived.set(), free.wait(10)))
    return asyncio.run(cancelled())
