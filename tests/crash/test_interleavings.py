"""Runs of one thread that meet, in an order made certain by gates; in threads, on memory and on a file.

Guarantees: decided-once, no-answer-left-behind, finished-is-not-rerun, never-wedged.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from tests.crash.actors import Actor
from tests.crash.checks import all_questions, unread_answers
from tests.crash.programs.raced import many_questions, one_question
from waitpoint.checkpoint.base import BaseCheckpointSaver, Move, ThreadKey
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import answers, owner
from waitpoint.errors import (
    AlreadyAnsweredError,
    PendingQuestionsError,
    StoreError,
    ThreadBusyError,
    UnknownInterruptError,
)
from waitpoint.graph import START, StateGraph
from waitpoint.types import Answer, Command, interrupt, step

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}
WHOLE = {"log": ["a", "b", "c", "end"]}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver]:
    with InMemorySaver() if request.param == "memory" else SqliteSaver(tmp_path / "threads.sqlite") as store:
        yield store


@pytest.fixture
def did() -> list[str]:
    """What the bodies did after their questions."""
    return []


@pytest.fixture
def actors(store: BaseCheckpointSaver) -> Iterator[Callable[..., list[Actor]]]:
    hired: list[Actor] = []

    def hire(count: int, build: Callable[[BaseCheckpointSaver], Any]) -> list[Actor]:
        hired.extend(Actor(store, build) for _ in range(count))
        return hired[-count:]

    yield hire
    for actor in hired:
        actor.close()


def asked(store: BaseCheckpointSaver) -> dict[str, str]:
    """Return the open questions' ids by node."""
    return {q.node: q.id for q in store.pending(thread_id="t")}


def at_rest(store: BaseCheckpointSaver, status: str) -> None:
    """Check that the thread rests, and that nothing was left unread."""
    (row,) = store.threads(thread_id="t")
    assert (row.status, row.owner) == (status, None)
    assert unread_answers(store, row.key) == []


# --- answers that meet ------------------------------------------------------------------------------------------------


