"""Graphs inside graphs: as nodes and called by functions, what they share with the thread and what runs again."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, ids, the_id, thread
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.errors import CheckpointerRequiredError, WaitpointError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, Send, interrupt


class Item(TypedDict, total=False):
    item: int
    log: Annotated[list[Any], operator.add]


class Counting:
    """Nodes that count their runs, one of which asks."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def first(self, state: State) -> State:
        self.runs.append("first")
        return {"log": ["first"]}

    def ask(self, state: State) -> State:
        self.runs.append("ask")
        return {"log": [interrupt("inner?")]}

    def last(self, state: State) -> State:
        self.runs.append("last")
        return {"log": ["last"]}

    def before(self, state: State) -> State:
        self.runs.append("before")
        return {"value": "before"}

    def graph(self, checkpointer: bool | None = None) -> Any:
        return chain(checkpointer, self.first, self.ask, self.last)


def outer(saver: Any, *nodes: tuple[str, Any], **options: Any) -> Any:
    """Compile nodes one after the other under the given names."""
    graph: Any = StateGraph(State)
    before = START
    for name, node in nodes:
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver, **options)


def caller(inner: Any, runs: list[str] | None = None) -> Any:
    """Return a node that invokes a graph and logs what it logged."""

    def calls(state: State) -> State:
        if runs is not None:
            runs.append("calls")
        return {"log": inner.invoke({"log": []})["log"]}

    return calls


def acaller(inner: Any) -> Any:
    """Return the async form."""

    async def acalls(state: State) -> State:
        return {"log": (await inner.ainvoke({"log": []}))["log"]}

    return acalls


# --- asking and answering ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nesting", ["a node", "a function"])
def test_a_question_inside_pauses_the_parent_and_its_answer_reaches_it(store: Store, call: Call, nesting: str) -> None:
    """B125"""
    nodes, config = Counting(), thread()

    def made(saver: Any) -> Any:
        inner = nodes.graph()
        node = inner if nesting == "a node" else caller(inner)
        return outer(saver, ("before", nodes.before), ("inner", node))

    (question,) = asked(call(made(store.saver), {"log": []}, config))
    assert question.value == "inner?"
    graph = made(store.again())
    assert graph.get_state(config).next == ("inner",)
    assert [i.id for i in graph.get_state(config).interrupts] == [question.id]
    assert call(graph, Command(resume="yes"), config)["log"] == ["first", "yes", "last"]
    assert nodes.runs == ["before", "first", "ask", "ask", "last"]


def test_a_question_inside_an_async_call_pauses_the_parent(saver: Any) -> None:
    """B125"""
    nodes, config = Counting(), thread()
    graph = outer(saver, ("inner", acaller(nodes.graph())))

    async def both() -> Any:
        (question,) = asked(await graph.ainvoke({"log": []}, config))
        return question.value, await graph.ainvoke(Command(resume="yes"), config)

    value, result = asyncio.run(both())
    assert (value, result["log"]) == ("inner?", ["first", "yes", "last"])
    assert nodes.runs == ["first", "ask", "ask", "last"]


def test_a_function_runs_again_from_its_start_and_the_finished_nodes_of_its_graph_do_not(
    saver: Any, call: Call
) -> None:
    """B126"""
    nodes, config = Counting(), thread()
    graph = outer(saver, ("calls", caller(nodes.graph(), nodes.runs)))
    call(graph, {"log": []}, config)
    call(graph, Command(resume="yes"), config)
    assert nodes.runs == ["calls", "first", "ask", "calls", "ask", "last"]


