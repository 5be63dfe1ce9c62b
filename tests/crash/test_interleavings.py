"""Runs of one thread that meet, in an order made certain by gates; in threads, on memory and on a file.

Guarantees: decided-once, no-answer-left-behind, finished-is-not-rerun, never-wedged.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from tests.crash.actors import CONFIG, Actor, asked, at_rest
from tests.crash.checks import all_questions, unread_answers
from tests.crash.programs.raced import many_questions, one_question
from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey
from waitpoint.engine import answers
from waitpoint.errors import (
    AlreadyAnsweredError,
    ConflictError,
    PendingQuestionsError,
    QuestionWithdrawn,
    ThreadBusyError,
    UnknownInterruptError,
)
from waitpoint.graph import START, StateGraph
from waitpoint.types import Answer, Command, interrupt, step

WHOLE = {"log": ["a", "b", "c", "end"]}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


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


def test_coroutines_that_answer_one_question_at_once_have_one_winner(
    store: BaseCheckpointSaver, did: list[str]
) -> None:
    graph = one_question(store, did.append)
    graph.invoke({"log": []}, CONFIG)
    (question,) = asked(store).values()

    async def all_answer() -> list[Any]:
        resumes = [Command(resume={question: Answer(f"{n}", by=f"person {n}")}) for n in range(5)]
        return await asyncio.gather(*(graph.ainvoke(r, CONFIG) for r in resumes), return_exceptions=True)

    ends = asyncio.run(all_answer())
    (winner,) = [n for n, end in enumerate(ends) if isinstance(end, dict)]
    assert ends[winner] == {"log": [f"{winner}", "end"]}
    lost = [end for end in ends if isinstance(end, AlreadyAnsweredError)]
    assert [error.answered_by for error in lost] == [f"person {winner}"] * 4
    assert did == ["t after", "t end"]


def test_coroutines_that_answer_three_questions_at_once_all_see_the_end_or_what_is_open(
    store: BaseCheckpointSaver, did: list[str]
) -> None:
    graph = many_questions(store, did.append)
    graph.invoke({"log": []}, CONFIG)
    ids = asked(store)

    async def all_answer() -> list[Any]:
        return await asyncio.gather(*(graph.ainvoke(Command(resume={ids[node]: node}), CONFIG) for node in "abc"))

    assert WHOLE in asyncio.run(all_answer())
    assert len(did) == len(set(did)) == 10
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


# --- other changes and an answer --------------------------------------------------------------------------------------


def test_of_an_answer_and_a_withdrawal_the_first_stands_and_the_other_is_told(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    (answering,) = actors(1, lambda saver: one_question(saver, did.append))
    answering.graph.invoke({"log": []}, CONFIG)
    (question,) = asked(store).values()
    answering.hold("before settle").start(Command(resume="yes"), CONFIG).arrived()
    answers.withdraw(store, question, "no longer needed", by="ana")
    error = answering.go().error()
    assert isinstance(error, UnknownInterruptError)
    assert "was withdrawn: no longer needed" in str(error)
    assert isinstance(answering.start(None, CONFIG).error(), QuestionWithdrawn)
    assert did == []


def test_an_update_of_the_state_that_is_first_closes_the_question_of_a_late_answer(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    answering, updating = actors(2, lambda saver: one_question(saver, did.append))
    answering.graph.invoke({"log": []}, CONFIG)
    (question,) = asked(store).values()
    answering.hold("before settle").start(Command(resume={question: "yes"}), CONFIG).arrived()
    updating.graph.update_state(CONFIG, {"log": ["update"]})
    error = answering.go().error()
    assert isinstance(error, UnknownInterruptError)
    assert error.interrupt_ids == (question,)
    assert "was withdrawn" in str(error)
    assert did == []


def test_an_update_of_the_state_is_refused_when_an_answer_was_first(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    answering, updating = actors(2, lambda saver: one_question(saver, did.append))
    answering.graph.invoke({"log": []}, CONFIG)
    updating.hold("before move").call(updating.graph.update_state, CONFIG, {"log": ["update"]}).arrived()
    answering.hold("after settle").start(Command(resume="yes"), CONFIG).arrived()
    assert isinstance(updating.go().error(), ThreadBusyError)
    assert answering.go().result() == {"log": ["yes", "end"]}
    at_rest(store, "idle")


def test_a_run_whose_thread_is_deleted_stops_and_says_so(
    store: BaseCheckpointSaver, did: list[str], actors: Callable[..., list[Actor]]
) -> None:
    (answering,) = actors(1, lambda saver: one_question(saver, did.append))
    answering.graph.invoke({"log": []}, CONFIG)
    answering.hold("before commit").start(Command(resume="yes"), CONFIG).arrived()
    store.delete_thread("t")
    error = answering.go().error()
    assert isinstance(error, ConflictError)
    assert "deleted" in str(error)
    assert did == ["t after"]
    assert store.threads(thread_id="t") == []


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
