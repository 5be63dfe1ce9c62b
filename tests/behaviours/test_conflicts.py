"""Two who speak to one thread at the same moment: made certain by acting between one's look and its transition."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, asked, chain, ids, parallel, the_id, thread
from waitpoint.engine.answers import answer as record_answer
from waitpoint.engine.answers import withdraw
from waitpoint.errors import (
    AlreadyAnsweredError,
    NodeFailedError,
    PendingQuestionsError,
    ThreadBusyError,
    UnknownInterruptError,
)
from waitpoint.types import Answer, Command, interrupt

WAIT = 10


def just_before(saver: Any, transition: str, act: Callable[[], None]) -> None:
    """Let somebody else act once, right before the next such transition of this saver is stored."""
    plain = getattr(type(saver), transition)
    lock = threading.Lock()
    left = [act]

    def stored(change: Any) -> Any:
        with lock:
            todo, left[:] = left[:], []
        for one in todo:
            delattr(saver, transition)
            one()
        return plain(saver, change)

    setattr(saver, transition, stored)


def two(state: State) -> State:
    return {"log": [interrupt("Delete a draft?"), interrupt("Delete the archive?")]}


def a(state: State) -> State:
    return {"log": [interrupt("a?")]}


def b(state: State) -> State:
    return {"log": [interrupt("b?")]}


@pytest.mark.parametrize("by_id", [False, True], ids=["bare", "by-id"])
def test_the_second_of_two_answers_to_a_question_is_refused_and_told_who_won(
    saver: Any, call: Call, by_id: bool
) -> None:
    """Section 5: decided once; a bare value is never retried on the question that came next"""
    graph, config = chain(saver, two), thread()
    question = the_id(call(graph, {"log": []}, config))
    won: list[Any] = []
    just_before(
        saver, "settle", lambda: won.append(graph.invoke(Command(resume={question: Answer("yes", by="ana")}), config))
    )
    answer = Answer("no", by="bob")
    with pytest.raises(AlreadyAnsweredError, match="'ana'") as caught:
        call(graph, Command(resume={question: answer} if by_id else answer), config)
    assert (caught.value.answered_by, caught.value.interrupt_ids) == ("ana", (question,))
    assert [i.value for i in asked(won[0])] == ["Delete the archive?"]
    assert [q.status for q in saver.pending()] == ["open"]
    assert call(graph, Command(resume="no"), config) == {"log": ["yes", "no"]}


def test_answers_of_one_command_are_stored_all_or_none_when_one_is_too_late(saver: Any, call: Call) -> None:
    """Section 5: one transaction"""
    graph, config = parallel(saver, a, b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    just_before(saver, "settle", lambda: record_answer(saver, open_ids["a?"], "first"))
    with pytest.raises(AlreadyAnsweredError) as caught:
        call(graph, Command(resume={open_ids["a?"]: "A", open_ids["b?"]: "B"}), config)
    assert caught.value.interrupt_ids == (open_ids["a?"],)
    assert caught.value.pending_ids == (open_ids["b?"],)
    result = call(graph, None, config)
    assert (result["log"], ids(result)) == (["first"], {"b?": open_ids["b?"]})


def test_an_answer_to_a_question_that_is_withdrawn_meanwhile_is_refused(saver: Any, call: Call) -> None:
    """Section 5"""
    graph, config = chain(saver, a), thread()
    question = the_id(call(graph, {"log": []}, config))
    just_before(saver, "settle", lambda: withdraw(saver, question, "not needed"))
    with pytest.raises(UnknownInterruptError, match="withdrawn: not needed"):
        call(graph, Command(resume="A"), config)


def test_a_value_for_a_breakpoint_answers_no_question_that_came_meanwhile(saver: Any, call: Call) -> None:
    """Section 5: a bare value answers what was open when invoke entered, and nothing was"""
    graph, config = chain(saver, a, interrupt_before=["a"]), thread()
    call(graph, {"log": []}, config)
    just_before(saver, "move", lambda: graph.invoke(None, config))
    with pytest.raises(UnknownInterruptError, match="meanwhile"):
        call(graph, Command(resume="go on"), config)
    assert [q.status for q in saver.pending()] == ["open"]
    assert call(graph, Command(resume="A"), config) == {"log": ["A"]}


def test_of_two_first_inputs_one_begins_the_thread(saver: Any, call: Call) -> None:
    """Section 4: the other finds it waiting"""
    graph, config = chain(saver, a), thread()
    just_before(saver, "move", lambda: graph.invoke({"log": ["first"]}, config))
    with pytest.raises(PendingQuestionsError):
        call(graph, {"log": ["second"]}, config)
    assert call(graph, Command(resume="A"), config) == {"log": ["first", "A"]}


def test_new_input_that_meets_an_answer_is_refused(saver: Any, call: Call) -> None:
    """Section 4: no answer is left behind"""
    graph, config = chain(saver, a), thread()
    question = the_id(call(graph, {"log": []}, config))
    call(graph, Command(resume="A"), config)
    call(graph, {"log": ["again"]}, config)
    (row,) = saver.pending()
    assert row.id != question
    just_before(saver, "move", lambda: record_answer(saver, row.id, "B"))
    result = call(graph, {"log": ["new"]}, config, on_pending="withdraw")
    # The answer came first; the input was told to drop what is pending and so dropped the work of that answer.
    assert [i.value for i in asked(result)] == ["a?"]
    (key,) = (t.key for t in saver.threads())
    kinds = [e.kind for e in saver.events(key)]
    assert kinds.count("answered") == 2
    assert kinds.count("started") == 3


def test_new_input_that_meets_an_answer_does_not_drop_it_by_default(saver: Any, call: Call) -> None:
    """Section 4"""
    tries: list[int] = []

    def node(state: State) -> State:
        answer = interrupt("n?")
        tries.append(1)
        if len(tries) == 1:
            raise OSError("gone for a moment")
        return {"log": [answer]}

    graph, config = chain(saver, node), thread()
    question = the_id(call(graph, {"log": []}, config))
    with pytest.raises(OSError, match="gone"):
        call(graph, Command(resume="first"), config)
    just_before(saver, "move", lambda: record_answer(saver, question, "second"))
    with pytest.raises(ThreadBusyError):
        call(graph, {"log": ["new"]}, config)
    assert call(graph, None, config) == {"log": ["second"]}


def test_two_who_continue_a_thread_run_it_once(saver: Any, call: Call) -> None:
    """Section 4: the first to claim runs"""
    runs: Counter[str] = Counter()

    def node(state: State) -> State:
        answer = interrupt("n?")
        runs["after"] += 1
        return {"log": [answer]}

    graph, config = chain(saver, node), thread()
    record_answer(saver, the_id(call(graph, {"log": []}, config)), "A")
    just_before(saver, "move", lambda: graph.invoke(None, config))
    assert call(graph, None, config) == {"log": ["A"]}
    assert runs == {"after": 1}


def test_an_answer_that_comes_right_before_the_rest_is_read_by_that_run(saver: Any, call: Call) -> None:
    """Section 4: a commit that lets the thread rest succeeds only at the answer_seq that the attempt read"""
    graph, config = parallel(saver, a, b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    just_before(saver, "commit", lambda: record_answer(saver, open_ids["b?"], "B"))
    assert call(graph, Command(resume={open_ids["a?"]: "A"}), config) == {"log": ["A", "B"]}
    assert [t.status for t in saver.threads()] == ["idle"]


def test_an_answer_that_comes_right_before_a_failure_is_read_by_that_run(saver: Any, call: Call) -> None:
    """Section 4: the same at a failure; then the failure is raised"""
    runs: Counter[str] = Counter()

    def fails(state: State) -> State:
        interrupt("fails?")
        runs["fails"] += 1
        raise OSError("broken disk")

    def counted(state: State) -> State:
        runs["counted"] += 1
        return b(state)

    graph, config = parallel(saver, fails, counted), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    just_before(saver, "commit", lambda: record_answer(saver, open_ids["b?"], "B"))
    with pytest.raises(OSError, match="broken disk"):
        call(graph, Command(resume={open_ids["fails?"]: "go"}), config)
    state = graph.get_state(config)
    assert {t.name: t.result for t in state.tasks} == {"fails": None, "counted": {"log": ["B"]}}
    assert [t.status for t in saver.threads()] == ["failed"]
    assert runs["counted"] == 2


def test_an_answer_to_another_question_while_a_run_fails_is_not_lost_by_either(saver: Any, call: Call) -> None:
    """Section 4: the one who waits is told of the failure, and its own answer was used"""
    entered, go = threading.Event(), threading.Event()

    def failing(state: State) -> State:
        interrupt("failing?")
        entered.set()
        assert go.wait(WAIT)
        raise OSError("broken disk")

    graph, config = parallel(saver, failing, b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    looked = threading.Event()
    plain = type(saver).thread

    def watched(key: Any) -> Any:
        row = plain(saver, key)
        if row.answer_seq == 2:  # the second answer is stored, and its caller waits
            looked.set()
        return row

    saver.thread = watched
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(call, graph, Command(resume={open_ids["failing?"]: "A"}), config)
        assert entered.wait(WAIT)
        second = pool.submit(call, graph, Command(resume={open_ids["b?"]: "B"}), config)
        assert looked.wait(WAIT)
        go.set()
        with pytest.raises(OSError, match="broken disk"):
            first.result(WAIT)
        with pytest.raises(NodeFailedError, match="broken disk"):
            second.result(WAIT)
    results = {t.name: t.result for t in graph.get_state(config).tasks}
    assert results == {"failing": None, "b": {"log": ["B"]}}