def test_several_questions_inside_are_answered_one_after_the_other(saver: Any, call: Call) -> None:
    """B125"""

    def two(state: State) -> State:
        return {"log": [interrupt("one?"), interrupt("two?")]}

    def third(state: State) -> State:
        return {"log": [interrupt("three?")]}

    graph, config = outer(saver, ("inner", chain(None, two, third))), thread()
    values = [asked(call(graph, {"log": []}, config))[0].value]
    for n in (1, 2):
        values.append(asked(call(graph, Command(resume=n), config))[0].value)
    assert values == ["one?", "two?", "three?"]
    assert call(graph, Command(resume=3), config)["log"] == [1, 2, 3]


def test_parallel_subgraphs_ask_side_by_side_and_are_answered_by_id(saver: Any, call: Call) -> None:
    """B125, close to B43"""
    runs: list[str] = []

    def asking(question: str) -> Any:
        def ask(state: State) -> State:
            runs.append(question)
            return {"log": [interrupt(question)]}

        return chain(None, ask)

    graph: Any = StateGraph(State).add_node("one", asking("one?")).add_node("two", caller(asking("two?")))
    graph = graph.add_edge(START, "one").add_edge(START, "two").compile(checkpointer=saver)
    config = thread()
    found = ids(call(graph, {"log": []}, config))
    assert set(found) == {"one?", "two?"}
    rest = asked(call(graph, Command(resume={found["two?"]: 2}), config))
    assert [i.value for i in rest] == ["one?"]
    assert call(graph, Command(resume=1), config)["log"] == [1, 2]
    assert sorted(runs) == ["one?", "one?", "two?", "two?"]


def test_each_send_to_a_subgraph_asks_for_itself(saver: Any, call: Call) -> None:
    """B125, close to B43"""

    def ask(state: Any) -> Any:
        return {"log": [(state["item"], interrupt(f"{state['item']}?"))]}

    graph: Any = StateGraph(State).add_node("work", builder(ask, schema=Item).compile())
    graph.add_conditional_edges(START, lambda s: [Send("work", {"item": n, "log": []}) for n in (1, 2, 3)])
    graph, config = graph.compile(checkpointer=saver), thread()
    found = ids(call(graph, {"log": []}, config))
    assert set(found) == {"1?", "2?", "3?"}
    assert len(set(found.values())) == 3
    call(graph, Command(resume={found["2?"]: "b"}), config)
    result = call(graph, Command(resume={found["1?"]: "a", found["3?"]: "c"}), config)
    assert result["log"] == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("inner", ["nodes", "functions"])
def test_three_levels_ask_and_are_answered(saver: Any, call: Call, inner: str) -> None:
    """B125"""
    nodes, config = Counting(), thread()
    wrap = (lambda g: g) if inner == "nodes" else caller
    low = nodes.graph()
    middle = outer(None, ("low", wrap(low)))
    graph = outer(saver, ("middle", wrap(middle)))
    (question,) = asked(call(graph, {"log": []}, config))
    (row,) = saver.pending()
    assert (row.id, row.node, row.path) == (question.id, "ask", ("middle", "low", "ask"))
    assert call(graph, Command(resume="yes"), config)["log"] == ["first", "yes", "last"]
    assert nodes.runs == ["first", "ask", "ask", "last"]


def test_a_graph_called_several_times_in_one_node_keeps_its_calls_apart(saver: Any, call: Call) -> None:
    """B126, close to B132"""
    nodes, config = Counting(), thread()
    inner = nodes.graph()

    def calls(state: State) -> State:
        return {"log": [inner.invoke({"log": [n]})["log"] for n in (1, 2)]}

    graph = outer(saver, ("calls", calls))
    one = the_id(call(graph, {"log": []}, config))
    two = the_id(call(graph, Command(resume="a"), config))
    assert one != two
    assert call(graph, Command(resume="b"), config)["log"] == [[1, "first", "a", "last"], [2, "first", "b", "last"]]
    assert nodes.runs == ["first", "ask", "ask", "last", "first", "ask", "ask", "last"]


