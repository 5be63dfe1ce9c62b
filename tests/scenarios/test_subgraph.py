"""Scenarios of the section "subgraph": questions inside graphs that run inside a node."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, asked, texts, the_id, thread
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import CheckpointerRequiredError, UnknownInterruptError, UsageError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, interrupt

# --- S033 -------------------------------------------------------------------------------------------------------------


class Inner:
    """a -> q1 -> q2, inside the function of a node."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    def compile(self, shelf: Shelf, checkpointer: Any, config: Any = None) -> Any:
        def a(state: State) -> State:
            self.runs["a"] += 1
            return {"log": ["a"]}

        def q1(state: State) -> State:
            self.runs["q1"] += 1
            return {"log": [interrupt("q1")]}

        def q2(state: State) -> State:
            self.runs["q2"] += 1
            return {"log": [interrupt("q2")]}

        inner = StateGraph(State).add_sequence([a, q1, q2]).add_edge(START, "a")
        compiled = inner.compile(checkpointer=checkpointer, name="inner")

        def outer(state: State) -> State:
            self.runs["outer"] += 1
            return {"log": compiled.invoke({"log": list(state["log"])}, config)["log"]}

        outermost = StateGraph(State)
        outermost.add_node("outer", outer).add_edge(START, "outer")
        return outermost.compile(checkpointer=shelf.open(), name="outer")


def test_s033_the_subgraph_goes_on_after_the_answer_with_the_inherited_saver(shelf: Shelf, call: Call) -> None:
    inner, config = Inner(), thread()
    assert texts(call(inner.compile(shelf, None), {"log": ["in"]}, config)) == ["q1"]
    assert texts(call(inner.compile(shelf, None), Command(resume="one"), config)) == ["q2"]
    assert call(inner.compile(shelf, None), None, config)["log"] == ["in"]
    done = call(inner.compile(shelf, None), Command(resume="two"), config)
    assert done["log"] == ["in", "in", "a", "one", "two"]
    assert inner.runs == {"outer": 3, "a": 1, "q1": 2, "q2": 2}


def test_s033_the_subgraph_goes_on_after_the_answer_with_the_same_saver_of_its_own(shelf: Shelf, call: Call) -> None:
    inner, config = Inner(), thread()
    call(inner.compile(shelf, shelf.open()), {"log": ["in"]}, config)
    call(inner.compile(shelf, shelf.open()), Command(resume="one"), config)
    done = call(inner.compile(shelf, shelf.open()), Command(resume="two"), config)
    assert done["log"] == ["in", "in", "a", "one", "two"]
    assert inner.runs == {"outer": 3, "a": 1, "q1": 2, "q2": 2}


def test_s033_another_saver_on_the_same_thread_cannot_work_and_is_refused(shelf: Shelf, call: Call) -> None:
    inner = Inner()
    with pytest.raises(UsageError, match="another checkpointer"):
        call(inner.compile(shelf, InMemorySaver()), {"log": []}, thread())
    assert inner.runs == {"outer": 1}


def test_s033_a_saver_and_a_thread_of_its_own_is_another_run_whose_pause_is_refused(shelf: Shelf, call: Call) -> None:
    inner, own, config = Inner(), InMemorySaver(), thread("own")
    with pytest.raises(UsageError, match="must not look like a result"):
        call(inner.compile(shelf, own, config), {"log": []}, thread())
    (question,) = own.pending()
    assert (question.thread_id, question.value) == ("own", "q1")


def test_s033_without_persistence_it_cannot_ask(shelf: Shelf, call: Call) -> None:
    inner = Inner()
    with pytest.raises(CheckpointerRequiredError, match="q1"):
        call(inner.compile(shelf, False), {"log": []}, thread())


def test_s033_the_subgraph_goes_on_after_the_answer_with_a_memory_of_its_own(shelf: Shelf, call: Call) -> None:
    inner, config = Inner(), thread()
    assert texts(call(inner.compile(shelf, True), {"log": ["in"]}, config)) == ["q1"]
    assert texts(call(inner.compile(shelf, True), Command(resume="one"), config)) == ["q2"]
    assert call(inner.compile(shelf, True), None, config)["log"] == ["in"]
    done = call(inner.compile(shelf, True), Command(resume="two"), config)
    assert done["log"] == ["in", "in", "a", "one", "two"]
    assert inner.runs == {"outer": 3, "a": 1, "q1": 2, "q2": 2}


