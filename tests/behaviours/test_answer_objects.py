"""`Answer`: who answered and why, what was shown, and a token that makes repetition harmless."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, chain, ids, parallel, the_id, thread
from waitpoint import canonical, clock
from waitpoint.engine.answers import answer as record_answer
from waitpoint.errors import AlreadyAnsweredError, UnknownInterruptError, UnstorableValueError, UsageError
from waitpoint.types import Answer, Command, interrupt

AT = 1_780_000_000.25


def ask(state: State) -> State:
    return {"log": [interrupt({"text": "sure?"})]}


def a(state: State) -> State:
    return {"log": [interrupt("a?")]}


def b(state: State) -> State:
    return {"log": [interrupt("b?")]}


@pytest.mark.parametrize("by_id", [False, True], ids=["bare", "by-id"])
def test_author_and_remark_are_kept_and_the_node_gets_the_value(store: Store, call: Call, by_id: bool) -> None:
    """Section 5"""
    graph, config = chain(store.saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    answer = Answer("yes", by="ana", comment="looked at it twice")
    with clock.fixed(lambda: AT):
        result = call(graph, Command(resume={question: answer} if by_id else answer), config)
    assert result == {"log": ["yes"]}
    (row,) = store.again().pending(answerable=False)
    assert (row.answer, row.by, row.comment, row.settled_at) == ("yes", "ana", "looked at it twice", AT)


def test_a_loser_is_told_who_won_and_when(saver: Any, call: Call) -> None:
    """Section 5: AlreadyAnsweredError carries answered_by, answered_at and whether the thread still has to run"""
    graph, config = chain(saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    with clock.fixed(lambda: AT):
        record_answer(saver, question, Answer("yes", by="ana"))
    with pytest.raises(AlreadyAnsweredError, match=r"by 'ana' at 2026-05-28T20:26:40\.250000") as caught:
        call(graph, Command(resume={question: Answer("no", by="bob")}), config)
    assert (caught.value.answered_by, caught.value.still_to_run) == ("ana", True)
    assert caught.value.answered_at == "2026-05-28T20:26:40.250000+00:00"
    assert call(graph, None, config) == {"log": ["yes"]}
    with pytest.raises(AlreadyAnsweredError) as caught:
        call(graph, Command(resume={question: "no"}), config)
    assert (caught.value.answered_by, caught.value.still_to_run) == ("ana", False)


def test_an_answer_recorded_elsewhere_waits_for_the_next_run(store: Store, call: Call) -> None:
    """Section 4: waiting becomes ready"""
    graph, config = chain(store.saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    row = record_answer(store.again(), question, "yes")
    assert (row.status, row.answer_seq) == ("ready", 1)
    assert graph.get_state(config).next == ("ask",)
    assert graph.get_state(config).interrupts == ()
    assert call(chain(store.again(), ask), None, config) == {"log": ["yes"]}


# --- tokens ---


@pytest.mark.parametrize("by_id", [False, True], ids=["bare", "by-id"])
def test_a_repeated_answer_with_the_same_token_returns_the_outcome(saver: Any, call: Call, by_id: bool) -> None:
    """Section 5: idempotent repetition"""
    runs: list[int] = []

    def node(state: State) -> State:
        runs.append(1)
        return ask(state)

    graph, config = chain(saver, node), thread()
    question = the_id(call(graph, {"log": []}, config))
    answer = Answer("yes", token="t1")
    resume = {question: answer} if by_id else answer
    for _ in range(3):
        assert call(graph, Command(resume=resume), config) == {"log": ["yes"]}
    assert len(runs) == 2


@pytest.mark.parametrize("by_id", [False, True], ids=["bare", "by-id"])
def test_a_token_with_another_value_is_refused(saver: Any, call: Call, by_id: bool) -> None:
    """Section 5"""
    graph, config = chain(saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    call(graph, Command(resume=Answer("yes", token="t1")), config)
    answer = Answer("no", token="t1")
    with pytest.raises(AlreadyAnsweredError, match=question):
        call(graph, Command(resume={question: answer} if by_id else answer), config)


def test_another_token_is_another_answer(saver: Any, call: Call) -> None:
    """Section 5"""
    graph, config = chain(saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    call(graph, Command(resume=Answer("yes", token="t1")), config)
    for token in ("t2", None):
        with pytest.raises(AlreadyAnsweredError):
            call(graph, Command(resume={question: Answer("yes", token=token)}), config)


def test_a_repeated_bare_answer_never_reaches_the_next_question(saver: Any, call: Call) -> None:
    """Section 5: the first answer made the node ask something else; its repetition must not answer that"""

    def two(state: State) -> State:
        return {"log": [interrupt("Delete a draft?"), interrupt("Delete the archive?")]}

    graph, config = chain(saver, two), thread()
    call(graph, {"log": []}, config)
    for _ in range(2):
        result = call(graph, Command(resume=Answer("yes", token="t1")), config)
        assert [i.value for i in asked(result)] == ["Delete the archive?"]
    with pytest.raises(AlreadyAnsweredError):
        call(graph, Command(resume=Answer("no", token="t1")), config)
    assert call(graph, Command(resume=Answer("no", token="t2")), config) == {"log": ["yes", "no"]}


def test_a_token_of_another_thread_means_nothing(saver: Any, call: Call) -> None:
    """Section 5"""
    graph = chain(saver, ask)
    for config in (thread(), thread()):
        call(graph, {"log": []}, config)
        assert call(graph, Command(resume=Answer("yes", token="t1")), config) == {"log": ["yes"]}


def test_a_repetition_of_a_recorded_answer_runs_the_thread(saver: Any, call: Call) -> None:
    """Section 5 with 4: the one who repeats it picks the thread up"""
    graph, config = chain(saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    answer = Answer("yes", token="t1")
    record_answer(saver, question, answer)
    assert record_answer(saver, question, answer).status == "ready"
    assert call(graph, Command(resume={question: answer}), config) == {"log": ["yes"]}


def test_a_map_may_repeat_some_answers_and_give_others(saver: Any, call: Call) -> None:
    """Section 5"""
    graph, config = parallel(saver, a, b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    first = {open_ids["a?"]: Answer("A", token="ta")}
    call(graph, Command(resume=first), config)
    both = {**first, open_ids["b?"]: Answer("B", token="tb")}
    assert call(graph, Command(resume=both), config) == {"log": ["A", "B"]}
    assert call(graph, Command(resume=both), config) == {"log": ["A", "B"]}
    mixed = {open_ids["a?"]: Answer("A", token="ta"), open_ids["b?"]: Answer("other", token="tb")}
    with pytest.raises(AlreadyAnsweredError, match=open_ids["b?"]):
        call(graph, Command(resume=mixed), config)


def test_a_repetition_at_a_pause_returns_the_questions_that_are_left(saver: Any, call: Call) -> None:
    """Section 5"""
    graph, config = parallel(saver, a, b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    answer = {open_ids["a?"]: Answer("A", token="ta")}
    results = [call(graph, Command(resume=answer), config) for _ in range(2)]
    assert results[0] == results[1]
    assert ids(results[1]) == {"b?": open_ids["b?"]}


# --- what was shown ---


def test_an_answer_to_what_was_shown_is_taken(saver: Any, call: Call) -> None:
    """Section 5: shown_digest"""
    graph, config = chain(saver, ask), thread()
    call(graph, {"log": []}, config)
    (row,) = saver.pending()
    assert row.digest == canonical.digest({"text": "sure?"})
    assert call(graph, Command(resume=Answer("yes", shown_digest=row.digest)), config) == {"log": ["yes"]}


@pytest.mark.parametrize("by_id", [False, True], ids=["bare", "by-id"])
def test_an_answer_to_something_else_is_refused(saver: Any, call: Call, by_id: bool) -> None:
    """Section 5: what was shown is what is answered"""
    graph, config = chain(saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    before = (graph.get_state(config), saver.threads(), saver.pending(answerable=False))
    answer = Answer("yes", shown_digest=canonical.digest({"text": "something else?"}))
    with pytest.raises(UnknownInterruptError, match="not the one that was shown") as caught:
        call(graph, Command(resume={question: answer} if by_id else answer), config)
    assert caught.value.interrupt_ids == (question,)
    assert (graph.get_state(config), saver.threads(), saver.pending(answerable=False)) == before
    assert call(graph, Command(resume="yes"), config) == {"log": ["yes"]}


def test_a_digest_protects_a_bare_answer_from_the_question_that_came_meanwhile(saver: Any, call: Call) -> None:
    """Section 5: the reviewer saw the first draft; the thread waits with the second"""
    drafts = itertools.count(1)

    def node(state: State) -> State:
        return {"log": [interrupt(f"draft {next(drafts)}")]}

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    (seen,) = saver.pending()
    call(graph, Command(resume="yes to 1"), config)
    with pytest.raises(UnknownInterruptError, match="shown"):
        call(graph, Command(resume=Answer("yes", shown_digest=seen.digest)), config)
    assert [q.value for q in saver.pending()] == ["draft 2"]


def test_a_repetition_does_not_go_past_a_breakpoint_that_came_meanwhile(saver: Any, call: Call) -> None:
    """Section 5: an answer given twice acts once"""

    def after(state: State) -> State:
        return {"log": ["after"]}

    graph, config = chain(saver, ask, after, interrupt_before=["after"]), thread()
    question = the_id(call(graph, {"log": []}, config))
    answer = Answer("yes", token="t1")
    for resume in (answer, answer, {question: answer}):
        assert call(graph, Command(resume=resume), config) == {"log": ["yes"]}
    assert graph.get_state(config).next == ("after",)
    assert call(graph, None, config) == {"log": ["yes", "after"]}


def test_of_two_equal_answers_at_once_under_one_token_both_succeed(saver: Any) -> None:
    """Section 5: the loser of the race finds its own answer"""
    graph, config = chain(saver, ask), thread()
    question = the_id(graph.invoke({"log": []}, config))
    answer = Answer("yes", token="t1")
    plain, rounds = type(saver).settle, []

    def settle(change: Any) -> Any:
        if not rounds:
            rounds.append(1)
            saver.settle = lambda c: plain(saver, c)
            assert graph.invoke(Command(resume={question: answer}), config) == {"log": ["yes"]}
        return plain(saver, change)

    saver.settle = settle
    assert graph.invoke(Command(resume={question: answer}), config) == {"log": ["yes"]}
    assert rounds == [1]


@pytest.mark.parametrize("name", ["by", "comment", "token"])
@pytest.mark.parametrize("value", [5, {"a": 1}, object()], ids=["number", "dict", "object"])
def test_what_goes_with_an_answer_has_to_be_text(store: Store, call: Call, name: str, value: Any) -> None:
    """Else one store would keep it and another one refuse it or give it back as text, so that a token never fits."""
    graph, config = chain(store.saver, ask), thread()
    call(graph, {"log": []}, config)
    with pytest.raises(UsageError, match=f"`{name}` of the answer to .*; give text"):
        call(graph, Command(resume=Answer("yes", **{name: value})), config)
    assert call(graph, Command(resume="yes"), config) == {"log": ["yes"]}


def test_an_answer_that_contains_itself_is_refused_in_a_sentence(store: Store, call: Call) -> None:
    graph, config = chain(store.saver, ask), thread()
    call(graph, {"log": []}, config)
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(UnstorableValueError, match="'answer' cannot be stored - it contains itself, or nests too deep"):
        call(graph, Command(resume=ring), config)
    assert call(graph, Command(resume="yes"), config) == {"log": ["yes"]}