def test_different_graphs_called_in_one_node_keep_apart(saver: Any, call: Call) -> None:
    """close to B132"""

    def asking(question: str) -> Any:
        def ask(state: State) -> State:
            return {"log": [interrupt(question)]}

        return chain(None, ask)

    one, two = asking("one?"), asking("two?")

    def calls(state: State) -> State:
        return {"log": [*one.invoke({"log": []})["log"], *two.invoke({"log": []})["log"]]}

    graph, config = outer(saver, ("calls", calls)), thread()
    assert asked(call(graph, {"log": []}, config))[0].value == "one?"
    assert asked(call(graph, Command(resume=1), config))[0].value == "two?"
    assert call(graph, Command(resume=2), config)["log"] == [1, 2]


def test_a_question_of_the_node_and_one_of_its_graph_do_not_mix(saver: Any, call: Call) -> None:
    """B125"""
    nodes, config = Counting(), thread()
    inner = nodes.graph()

    def calls(state: State) -> State:
        own = interrupt("outer?")
        return {"log": [own, *inner.invoke({"log": []})["log"], interrupt("after?")]}

    graph = outer(saver, ("calls", calls))
    values = [asked(call(graph, {"log": []}, config))[0].value]
    values.append(asked(call(graph, Command(resume=1), config))[0].value)
    values.append(asked(call(graph, Command(resume=2), config))[0].value)
    assert values == ["outer?", "inner?", "after?"]
    assert call(graph, Command(resume=3), config)["log"] == [1, "first", 2, "last", 3]
    assert nodes.runs == ["first", "ask", "ask", "last"]


def test_new_input_withdraws_what_a_subgraph_asked(saver: Any, call: Call) -> None:
    """B127"""
    nodes, config = Counting(), thread()
    graph = outer(saver, ("inner", nodes.graph()))
    first = the_id(call(graph, {"log": []}, config))
    second = the_id(call(graph, {"log": []}, config, on_pending="withdraw"))
    assert first != second
    assert [q.id for q in saver.pending()] == [second]
    assert call(graph, Command(resume="yes"), config)["log"] == ["first", "yes", "last"]


# --- checkpointer=None, False, a saver --------------------------------------------------------------------------------


@pytest.mark.parametrize("nesting", ["a node", "a function"])
def test_an_inherited_checkpointer_starts_empty_on_each_run_of_the_parent(saver: Any, call: Call, nesting: str) -> None:
    """B127"""

    class Own(TypedDict, total=False):
        log: Annotated[list[Any], operator.add]
        own: Annotated[list[Any], operator.add]

    seen: list[Any] = []

    def remember(state: Any) -> Any:
        seen.append(list(state["own"]))
        return {"own": [len(state["own"])], "log": [interrupt("ok?")]}

    inner = builder(remember, schema=Own).compile()
    graph, config = outer(saver, ("inner", inner if nesting == "a node" else caller(inner))), thread()
    for _ in range(3):
        call(graph, {"log": []}, config)
        call(graph, Command(resume="yes"), config)
    assert seen == [[]] * 6


def test_a_graph_with_checkpointer_false_keeps_nothing(saver: Any, call: Call) -> None:
    """B128"""
    nodes, config = Counting(), thread()
    inner = builder(nodes.first, nodes.last).compile(checkpointer=False)
    graph = outer(saver, ("inner", inner), ("calls", caller(inner)))
    assert call(graph, {"log": []}, config)["log"] == ["first", "last"] * 2
    namespaces = {s.config["configurable"]["checkpoint_ns"] for s in graph.get_state_history(config)}
    assert namespaces == {""}
    (inside,) = [t for s in graph.get_state_history(config) for t in s.tasks if t.name == "inner"]
    assert inside.state is None