def test_threads_that_answer_one_question_at_once_have_one_winner(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    three = actors(3, lambda saver: one_question(saver, did.append))
    for n in range(20):
        config = {"configurable": {"thread_id": f"round {n}"}}
        three[0].graph.invoke({"log": []}, config)
        barrier = threading.Barrier(3)
        for i, actor in enumerate(three):
            actor.meet("before settle", barrier).start(Command(resume=Answer(f"by {i}", by=f"person {i}")), config)
        errors = [actor.error() for actor in three]
        (winner,) = [i for i, error in enumerate(errors) if error is None]
        assert three[winner].result() == {"log": [f"by {winner}", "end"]}
        lost = [error for error in errors if isinstance(error, AlreadyAnsweredError)]
        assert [error.answered_by for error in lost] == [f"person {winner}"] * 2
        assert did.count(f"round {n} after") == 1


def test_threads_that_answer_three_questions_at_once_all_return_the_end(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    three = actors(3, lambda saver: many_questions(saver, did.append))
    for n in range(20):
        config = {"configurable": {"thread_id": f"round {n}"}}
        three[0].graph.invoke({"log": []}, config)
        ids = {q.node: q.id for q in store.pending(thread_id=f"round {n}")}
        barrier = threading.Barrier(3)
        for node, actor in zip("abc", three, strict=True):
            actor.meet("after settle", barrier).start(Command(resume={ids[node]: node}), config)
        assert [actor.result() for actor in three] == [WHOLE] * 3
        assert unread_answers(store, ThreadKey(f"round {n}", "many")) == []
    assert len(did) == len(set(did)) == 20 * 10


def test_an_answer_that_comes_just_before_the_run_rests_is_read_by_that_run(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    first, second = actors(2, lambda saver: many_questions(saver, did.append))
    first.graph.invoke({"log": []}, CONFIG)
    ids = asked(store)
    first.hold("before commit () rest waiting").start(Command(resume={ids["a"]: "a"}), CONFIG).arrived()
    second.hold("after settle").start(Command(resume={ids["b"]: "b", ids["c"]: "c"}), CONFIG).arrived()
    first.go()
    assert first.result() == WHOLE
    second.go()
    assert second.result() == WHOLE
    assert len(did) == len(set(did)) == 10
    at_rest(store, "idle")


def two_in_a_row(saver: BaseCheckpointSaver, did: Callable[[str], object]) -> Any:
    """One node asks twice with a step between, beside one that asks once."""

    def a(state: State) -> dict[str, Any]:
        one = interrupt("one?")
        step(did, "between")
        return {"log": [one, interrupt("two?")]}

    def b(state: State) -> dict[str, Any]:
        return {"log": [interrupt("b?")]}

    graph = StateGraph(State)
    for node in (a, b):
        graph.add_node(node)
        graph.add_edge(START, node.__name__)
    return graph.compile(checkpointer=saver, name="two")


def test_a_node_woken_twice_in_one_run_does_not_repeat_the_step_of_its_first_waking(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    (runner,) = actors(1, lambda saver: two_in_a_row(saver, did.append))
    runner.graph.invoke({"log": []}, CONFIG)
    ids = asked(store)
    runner.hold("before commit (a waiting", "before commit (b done)")
    runner.start(Command(resume={ids["a"]: "one"}), CONFIG).arrived()
    answers.answer(store, ids["b"], "b")
    runner.go().arrived()
    answers.answer(store, asked(store)["a"], "two")
    assert runner.go().result() == {"log": ["one", "two", "b"]}
    assert did == ["between"]
    at_rest(store, "idle")


# --- new input and an answer ------------------------------------------------------------------------------------------


def test_new_input_is_refused_once_an_answer_was_first_and_its_run_is_on(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    answering, giving = actors(2, lambda saver: one_question(saver, did.append))
    answering.graph.invoke({"log": []}, CONFIG)
    giving.hold("before move").start({"log": ["new"]}, CONFIG, on_pending="withdraw").arrived()
    answering.hold("after settle").start(Command(resume="yes"), CONFIG).arrived()
    error = giving.go().error()
    assert isinstance(error, ThreadBusyError)
    assert answering.go().result() == {"log": ["yes", "end"]}
    assert did == ["t after", "t end"]
    at_rest(store, "idle")


def test_new_input_begins_anew_if_the_answer_that_was_first_has_run_to_the_end(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    answering, giving = actors(2, lambda saver: one_question(saver, did.append))
    answering.graph.invoke({"log": []}, CONFIG)
    giving.hold("before move").start({"log": ["new"]}, CONFIG, on_pending="withdraw").arrived()
    assert answering.start(Command(resume="yes"), CONFIG).result() == {"log": ["yes", "end"]}
    state = giving.go().result()
    assert state["log"] == ["yes", "end", "new"]
    assert [q.status for q in all_questions(store, "t")] == ["answered", "open"]
    at_rest(store, "waiting")


def test_an_answer_is_refused_by_name_once_new_input_was_first(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    answering, giving = actors(2, lambda saver: one_question(saver, did.append))
    answering.graph.invoke({"log": []}, CONFIG)
    (old,) = asked(store).values()
    answering.hold("before settle").start(Command(resume="yes"), CONFIG).arrived()
    state = giving.start({"log": ["new"]}, CONFIG, on_pending="withdraw").result()
    error = answering.go().error()
    assert isinstance(error, UnknownInterruptError)
    assert error.interrupt_ids == (old,)
    assert "was withdrawn: new input came" in str(error)
    assert state["__interrupt__"][0].id == asked(store)["ask"] != old
    assert did == []
    at_rest(store, "waiting")


def test_new_input_that_drops_nothing_is_refused_before_and_after_the_answer(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    answering, giving = actors(2, lambda saver: one_question(saver, did.append))
    answering.graph.invoke({"log": []}, CONFIG)
    answering.hold("before settle", "after settle").start(Command(resume="yes"), CONFIG).arrived()
    assert isinstance(giving.start({"log": ["new"]}, CONFIG).error(), PendingQuestionsError)
    answering.go().arrived()
    assert isinstance(giving.start({"log": ["new"]}, CONFIG).error(), ThreadBusyError)
    assert answering.go().result() == {"log": ["yes", "end"]}


# --- going on without an answer ---------------------------------------------------------------------------------------


def test_going_on_meets_an_answer_that_is_only_recorded_and_one_of_two_runs_it(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    pair = actors(2, lambda saver: one_question(saver, did.append))
    for n in range(10):
        config = {"configurable": {"thread_id": f"round {n}"}}
        pair[0].graph.invoke({"log": []}, config)
        (question,) = store.pending(thread_id=f"round {n}")
        assert answers.answer(store, question.id, "yes").status == "ready"
        barrier = threading.Barrier(2)
        for actor in pair:
            actor.meet("before move", barrier).start(None, config)
        assert [actor.result() for actor in pair] == [{"log": ["yes", "end"]}] * 2
        assert did.count(f"round {n} after") == 1


def test_going_on_while_an_answer_is_being_given_waits_for_its_run(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    answering, going = actors(2, lambda saver: one_question(saver, did.append))
    answering.graph.invoke({"log": []}, CONFIG)
    answering.hold("before settle", "after settle").start(Command(resume="yes"), CONFIG).arrived()
    assert [i.id for i in going.start(None, CONFIG).result()["__interrupt__"]] == list(asked(store).values())
    answering.go().arrived()
    going.start(None, CONFIG)
    answering.go()
    assert [answering.result(), going.result()] == [{"log": ["yes", "end"]}] * 2
    assert did == ["t after", "t end"]


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