async def test_s033_the_subgraph_goes_on_after_the_answer_when_it_is_awaited(shelf: Shelf) -> None:
    runs: Counter[str] = Counter()

    async def a(state: State) -> State:
        runs["a"] += 1
        return {"log": ["a"]}

    async def q(state: State) -> State:
        runs["q"] += 1
        return {"log": [interrupt("q1"), interrupt("q2")]}

    inner = StateGraph(State).add_sequence([a, q]).add_edge(START, "a").compile()

    async def outer(state: State) -> State:
        return {"log": (await inner.ainvoke({"log": []}))["log"]}

    graph = StateGraph(State).add_node(outer).add_edge(START, "outer").compile(checkpointer=shelf.open())
    config = thread()
    await graph.ainvoke({"log": []}, config)
    await graph.ainvoke(Command(resume=1), config)
    assert (await graph.ainvoke(Command(resume=2), config))["log"] == ["a", 1, 2]
    assert runs == {"a": 1, "q": 3}


# --- S035 -------------------------------------------------------------------------------------------------------------


def test_s035_a_subgraph_with_a_memory_asks_in_each_visit_of_a_loop(shelf: Shelf, call: Call) -> None:
    runs: Counter[str] = Counter()
    config = thread()

    def compiled() -> Any:
        def look(state: State) -> State:
            runs["look"] += 1
            return {"log": [f"look {len(state['log'])}"]}

        def ask(state: State) -> State:
            return {"log": [interrupt(f"visit {len(state['log'])}?")]}

        inner = StateGraph(State).add_sequence([look, ask]).add_edge(START, "look").compile(checkpointer=True)
        graph = StateGraph(State).add_node("inner", lambda s: {"log": inner.invoke({"log": []})["log"][-2:]})
        graph.add_edge(START, "inner").add_conditional_edges("inner", lambda s: END if len(s["log"]) == 6 else "inner")
        return graph.compile(checkpointer=shelf.open())

    questions = [texts(call(compiled(), {"log": []}, config))]
    for answer in ("a", "b"):
        questions.append(texts(call(compiled(), Command(resume=answer), config)))
    done = call(compiled(), Command(resume="c"), config)
    assert questions == [["visit 1?"], ["visit 3?"], ["visit 5?"]]
    assert done["log"] == ["look 0", "a", "look 2", "b", "look 4", "c"]
    assert runs == {"look": 3}


# --- S041 -------------------------------------------------------------------------------------------------------------


def named(shelf: Shelf, name: str) -> Any:
    def work(state: State) -> State:
        return {"log": [f"{name}: {interrupt(f'{name}?')}"]}

    graph = StateGraph(State).add_node(work).add_edge(START, "work")
    return graph.compile(checkpointer=shelf.open(), name=name)


def test_s041_two_graphs_share_a_thread_id(shelf: Shelf, call: Call) -> None:
    config = thread("shared")
    question = the_id(call(named(shelf, "foo"), {"log": ["for foo"]}, config))
    bar = named(shelf, "bar")
    state = bar.get_state(config)
    assert (state.values, state.next, state.interrupts) == ({}, (), ())
    assert list(bar.get_state_history(config)) == []
    with pytest.raises(UnknownInterruptError, match="othing is pending"):
        call(bar, Command(resume="yes"), config)
    with pytest.raises(UnknownInterruptError, match="belongs to thread 'shared' of graph 'foo'"):
        call(bar, Command(resume={question: "yes"}), config)
    assert [(q.id, q.graph) for q in shelf.open().pending()] == [(question, "foo")]
    assert texts(call(bar, {"log": ["for bar"]}, config)) == ["bar?"]
    assert call(named(shelf, "foo"), Command(resume="yes"), config)["log"] == ["for foo", "foo: yes"]
    assert call(bar, Command(resume="no"), config)["log"] == ["for bar", "bar: no"]


# --- S045 -------------------------------------------------------------------------------------------------------------


