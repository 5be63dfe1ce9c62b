"""Answers that name no open question are refused by name before anything is stored; there is no mode to switch it on."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, ids, parallel, the_id, thread
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.engine.answers import answer
from waitpoint.errors import (
    AlreadyAnsweredError,
    AmbiguousInterruptError,
    ConflictError,
    UnknownInterruptError,
)
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt, step

NOBODY = "0123456789abcdef" * 2

STRICT = "__pregel_strict_resume"


def a(state: State) -> State:
    return {"log": [interrupt("a?")]}


def b(state: State) -> State:
    return {"log": [interrupt("b?")]}


def everything(graph: Any, config: Any, saver: BaseCheckpointSaver) -> Any:
    """Return all that a refusal must leave as it was."""
    return (
        graph.get_state(config),
        list(graph.get_state_history(config)),
        saver.pending(answerable=False),
        saver.threads(),
    )


@pytest.mark.parametrize("strict", [None, True, False])
def test_an_unknown_id_is_refused_in_every_mode(saver: Any, call: Call, strict: bool | None) -> None:
    """B49, B50, B52, table: the key that switches strict mode on is accepted and ignored"""
    graph = parallel(saver, a, b)
    config = thread("strict") if strict is None else thread("strict", **{STRICT: strict})
    open_ids = ids(call(graph, {"log": []}, config))
    before = everything(graph, config, saver)
    for resume in ({NOBODY: 1}, {open_ids["a?"]: "A", NOBODY: 1}, {NOBODY: 1, open_ids["a?"]: "A"}):
        with pytest.raises(UnknownInterruptError, match=f"Unknown or already-consumed interrupt: '?{NOBODY}") as caught:
            call(graph, Command(resume=resume), config)
        assert caught.value.reason == "not_pending"
        assert caught.value.interrupt_ids == (NOBODY,)
        assert caught.value.pending_ids == tuple(sorted(open_ids.values()))
        assert isinstance(caught.value, ConflictError)
    assert everything(graph, config, saver) == before
    right = {open_ids["a?"]: "A", open_ids["b?"]: "B"}
    assert call(graph, Command(resume=right), config) == {"log": ["A", "B"]}


def test_several_unknown_ids_are_all_named(saver: Any) -> None:
    """B51"""
    graph, config = parallel(saver, a, b), thread()
    graph.invoke({"log": []}, config)
    others = tuple(c * 32 for c in "dce")
    with pytest.raises(UnknownInterruptError) as caught:
        graph.invoke(Command(resume=dict.fromkeys(others, 1)), config)
    assert set(caught.value.interrupt_ids) == set(others)


def test_an_answered_id_is_refused_and_the_winner_is_named(saver: Any, call: Call) -> None:
    """B50, B51: stale ids; AlreadyAnsweredError tells who was first"""
    graph, config = parallel(saver, a, b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    call(graph, Command(resume={open_ids["a?"]: "A"}), config)
    before = everything(graph, config, saver)
    text = f"Unknown or already-consumed interrupt: '?{open_ids['a?']}"
    with pytest.raises(AlreadyAnsweredError, match=text) as caught:
        call(graph, Command(resume={open_ids["a?"]: "again"}), config)
    assert caught.value.reason == "not_pending"
    assert caught.value.pending_ids == (open_ids["b?"],)
    assert caught.value.still_to_run is False
    assert everything(graph, config, saver) == before


def test_an_id_of_a_finished_thread_is_refused(saver: Any, call: Call) -> None:
    """B50"""
    graph, config = chain(saver, a), thread()
    question = the_id(call(graph, {"log": []}, config))
    call(graph, Command(resume="A"), config)
    before = everything(graph, config, saver)
    with pytest.raises(AlreadyAnsweredError, match=question) as caught:
        call(graph, Command(resume={question: "again"}), config)
    assert caught.value.pending_ids == ()
    with pytest.raises(UnknownInterruptError, match="Nothing is pending") as caught_bare:
        call(graph, Command(resume="again"), config)
    assert caught_bare.value.reason == "not_pending"
    assert everything(graph, config, saver) == before


def test_a_resume_on_a_thread_that_never_ran_is_refused(saver: Any, call: Call) -> None:
    """Table: a resume with nothing pending"""
    graph, config = chain(saver, a), thread()
    for resume in ("x", None, {}, {NOBODY: 1}):
        with pytest.raises(UnknownInterruptError) as caught:
            call(graph, Command(resume=resume), config)
        assert (caught.value.reason, caught.value.pending_ids) == ("not_pending", ())
    assert saver.threads() == []


def test_an_id_of_another_thread_or_graph_is_refused(saver: Any) -> None:
    """B50; section 4: another graph on the same thread id neither sees nor answers its questions"""
    graph, other = chain(saver, a), chain(saver, b, name="other")
    here, there = thread("here"), thread("there")
    question = the_id(graph.invoke({"log": []}, here))
    graph.invoke({"log": []}, there)
    own = the_id(other.invoke({"log": []}, here))
    with pytest.raises(UnknownInterruptError, match="'here'"):
        graph.invoke(Command(resume={question: 1}), there)
    with pytest.raises(UnknownInterruptError, match="'LangGraph'") as caught:
        other.invoke(Command(resume={question: 1}), here)
    assert caught.value.pending_ids == (own,)
    assert other.invoke(Command(resume="O"), here) == {"log": ["O"]}
    assert graph.invoke(Command(resume="H"), here) == {"log": ["H"]}
    assert [i.value for i in graph.get_state(there).interrupts] == ["a?"]


@pytest.mark.parametrize("at", ["fresh", "waiting", "finished", "breakpoint"])
def test_a_command_with_nothing_in_it_is_refused(saver: Any, call: Call, at: str) -> None:
    """Table: `Command()` is `empty_map`"""
    options = {"interrupt_before": ["a"]} if at == "breakpoint" else {}
    graph, config = chain(saver, a, **options), thread()
    if at != "fresh":
        call(graph, {"log": []}, config)
    if at == "finished":
        call(graph, Command(resume="A"), config)
    before = everything(graph, config, saver)
    with pytest.raises(UnknownInterruptError, match="empty") as caught:
        call(graph, Command(), config)
    assert caught.value.reason == "empty_map"
    assert everything(graph, config, saver) == before


def test_one_value_for_several_is_ambiguous_and_for_one_is_taken(saver: Any, call: Call) -> None:
    """B55"""
    graph, config = parallel(saver, a, b), thread()
    open_ids = ids(call(graph, {"log": []}, config))
    with pytest.raises(AmbiguousInterruptError, match="multiple pending interrupts") as caught:
        call(graph, Command(resume="x"), config)
    assert caught.value.reason == "ambiguous"
    assert isinstance(caught.value, RuntimeError)
    call(graph, Command(resume={open_ids["a?"]: "A"}), config)
    assert call(graph, Command(resume="B"), config) == {"log": ["A", "B"]}


def test_each_question_of_a_node_has_its_own_id_and_a_late_answer_never_slips_to_the_next(
    store: Store, call: Call
) -> None:
    """B57, table: every question has its own id"""

    def two(state: State) -> State:
        return {"log": [interrupt("first?"), interrupt("second?")]}

    graph, config = chain(store.saver, two), thread()
    first = the_id(call(graph, {"log": []}, config))
    second = the_id(call(graph, Command(resume={first: 1}), config))
    assert second != first
    with pytest.raises(AlreadyAnsweredError, match=first):
        call(chain(store.again(), two), Command(resume={first: 1}), config)
    assert [i.id for i in graph.get_state(config).interrupts] == [second]
    assert call(graph, Command(resume={second: 2}), config) == {"log": [1, 2]}


def test_equal_questions_one_after_the_other_have_ids_of_their_own(saver: Any, call: Call) -> None:
    """B57: the same payload at the same place, asked again by a loop in the body"""

    def insist(state: State) -> State:
        while (answer := interrupt("yes?")) != "yes":
            pass
        return {"log": [answer]}

    graph, config = chain(saver, insist), thread()
    first = the_id(call(graph, {"log": []}, config))
    second = the_id(call(graph, Command(resume={first: "no"}), config))
    assert second != first
    with pytest.raises(AlreadyAnsweredError):
        call(graph, Command(resume={first: "yes"}), config)
    assert call(graph, Command(resume={second: "yes"}), config) == {"log": ["yes"]}


@pytest.mark.parametrize("levels", [1, 2])
def test_a_question_of_a_subgraph_is_answered_by_its_id_from_the_root(saver: Any, call: Call, levels: int) -> None:
    """B59"""
    graph: Any = builder(a)
    for _ in range(levels):
        graph = StateGraph(State).add_node("inner", graph.compile()).add_edge(START, "inner")
    compiled, config = graph.compile(checkpointer=saver), thread()
    question = the_id(call(compiled, {"log": []}, config))
    with pytest.raises(UnknownInterruptError):
        call(compiled, Command(resume={NOBODY: 1}), config)
    assert call(compiled, Command(resume={question: "A"}), config) == {"log": ["A"]}
    with pytest.raises(AlreadyAnsweredError):
        call(compiled, Command(resume={question: "A"}), config)


class Failing:
    """A node that fails on an answer until it is told otherwise."""

    def __init__(self, *, effect_after: bool = False) -> None:
        self.effect_after = effect_after
        self.runs: Counter[str] = Counter()

    def node(self, state: State) -> State:
        self.runs["node"] += 1
        answer = interrupt("number?")
        if self.effect_after:
            step(self.effect)
        return {"log": [int(answer)]}

    def effect(self) -> None:
        self.runs["effect"] += 1


def test_an_answer_that_made_the_node_fail_may_be_replaced(store: Store, call: Call) -> None:
    """B61: the same id may be answered again and the run completes"""
    failing, config = Failing(), thread()
    question = the_id(call(chain(store.saver, failing.node), {"log": []}, config))
    with pytest.raises(ValueError, match="seven"):
        call(chain(store.saver, failing.node), Command(resume={question: "seven"}), config)
    (row,) = store.again().pending()
    assert (row.id, row.status, row.can_answer, row.answer) == (question, "answered", True, "seven")
    assert [i.id for i in chain(store.saver, failing.node).get_state(config).interrupts] == [question]
    assert call(chain(store.again(), failing.node), Command(resume={question: "7"}), config) == {"log": [7]}
    with pytest.raises(AlreadyAnsweredError):
        call(chain(store.saver, failing.node), Command(resume={question: "8"}), config)


def test_a_bare_value_replaces_it_too_and_the_old_one_stays_on_the_record(saver: Any) -> None:
    """B61; section 5: the old one stays in the record"""
    failing, config = Failing(), thread()
    graph = chain(saver, failing.node)
    question = the_id(graph.invoke({"log": []}, config))
    with pytest.raises(ValueError, match="seven"):
        graph.invoke(Command(resume="seven"), config)
    assert graph.invoke(Command(resume="7"), config) == {"log": [7]}
    (key,) = (row.key for row in saver.threads())
    kinds = [e.kind for e in saver.events(key) if e.ref == question]
    assert kinds == ["asked", "answered", "answered"]


def test_an_answer_is_final_once_an_effect_was_journalled_after_it(saver: Any, call: Call) -> None:
    """B61, table: only while no effect was journalled after it"""
    failing, config = Failing(effect_after=True), thread()
    graph = chain(saver, failing.node)
    question = the_id(call(graph, {"log": []}, config))
    with pytest.raises(ValueError, match="seven"):
        call(graph, Command(resume={question: "seven"}), config)
    assert saver.pending() == []
    assert graph.get_state(config).interrupts == ()
    with pytest.raises(AlreadyAnsweredError):
        call(graph, Command(resume={question: "7"}), config)
    with pytest.raises(UnknownInterruptError):
        call(graph, Command(resume="7"), config)
    with pytest.raises(ValueError, match="seven"):
        call(graph, None, config)
    assert failing.runs == {"node": 3, "effect": 1}


def test_an_effect_before_the_question_leaves_its_answer_replaceable(saver: Any, call: Call) -> None:
    """B61: what counts is what came after the answer"""
    effects: list[int] = []

    def node(state: State) -> State:
        step(effects.append, 1)
        return {"log": [int(interrupt("number?"))]}

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    with pytest.raises(ValueError, match="seven"):
        call(graph, Command(resume="seven"), config)
    assert call(graph, Command(resume="7"), config) == {"log": [7]}
    assert effects == [1]


def test_of_several_answers_those_before_the_last_effect_are_final(saver: Any) -> None:
    """B61 with two questions of a node and an effect between"""
    effects: list[Any] = []

    def node(state: State) -> State:
        first = interrupt("first?")
        step(effects.append, first)
        return {"log": [first, int(interrupt("second?"))]}

    graph, config = chain(saver, node), thread()
    first = the_id(graph.invoke({"log": []}, config))
    second = the_id(graph.invoke(Command(resume="one"), config))
    with pytest.raises(ValueError, match="zwei"):
        graph.invoke(Command(resume="zwei"), config)
    assert [q.id for q in saver.pending()] == [second]
    with pytest.raises(AlreadyAnsweredError):
        graph.invoke(Command(resume={first: "uno"}), config)
    assert graph.invoke(Command(resume={second: "2"}), config) == {"log": ["one", 2]}
    assert effects == ["one"]


def test_an_answer_in_a_subgraph_that_failed_may_be_replaced(saver: Any, call: Call) -> None:
    """B61 nested: as a node"""
    failing, config = Failing(), thread()
    inner = builder(failing.node).compile()
    graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)
    question = the_id(call(graph, {"log": []}, config))
    with pytest.raises(ValueError, match="seven"):
        call(graph, Command(resume="seven"), config)
    assert call(graph, Command(resume={question: "7"}), config) == {"log": [7]}


def test_an_answer_that_failed_in_a_coroutine_may_be_replaced(saver: Any) -> None:
    """B61 async"""

    async def node(state: State) -> State:
        return {"log": [int(interrupt("number?"))]}

    graph, config = chain(saver, node), thread()

    async def talk() -> Any:
        await graph.ainvoke({"log": []}, config)
        with pytest.raises(ValueError, match="seven"):
            await graph.ainvoke(Command(resume="seven"), config)
        return await graph.ainvoke(Command(resume="7"), config)

    assert asyncio.run(talk()) == {"log": [7]}


def test_a_failed_node_runs_again_without_a_new_answer(saver: Any, call: Call) -> None:
    """B61: invoke(None) tries the answer that is there once more"""
    tries: list[int] = []

    def node(state: State) -> State:
        answer = interrupt("number?")
        tries.append(1)
        if len(tries) == 1:
            raise OSError("gone for a moment")
        return {"log": [answer]}

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    with pytest.raises(OSError, match="gone"):
        call(graph, Command(resume=7), config)
    assert call(graph, None, config) == {"log": [7]}
    assert saver.pending() == []


def test_the_newest_checkpoint_by_its_id_is_checked_and_an_older_one_is_time_travel(saver: Any, call: Call) -> None:
    """B63"""
    graph, config = chain(saver, a), thread()
    question = the_id(call(graph, {"log": []}, config))
    asked_at = graph.get_state(config).config
    with pytest.raises(UnknownInterruptError):
        call(graph, Command(resume={NOBODY: 1}), asked_at)
    assert call(graph, Command(resume={question: "A"}), asked_at) == {"log": ["A"]}
    head = graph.get_state(config).config
    with pytest.raises(AlreadyAnsweredError):
        call(graph, Command(resume={question: "again"}), head)
    assert call(graph, Command(resume={question: "other"}), asked_at) == {"log": ["other"]}
    assert call(graph, Command(resume="third"), asked_at) == {"log": ["third"]}
    sources = [s.metadata["source"] for s in graph.get_state_history(config)]
    assert sources.count("fork") == 2


def test_an_answer_at_an_old_checkpoint_that_asks_something_else_is_not_given(saver: Any) -> None:
    """B63; section 7: if there is no equal question, the fork stays and nothing is answered"""
    words = iter(["old?", "old?", "new?"])
    texts = {"now": next(words)}

    def node(state: State) -> State:
        return {"log": [interrupt(texts["now"])]}

    graph, config = chain(saver, node), thread()
    question = the_id(graph.invoke({"log": []}, config))
    asked_at = graph.get_state(config).config
    graph.invoke(Command(resume="A"), config)
    texts["now"] = "new?"
    for resume in ({question: "B"}, "B"):
        with pytest.raises(UnknownInterruptError):
            graph.invoke(Command(resume=resume), asked_at)
        state = graph.get_state(config)
        assert [i.value for i in state.interrupts] == ["new?"]
        assert state.metadata["source"] == "fork"
    assert {q.status for q in saver.pending()} == {"open"}
    assert asked(graph.invoke(None, config))[0].value == "new?"


@pytest.mark.parametrize("rest", ["failed", "ready"])
def test_a_value_for_a_thread_that_waits_for_nothing_is_refused_and_not_dropped(
    saver: Any, call: Call, rest: str
) -> None:
    """Table: a resume with neither a question nor a static breakpoint pending, though the thread has work to do"""
    tries: list[int] = []

    def node(state: State) -> State:
        answer = interrupt("number?")
        tries.append(1)
        if rest == "failed" and len(tries) == 1:
            step(tries.count, 1)
            raise OSError("gone for a moment")
        return {"log": [answer]}

    graph, config = chain(saver, node), thread()
    question = the_id(call(graph, {"log": []}, config))
    if rest == "failed":
        with pytest.raises(OSError, match="gone"):
            call(graph, Command(resume=7), config)
    else:
        answer(saver, question, 7)
    assert saver.threads()[0].status == rest
    with pytest.raises(UnknownInterruptError, match="Nothing is pending"):
        call(graph, Command(resume=8), config)
    with pytest.raises(AlreadyAnsweredError) as caught:
        call(graph, Command(resume={question: 8}), config)
    assert caught.value.still_to_run is (rest == "ready")
    assert call(graph, None, config) == {"log": [7]}