def test_a_failure_in_a_graph_with_checkpointer_false_runs_it_anew(saver: Any, call: Call) -> None:
    """B128"""
    nodes, config = Counting(), thread()

    def flaky(state: State) -> State:
        nodes.runs.append("flaky")
        if nodes.runs.count("flaky") == 1:
            raise ValueError("not yet")
        return {"log": ["flaky"]}

    graph = outer(saver, ("inner", builder(nodes.first, flaky).compile(checkpointer=False)))
    with pytest.raises(ValueError, match="not yet"):
        call(graph, {"log": []}, config)
    assert call(graph, None, config)["log"] == ["first", "flaky"]
    assert nodes.runs == ["first", "flaky", "first", "flaky"]


@pytest.mark.parametrize("nesting", ["a node", "a function"])
def test_asking_in_a_graph_with_checkpointer_false_is_an_error_with_its_cure(
    saver: Any, call: Call, nesting: str
) -> None:
    """B128, table: a question that nobody could answer is refused where it is asked"""
    inner = Counting().graph(checkpointer=False)
    graph = outer(saver, ("inner", inner if nesting == "a node" else caller(inner)))
    with pytest.raises(CheckpointerRequiredError, match="'ask'"):
        call(graph, {"log": []}, thread())
    assert saver.pending() == []


def test_a_graph_with_the_same_saver_on_the_same_thread_is_part_of_it(saver: Any, call: Call) -> None:
    """B125"""
    nodes, config = Counting(), thread()
    inner = chain(saver, nodes.first, nodes.ask, nodes.last, name="inner")
    graph = outer(saver, ("inner", inner))
    call(graph, {"log": []}, config)
    assert call(graph, Command(resume="yes"), config)["log"] == ["first", "yes", "last"]
    assert nodes.runs == ["first", "ask", "ask", "last"]


def test_a_graph_with_another_saver_on_the_same_thread_is_refused(saver: Any, call: Call) -> None:
    """B125"""
    inner = chain(InMemorySaver(), Counting().first)
    with pytest.raises(WaitpointError, match="has another checkpointer than the graph that calls it"):
        call(outer(saver, ("inner", inner)), {"log": []}, thread())


def test_a_graph_on_a_thread_of_its_own_runs_independently(saver: Any, call: Call) -> None:
    """B125"""
    nodes = Counting()
    inner = chain(saver, nodes.first, nodes.last)
    other = thread()

    def calls(state: State) -> State:
        return {"log": inner.invoke({"log": []}, other)["log"]}

    graph, config = outer(saver, ("calls", calls)), thread()
    assert call(graph, {"log": []}, config)["log"] == ["first", "last"]
    assert inner.get_state(other).values["log"] == ["first", "last"]


def test_a_pause_on_a_thread_of_its_own_does_not_look_like_a_result(saver: Any, call: Call) -> None:
    """B125"""
    nodes = Counting()
    inner = chain(saver, nodes.ask)
    other = thread()

    def calls(state: State) -> State:
        return {"log": inner.invoke({"log": []}, other)["log"]}

    with pytest.raises(WaitpointError, match=r"a pause must not look like a result.*stay open"):
        call(outer(saver, ("calls", calls)), {"log": []}, thread())
    assert [i.value for i in inner.get_state(other).interrupts] == ["inner?"]


def test_a_node_that_invokes_its_own_thread_is_refused(saver: Any, call: Call) -> None:
    """architecture 4"""
    config = thread()

    def calls(state: State) -> Any:
        return graph.invoke({"log": []}, config)

    graph = outer(saver, ("calls", calls))
    with pytest.raises(WaitpointError, match="invokes its own thread"):
        call(graph, {"log": []}, config)


def test_resuming_from_inside_a_node_is_refused(saver: Any, call: Call) -> None:
    """B125: questions are answered at the outermost graph"""
    inner = Counting().graph()

    def calls(state: State) -> Any:
        return inner.invoke(Command(resume="no"))

    with pytest.raises(WaitpointError, match="answered at the outermost graph"):
        call(outer(saver, ("calls", calls)), {"log": []}, thread())


# --- what is visible --------------------------------------------------------------------------------------------------