def twice(shelf: Shelf, runs: Counter[str]) -> Any:
    def prepare(state: State) -> State:
        runs[f"prepare {state['value']}"] += 1
        return {"log": [f"prepared {state['value']}"]}

    def ask(state: State) -> State:
        return {"log": [interrupt(f"send {state['value']}?")]}

    inner = StateGraph(State).add_sequence([prepare, ask]).add_edge(START, "prepare").compile()

    def node(state: State) -> State:
        first = inner.invoke({"log": [], "value": "first"})
        second = inner.invoke({"log": [], "value": "second"})
        return {"log": [*first["log"], *second["log"]]}

    return StateGraph(State).add_node(node).add_edge(START, "node").compile(checkpointer=shelf.open())


def test_s045_the_same_subgraph_twice_in_one_node(shelf: Shelf, call: Call) -> None:
    runs: Counter[str] = Counter()
    config = thread()
    first = call(twice(shelf, runs), {"log": []}, config)
    second = call(twice(shelf, runs), Command(resume="yes"), config)
    assert (texts(first), texts(second)) == (["send first?"], ["send second?"])
    assert the_id(first) != the_id(second)
    done = call(twice(shelf, runs), Command(resume="no"), config)
    assert done["log"] == ["prepared first", "yes", "prepared second", "no"]
    assert runs == {"prepare first": 1, "prepare second": 1}


def test_s045_the_same_subgraph_twice_with_one_and_the_same_question(shelf: Shelf, call: Call) -> None:
    def ask(state: State) -> State:
        return {"log": [interrupt("go?")]}

    inner = StateGraph(State).add_node(ask).add_edge(START, "ask").compile()

    def node(state: State) -> State:
        return {"log": [inner.invoke({"log": []})["log"] for _ in range(2)]}

    graph = StateGraph(State).add_node(node).add_edge(START, "node").compile(checkpointer=shelf.open())
    config = thread()
    first = the_id(call(graph, {"log": []}, config))
    second = the_id(call(graph, Command(resume=1), config))
    assert first != second
    with pytest.raises(UnknownInterruptError):
        call(graph, Command(resume={first: 2}), config)
    assert call(graph, Command(resume=2), config)["log"] == [[1], [2]]


# --- S198 -------------------------------------------------------------------------------------------------------------


def deep(shelf: Shelf) -> Any:
    """A question at depth 2: as a node of a graph that is a node of a graph."""

    def ask(state: State) -> State:
        return {"log": [interrupt("deep?")]}

    bottom = StateGraph(State).add_node(ask).add_edge(START, "ask").compile()
    middle = StateGraph(State).add_node("bottom", bottom).add_edge(START, "bottom").compile()
    graph = StateGraph(State).add_node("middle", middle).add_edge(START, "middle")
    return graph.compile(checkpointer=shelf.open())


def test_s198_one_nested_pause_is_listed_once(shelf: Shelf, call: Call) -> None:
    config = thread()
    (question,) = asked(call(deep(shelf), {"log": []}, config))
    graph = deep(shelf)
    for subgraphs in (False, True):
        state = graph.get_state(config, subgraphs=subgraphs)
        assert state.interrupts == (question,)
        assert [t.interrupts for t in state.tasks] == [(question,)]
    for _ in range(2):  # each level of the nested view shows it once, as its own
        (task,) = state.tasks
        state = task.state
        assert state.interrupts == (question,)
    (listed,) = shelf.open().pending()
    assert (listed.id, listed.path, listed.node) == (question.id, ("middle", "bottom", "ask"), "ask")
    assert list(asked(call(graph, None, config))) == [question]
    assert call(graph, Command(resume="yes"), config)["log"] == ["yes"]


@pytest.mark.parametrize("subgraphs", [False, True])
def test_s198_one_nested_pause_is_shown_once_in_the_stream_of_the_root(shelf: Shelf, subgraphs: bool) -> None:
    graph, modes = deep(shelf), ["updates", "values"]
    parts = list(graph.stream({"log": []}, thread(), stream_mode=modes, subgraphs=subgraphs))
    full = parts if subgraphs else [((), *p) for p in parts]
    for mode in modes:
        shown = [p["__interrupt__"] for ns, m, p in full if m == mode and ns == () and "__interrupt__" in p]
        assert [len(s) for s in shown] == [1]
    everywhere = [i.id for _, _, p in full for i in p.get("__interrupt__", ())]
    assert len(set(everywhere)) == 1
