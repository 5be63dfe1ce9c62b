"""Scenarios of the section "parallel": several questions open at once, some answered now and some later."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, asked, texts, thread
from waitpoint.errors import AlreadyAnsweredError, AmbiguousInterruptError, NodeError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, Send, interrupt

# --- S025 -------------------------------------------------------------------------------------------------------------


def two_inside(shelf: Shelf, *, in_function: bool) -> Any:
    """A subgraph, as a node or called by one, with two nodes that ask."""
    graph = StateGraph(State)
    for name in ("delete", "mail"):

        def node(state: State, name: str = name) -> State:
            return {"log": [(name, interrupt(f"May I {name}?"))]}

        graph.add_node(name, node).add_edge(START, name)
    inner = graph.compile()

    def called(state: State) -> State:
        return {"log": inner.invoke({"log": []})["log"]}

    outer = StateGraph(State).add_node("inner", called if in_function else inner).add_edge(START, "inner")
    return outer.compile(checkpointer=shelf.open())


@pytest.mark.parametrize("in_function", [False, True], ids=["node", "function"])
def test_s025_a_bare_answer_while_several_questions_are_open_in_one_subgraph(
    shelf: Shelf, call: Call, in_function: bool
) -> None:
    config = thread()
    questions = asked(call(two_inside(shelf, in_function=in_function), {"log": []}, config))
    assert {q.value for q in questions} == {"May I delete?", "May I mail?"}
    for answer in ("yes", None, {}, ["yes", "no"]):
        with pytest.raises(AmbiguousInterruptError, match="multiple pending interrupts") as refused:
            call(two_inside(shelf, in_function=in_function), Command(resume=answer), config)
        assert refused.value.pending_ids == tuple(sorted(q.id for q in questions))
        for question in questions:  # which id means which question is said, so that the caller can choose
            assert question.id in str(refused.value)
            assert question.value in str(refused.value)
    assert len(shelf.open().pending()) == 2
    answers = {q.id: q.value.split()[2] for q in questions}
    done = call(two_inside(shelf, in_function=in_function), Command(resume=answers), config)
    assert sorted(done["log"]) == [("delete", "delete?"), ("mail", "mail?")]


# --- S026 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["abcd", "bcda", "bacd", "bcad"])
def test_s026_answered_questions_are_not_listed(shelf: Shelf, call: Call, order: str) -> None:
    """Node a asks one question, node b three in turn; `order` says whose question is answered next."""

    def a(state: State) -> State:
        return {"log": [interrupt("a1")]}

    def b(state: State) -> State:
        return {"log": [interrupt("b1"), interrupt("b2"), interrupt("b3")]}

    def build() -> Any:
        graph = StateGraph(State).add_node(a).add_node(b).add_edge(START, "a").add_edge(START, "b")
        return graph.compile(checkpointer=shelf.open())

    config = thread()
    result = call(build(), {"log": []}, config)
    truth = {"a": ["a1"], "b": ["b1", "b2", "b3"]}
    for step in ["start", *("a" if c == "a" else "b" for c in order)]:
        if step != "start":
            current = {i.value[0]: i.id for i in build().get_state(config).interrupts}
            result = call(build(), Command(resume={current[step]: truth[step].pop(0)}), config)
        can_be_answered = [left[0] for left in truth.values() if left]
        state = build().get_state(config)
        assert texts(result) == can_be_answered
        assert [i.value for i in state.interrupts] == can_be_answered
        assert [i.value for t in state.tasks for i in t.interrupts] == can_be_answered
        assert sorted(q.value for q in shelf.open().pending()) == can_be_answered
        assert state.next == tuple(name for name, left in truth.items() if left)
    assert result["log"] == ["a1", "b1", "b2", "b3"]


# --- S028 -------------------------------------------------------------------------------------------------------------


def three(shelf: Shelf, *, by_send: bool) -> Any:
    def worker(state: Any) -> State:
        return {"log": [(state["value"], interrupt(state["value"]))]}

    graph = StateGraph(State)
    if by_send:
        graph.add_node("worker", worker)
        graph.add_conditional_edges(START, lambda _: [Send("worker", {"value": n}) for n in "xyz"], ["worker"])
    else:
        for name in "xyz":

            def node(state: State, name: str = name) -> State:
                return worker({"value": name})

            graph.add_node(name, node).add_edge(START, name)
    return graph.compile(checkpointer=shelf.open())


GROUPS = [["xyz"], ["xy", "z"], ["z", "yx"], ["x", "y", "z"], ["z", "y", "x"]]


@pytest.mark.parametrize("by_send", [False, True], ids=["nodes", "sends"])
@pytest.mark.parametrize("groups", GROUPS, ids=" ".join)
def test_s028_answering_several_questions_at_once(shelf: Shelf, call: Call, groups: list[str], by_send: bool) -> None:
    config = thread()
    ids = {i.value: i.id for i in asked(call(three(shelf, by_send=by_send), {"log": []}, config))}
    left = set("xyz")
    for group in groups:
        answers = {ids[name]: name.upper() for name in group}
        result = call(three(shelf, by_send=by_send), Command(resume=answers), config)
        left -= set(group)
        assert set(texts(result)) == left
        assert {i.id for i in result.get("__interrupt__", ())} == {ids[name] for name in left}
    assert sorted(result["log"]) == [("x", "X"), ("y", "Y"), ("z", "Z")]


def test_s028_answering_several_questions_at_once_the_last_one_bare(shelf: Shelf, call: Call) -> None:
    config = thread()
    ids = {i.value: i.id for i in asked(call(three(shelf, by_send=False), {"log": []}, config))}
    call(three(shelf, by_send=False), Command(resume={ids["x"]: "X", ids["z"]: "Z"}), config)
    done = call(three(shelf, by_send=False), Command(resume="Y"), config)
    assert done["log"] == [("x", "X"), ("y", "Y"), ("z", "Z")]


def test_s028_answering_several_questions_at_once_all_or_none_are_taken(shelf: Shelf, call: Call) -> None:
    config = thread()
    ids = {i.value: i.id for i in asked(call(three(shelf, by_send=False), {"log": []}, config))}
    call(three(shelf, by_send=False), Command(resume={ids["x"]: "X"}), config)
    with pytest.raises(AlreadyAnsweredError):
        call(three(shelf, by_send=False), Command(resume={ids["x"]: "again", ids["y"]: "Y"}), config)
    assert {q.value for q in shelf.open().pending()} == {"y", "z"}


# --- S031 -------------------------------------------------------------------------------------------------------------


class Mixed:
    """One step in which a node is done, one asks, one raises, and one raises and has an error handler."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.broken = True

    def compile(self, shelf: Shelf) -> Any:
        def ok(state: State) -> State:
            self.runs["ok"] += 1
            return {"log": ["ok"]}

        def ask(state: State) -> State:
            self.runs["ask"] += 1
            return {"log": [interrupt("go?")]}

        def fragile(state: State) -> State:
            self.runs["fragile"] += 1
            if self.broken:
                raise OSError("down")
            return {"log": ["fragile"]}

        def charge(state: State) -> State:
            self.runs["charge"] += 1
            raise ValueError("declined")

        def refund(state: State, error: NodeError) -> State:
            self.runs["refund"] += 1
            return {"log": [f"refunded after {error.error}"]}

        graph = StateGraph(State).add_node(ok).add_node(ask).add_node(fragile)
        graph.add_node("charge", charge, error_handler=refund)
        for name in ("ok", "ask", "fragile", "charge"):
            graph.add_edge(START, name)
        return graph.compile(checkpointer=shelf.open())


