"""Stream mode `custom`: what nodes write to it, when it is shown, and to whom."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, chain, thread
from waitpoint.config import get_stream_writer
from waitpoint.func import entrypoint, task
from waitpoint.graph import START, StateGraph
from waitpoint.runtime import Runtime
from waitpoint.types import Command, Send, StreamWriter, interrupt


def outer(saver: Any, **nodes: Any) -> Any:
    graph: Any = StateGraph(State)
    before = START
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver)


def by_parameter(state: State, writer: StreamWriter) -> State:
    writer("one")
    return {"log": ["done"]}


def by_function(state: State) -> State:
    get_stream_writer()("one")
    return {"log": ["done"]}


def by_runtime(state: State, runtime: Runtime[Any]) -> State:
    runtime.stream_writer("one")
    return {"log": ["done"]}


@pytest.mark.parametrize("node", [by_parameter, by_function, by_runtime])
def test_a_node_writes_to_mode_custom(saver: Any, streamed: Call, node: Any) -> None:
    """B172"""
    graph = chain(saver, node)
    assert streamed(graph, {"log": []}, thread(), stream_mode="custom") == ["one"]
    assert streamed(graph, {"log": []}, thread(), stream_mode=["custom", "updates"]) == [
        ("custom", "one"),
        ("updates", {node.__name__: {"log": ["done"]}}),
    ]


@pytest.mark.parametrize("node", [by_parameter, by_function, by_runtime])
def test_writing_does_nothing_when_nobody_listens(saver: Any, call: Call, streamed: Call, node: Any) -> None:
    """B172"""
    graph = chain(saver, node)
    assert call(graph, {"log": []}, thread()) == {"log": ["done"]}
    assert streamed(graph, {"log": []}, thread(), stream_mode="values")[-1] == {"log": ["done"]}


def test_custom_parts_are_shown_as_they_are_written(saver: Any) -> None:
    """B172, B179: the node goes on only after its part was seen"""
    seen = threading.Event()

    def node(state: State, writer: StreamWriter) -> State:
        writer({"progress": 1})
        assert seen.wait(10)
        writer({"progress": 2})
        return {}

    parts = []
    for part in chain(saver, node).stream({"log": []}, thread(), stream_mode="custom"):
        parts.append(part)
        seen.set()
    assert parts == [{"progress": 1}, {"progress": 2}]


def test_custom_parts_of_a_coroutine_are_shown_as_they_are_written(saver: Any) -> None:
    """B172, B179"""

    async def main() -> list[Any]:
        seen = asyncio.Event()

        async def node(state: State, writer: StreamWriter) -> State:
            writer(1)
            await seen.wait()
            get_stream_writer()(2)
            return {}

        parts = []
        async for part in chain(saver, node).astream({"log": []}, thread(), stream_mode="custom"):
            parts.append(part)
            seen.set()
        return parts

    assert asyncio.run(main()) == [1, 2]


def test_custom_parts_of_subgraphs_are_shown_if_asked_for(saver: Any, streamed: Call) -> None:
    """B172, B180"""
    inner = chain(None, by_parameter)
    graph = outer(saver, node=inner, function=lambda s: {"log": inner.invoke({"log": []})["log"]})
    assert streamed(graph, {"log": []}, thread(), stream_mode="custom") == []
    parts = streamed(graph, {"log": []}, thread(), stream_mode="custom", subgraphs=True)
    assert [(ns[0].split(":")[0], p) for ns, p in parts] == [("node", "one"), ("function", "one")]


def test_a_graph_that_a_node_streams_itself_shows_its_parts_to_that_node(saver: Any, streamed: Call) -> None:
    """B172, close to B188"""
    inner = chain(None, by_parameter)

    def relays(state: State, writer: StreamWriter) -> State:
        seen = list(inner.stream({"log": []}, stream_mode="custom"))
        writer(("relayed", *seen))
        return {}

    assert streamed(outer(saver, relays=relays), {"log": []}, thread(), stream_mode="custom") == [("relayed", "one")]


def test_what_was_written_before_a_question_is_shown_in_each_attempt(saver: Any, streamed: Call) -> None:
    """B172"""

    def node(state: State, writer: StreamWriter) -> State:
        writer("asking")
        return {"log": [interrupt("ok?")]}

    graph, config = chain(saver, node), thread()
    parts = streamed(graph, {"log": []}, config, stream_mode=["custom", "updates"])
    assert [m for m, _ in parts] == ["custom", "updates"]
    assert parts[0] == ("custom", "asking")
    parts = streamed(graph, Command(resume="yes"), config, stream_mode=["custom", "updates"])
    assert parts == [("custom", "asking"), ("updates", {"node": {"log": ["yes"]}})]


def test_many_parts_of_many_tasks_all_arrive_in_order(saver: Any, streamed: Call) -> None:
    """B172: more than the queue holds, so producers wait"""

    def chatty(n: int) -> State:
        writer = get_stream_writer()
        for i in range(400):
            writer((n, i))
        return {}

    graph: Any = StateGraph(State).add_node("chatty", chatty)
    graph.add_conditional_edges(START, lambda s: [Send("chatty", n) for n in range(3)])
    parts = streamed(graph.compile(checkpointer=saver), {"log": []}, thread(), stream_mode="custom")
    for n in range(3):
        assert [i for m, i in parts if m == n] == list(range(400))


@task
def speaks(n: int) -> int:
    get_stream_writer()(n)
    return n


def test_parts_of_tasks_have_the_namespace_of_their_graph(saver: Any, streamed: Call) -> None:
    """B189"""

    @entrypoint(checkpointer=saver)
    def flow(n: int) -> int:
        return speaks(n).result()

    modes = ["custom", "updates", "tasks"]
    parts = streamed(flow, 3, thread(), stream_mode=modes, subgraphs=True)
    assert {ns for ns, _, _ in parts} == {()}
    assert [part for _, mode, part in parts if mode == "custom"] == [3]
    assert [part for _, mode, part in parts if mode == "updates"] == [{"speaks": 3}, {"flow": 3}]


def test_parts_of_tasks_of_an_entrypoint_inside_have_its_namespace(saver: Any, streamed: Call) -> None:
    """B180, B189"""

    @entrypoint()
    def flow(n: int) -> int:
        return speaks(n).result()

    graph = outer(saver, node=lambda s: {"log": [flow.invoke(3)]})
    parts = streamed(graph, {"log": []}, thread(), stream_mode=["custom", "updates"], subgraphs=True)
    told = [([part.split(":")[0] for part in ns], mode, part) for ns, mode, part in parts]
    assert told == [
        (["node"], "custom", 3),
        (["node"], "updates", {"speaks": 3}),
        (["node"], "updates", {"flow": 3}),
        ([], "updates", {"node": {"log": [3]}}),
    ]