def test_get_state_shows_where_a_subgraph_stands(saver: Any, call: Call) -> None:
    """close to B101"""
    nodes, config = Counting(), thread()
    graph = outer(saver, ("inner", nodes.graph()))
    question = the_id(call(graph, {"log": ["in"]}, config))
    (task,) = graph.get_state(config).tasks
    assert set(task.state) == {"configurable"}
    assert task.state["configurable"]["checkpoint_ns"] == f"inner:{task.id}"
    (task,) = graph.get_state(config, subgraphs=True).tasks
    assert (task.state.next, task.state.values) == (("ask",), {"log": ["in", "first"]})
    assert [i.id for i in task.state.interrupts] == [question]
    inside = graph.get_state(task.state.config)
    assert (inside.values, inside.next) == (task.state.values, ("ask",))
    sources = [(s.metadata["source"], s.next) for s in graph.get_state_history(task.state.config)]
    assert sources == [("loop", ("ask",)), ("loop", ("first",)), ("input", ("__start__",))]


def test_a_subgraph_reads_and_writes_the_keys_it_shares(saver: Any, call: Call) -> None:
    """B125"""

    class Inner(TypedDict, total=False):
        value: int
        own: str

    def work(state: Inner) -> Inner:
        assert "log" not in state
        return {"value": state["value"] + 1, "own": "private"}

    graph = outer(saver, ("inner", builder(work, schema=Inner).compile()))
    assert call(graph, {"log": ["in"], "value": 1}, thread()) == {"log": ["in"], "value": 2}


def test_the_context_and_config_reach_a_subgraph(saver: Any, call: Call) -> None:
    """close to B231"""
    seen: list[Any] = []

    def look(state: State, config: Any, runtime: Any) -> None:
        seen.append((config["configurable"]["tenant"], config["tags"], runtime.context))

    inner = chain(None, look)
    graph = outer(saver, ("inner", inner), ("calls", caller(inner)))
    config = {**thread("", tenant="acme"), "tags": ["t"]}
    call(graph, {"log": []}, config, context={"user": "ana"})
    assert seen == [("acme", ["t"], {"user": "ana"})] * 2


def test_an_error_inside_reaches_the_caller_and_can_be_caught_by_a_function(saver: Any, call: Call) -> None:
    """B125"""

    def fails(state: State) -> State:
        raise KeyError("inside")

    inner = chain(None, fails)

    def calls(state: State) -> State:
        try:
            inner.invoke({"log": []})
        except KeyError as error:
            return {"log": [repr(error)]}
        raise AssertionError

    with pytest.raises(KeyError, match="inside"):
        call(outer(saver, ("inner", inner)), {"log": []}, thread())
    assert call(outer(saver, ("calls", calls)), {"log": []}, thread())["log"] == ["KeyError('inside')"]


def test_a_recursion_limit_holds_inside_too(saver: Any, call: Call) -> None:
    inner: Any = StateGraph(State).add_node("loop", lambda s: {"log": [1]})
    inner = inner.add_edge(START, "loop").add_edge("loop", "loop").compile()
    with pytest.raises(RecursionError, match="Recursion limit of 7"):
        call(outer(saver, ("inner", inner)), {"log": []}, {**thread(), "recursion_limit": 7})


def test_an_update_that_comes_with_the_answer_does_not_stop_a_graph_called_by_a_function(
    saver: Any, call: Call
) -> None:
    """B125: the inner graph goes on where it was, and the caller sees the new state"""
    inner = chain(None, lambda state: {"log": [interrupt("inside")]})

    def calls(state: State) -> State:
        return {"log": inner.invoke({"log": list(state["log"])})["log"][-1:]}

    graph, config = chain(saver, calls), thread()
    call(graph, {"log": ["a"]}, config)
    assert call(graph, Command(resume="yes", update={"log": ["b"]}), config)["log"] == ["a", "b", "yes"]