def test_s031_one_branch_asks_one_fails_one_is_done(shelf: Shelf, call: Call) -> None:
    mixed, config = Mixed(), thread()
    with pytest.raises(OSError, match="down"):
        call(mixed.compile(shelf), {"log": []}, config)
    (question,) = shelf.open().pending()  # it survives the error
    assert question.value == "go?"
    state = mixed.compile(shelf).get_state(config)
    assert state.next == ("ask", "fragile")
    assert [i.id for i in state.interrupts] == [question.id]
    assert {t.name: t.error for t in state.tasks if t.error} == {"fragile": repr(OSError("down"))}
    with pytest.raises(OSError, match="down"):  # answered while the sibling is broken: the answer is kept
        call(mixed.compile(shelf), Command(resume="yes"), config)
    assert shelf.open().pending() == []
    assert mixed.compile(shelf).get_state(config).next == ("fragile",)
    with pytest.raises(OSError, match="down"):
        call(mixed.compile(shelf), None, config)
    mixed.broken = False
    done = call(mixed.compile(shelf), None, config)
    assert done["log"] == ["yes", "refunded after declined", "fragile", "ok"]
    assert mixed.runs == {"ok": 1, "ask": 2, "fragile": 4, "charge": 1, "refund": 1}


def test_s031_one_branch_asks_one_fails_and_is_repaired_before_the_answer(shelf: Shelf, call: Call) -> None:
    mixed, config = Mixed(), thread()
    with pytest.raises(OSError, match="down"):
        call(mixed.compile(shelf), {"log": []}, config)
    mixed.broken = False
    assert texts(call(mixed.compile(shelf), None, config)) == ["go?"]
    assert call(mixed.compile(shelf), Command(resume="yes"), config)["log"][0] == "yes"
    assert mixed.runs == {"ok": 1, "ask": 2, "fragile": 2, "charge": 1, "refund": 1}
