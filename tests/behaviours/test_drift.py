"""Payloads that change on every run: the answer is not used for what was not shown, and that is said before long."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, chain, the_id, thread
from waitpoint.errors import ReplayMismatch, WaitpointError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt, step


class Clock:
    """A payload with a time in it."""

    def __init__(self) -> None:
        self.ticks = itertools.count(1)

    def now(self) -> int:
        return next(self.ticks)

    def card(self) -> dict[str, Any]:
        return {"text": "sure?", "at": self.now()}

    def node(self, state: State) -> State:
        return {"log": [interrupt(self.card())]}

    async def anode(self, state: State) -> State:
        return {"log": [interrupt(self.card())]}

    def stepped(self, state: State) -> State:
        return {"log": [interrupt({"text": "sure?", "at": step(self.now)})]}

    def ignoring(self, state: State) -> State:
        return {"log": [interrupt(self.card(), ignore=["at"])]}


def test_a_drifted_question_says_what_it_follows_and_where_it_differs(store: Store, call: Call) -> None:
    """Section 5: the card shows the differing paths"""
    clock, config = Clock(), thread()
    graph = chain(store.saver, clock.node)
    first = the_id(call(graph, {"log": []}, config))
    second = the_id(call(graph, Command(resume="yes"), config))
    assert second != first
    (row,) = store.again().pending()
    assert (row.id, row.supersedes, row.changed_paths) == (second, first, ("at",))
    by_id = {q.id: q for q in store.saver.pending(answerable=False)}
    assert (by_id[first].status, by_id[first].answer, by_id[first].supersedes) == ("answered", "yes", None)


def test_the_third_drift_in_a_row_fails_the_task(store: Store, call: Call) -> None:
    """Section 5: ReplayMismatch names node, site, paths and cure; the last question stays open; invoke(None) retries"""
    clock, config = Clock(), thread()
    graph = chain(store.saver, clock.node)
    call(graph, {"log": []}, config)
    for answer in ("first", "second"):
        result = call(graph, Command(resume=answer), config)
        assert len(asked(result)) == 1
    with pytest.raises(ReplayMismatch, match=r"'node'.*'at'.*step\(\)") as caught:
        call(graph, Command(resume="third"), config)
    assert isinstance(caught.value, WaitpointError)
    assert (caught.value.node, caught.value.paths) == ("node", ("at",))
    assert caught.value.site.endswith("Clock.node")
    (row,) = store.again().pending()
    assert row.value["at"] == 4
    assert [i.id for i in graph.get_state(config).interrupts] == [row.id]
    assert [t.status for t in store.saver.threads()] == ["failed"]
    assert len(asked(call(graph, None, config))) == 1


@pytest.mark.parametrize("way", ["stepped", "ignoring"])
def test_the_cures_of_drift_work(saver: Any, call: Call, way: str) -> None:
    """Section 5: step() around what varies, or `ignore`"""
    graph, config = chain(saver, getattr(Clock(), way)), thread()
    call(graph, {"log": []}, config)
    assert call(graph, Command(resume="yes"), config) == {"log": ["yes"]}


@pytest.mark.parametrize("way", ["stepped", "ignoring"])
def test_a_thread_that_failed_by_drift_is_cured_by_mended_code(store: Store, call: Call, way: str) -> None:
    """Section 5: the thread is not wedged"""
    clock, config = Clock(), thread()
    builder = StateGraph(State).add_node("node", clock.node).add_edge(START, "node")
    graph = builder.compile(checkpointer=store.saver)
    call(graph, {"log": []}, config)
    for answer in ("first", "second"):
        call(graph, Command(resume=answer), config)
    with pytest.raises(ReplayMismatch):
        call(graph, Command(resume="third"), config)
    mended = StateGraph(State).add_node("node", getattr(clock, way)).add_edge(START, "node")
    compiled = mended.compile(checkpointer=store.again())
    question = the_id(call(compiled, None, config))
    assert call(compiled, Command(resume={question: "yes"}), config) == {"log": ["yes"]}


def test_drift_is_noticed_in_a_coroutine(saver: Any) -> None:
    """Section 5, async"""
    graph, config = chain(saver, Clock().anode), thread()

    async def talk() -> None:
        await graph.ainvoke({"log": []}, config)
        for answer in ("first", "second"):
            await graph.ainvoke(Command(resume=answer), config)
        with pytest.raises(ReplayMismatch):
            await graph.ainvoke(Command(resume="third"), config)

    asyncio.run(talk())


@pytest.mark.parametrize("how", ["as a node", "called"])
def test_drift_is_noticed_in_a_nested_graph(saver: Any, call: Call, how: str) -> None:
    """Section 5, nested"""
    inner = chain(None, Clock().node)

    def calls(state: State) -> Any:
        return inner.invoke({"log": []})

    graph: Any = StateGraph(State).add_node("inner", inner if how == "as a node" else calls).add_edge(START, "inner")
    compiled, config = graph.compile(checkpointer=saver), thread()
    call(compiled, {"log": []}, config)
    for answer in ("first", "second"):
        call(compiled, Command(resume=answer), config)
    with pytest.raises(ReplayMismatch) as caught:
        call(compiled, Command(resume="third"), config)
    assert caught.value.node == "node"


def test_a_validation_loop_consumes_its_answers_and_is_no_drift(saver: Any, call: Call) -> None:
    """Section 5"""

    def node(state: State) -> State:
        text = "age?"
        while not isinstance(answer := interrupt(text), int):
            text = f"{answer!r} is no number; age?"
        return {"log": [answer]}

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    for n in range(8):
        result = call(graph, Command(resume=f"bad {n}"), config)
        assert asked(result)[0].value.startswith(f"'bad {n}'")
        assert saver.pending()[0].supersedes is None
    assert call(graph, Command(resume=44), config) == {"log": [44]}


def test_a_new_question_at_another_place_is_no_drift(saver: Any, call: Call) -> None:
    """Section 5: something new at *its* site"""
    words = iter("abcdefgh")

    def node(state: State) -> State:
        word = next(words)
        if word == "a":
            return {"log": [interrupt("a?")]}
        if word == "b":
            return {"log": [interrupt("b?")]}
        if word == "c":
            return {"log": [interrupt("c?")]}
        if word == "d":
            return {"log": [interrupt("d?")]}
        return {"log": [interrupt("e?")]}

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    for n in range(4):
        assert len(asked(call(graph, Command(resume=n), config))) == 1
        assert saver.pending()[0].supersedes is None
    assert call(graph, Command(resume="E"), config) == {"log": ["E"]}


def test_drifts_are_counted_in_a_row(saver: Any, call: Call) -> None:
    """Section 5: an answer that was used ends the row"""

    def moving(state: State) -> State:
        return {"log": [interrupt({"n": n, "at": ats[n]}) for n in range(3)]}

    ats = [0, 0, 0]
    graph, config = chain(saver, moving), thread()
    call(graph, {"log": []}, config)
    for n in range(3):
        for _ in range(2):
            ats[n] += 1
            (question,) = asked(call(graph, Command(resume="drifted"), config))
            assert question.value == {"n": n, "at": ats[n]}
        result = call(graph, Command(resume=n), config)
    assert result == {"log": [0, 1, 2]}


def test_a_wholly_different_payload_is_said_to_be_so(saver: Any) -> None:
    """Section 5"""
    words = iter(["one", "two"])

    def node(state: State) -> State:
        return {"log": [interrupt(next(words))]}

    graph, config = chain(saver, node), thread()
    graph.invoke({"log": []}, config)
    graph.invoke(Command(resume="yes"), config)
    assert saver.pending()[0].changed_paths == ("(whole)",)
