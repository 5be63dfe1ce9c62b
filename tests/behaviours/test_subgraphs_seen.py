"""What is seen of graphs inside others: their states, and the parts of those that keep nothing."""

from __future__ import annotations

from typing import Any

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, builder, thread
from waitpoint.graph import START, StateGraph
from waitpoint.types import interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def ask(state: State) -> State:
    return {"log": [interrupt("ok?")]}


def around(name: str, inner: Any, saver: Any = None, **options: Any) -> Any:
    return StateGraph(State).add_node(name, inner).add_edge(START, name).compile(saver, **options)


def test_a_graph_that_keeps_nothing_is_streamed_too(saver: Any, streamed: Call) -> None:
    graph = around("inner", builder(a).compile(checkpointer=False), saver)
    parts = streamed(graph, {"log": []}, thread(), stream_mode="updates", subgraphs=True)
    assert [([n.split(":")[0] for n in ns], update) for ns, update in parts] == [
        (["inner"], {"a": {"log": ["a"]}}),
        ([], {"inner": {"log": ["a"]}}),
    ]


def test_a_graph_that_has_not_begun_has_an_empty_state(saver: Any, call: Call) -> None:
    graph, config = around("inner", builder(a).compile(), saver, interrupt_before=["inner"]), thread()
    call(graph, {"log": ["in"]}, config)
    state = graph.get_state(config, subgraphs=True).tasks[0].state
    assert (state.values, state.next, state.tasks, state.interrupts) == ({}, (), (), ())


def test_the_state_between_shows_what_a_memory_inside_asks(saver: Any, call: Call) -> None:
    middle = around("low", builder(ask).compile(checkpointer=True))
    graph, config = around("middle", middle, saver), thread()
    call(graph, {"log": []}, config)
    state = graph.get_state(config, subgraphs=True)
    inside = state.tasks[0].state
    assert inside.interrupts == inside.tasks[0].interrupts == inside.tasks[0].state.interrupts == state.interrupts
    assert [question.value for question in state.interrupts] == ["ok?"]
