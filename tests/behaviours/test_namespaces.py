"""Namespaces: where a graph inside a graph stands, and how its state is read from outside."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, chain, the_id, thread
from waitpoint.config import get_config
from waitpoint.errors import WaitpointError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def ask(state: State) -> State:
    return {"log": [interrupt("ok?")]}


def outer(saver: Any, **nodes: Any) -> Any:
    graph: Any = StateGraph(State)
    before = START
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver)


def test_a_graph_as_a_node_is_named_by_node_and_task(saver: Any, streamed: Call) -> None:
    """B130"""
    graph, config = outer(saver, inner=chain(None, a, ask)), thread()
    parts = streamed(graph, {"log": []}, config, subgraphs=True)
    (task,) = graph.get_state(config).tasks
    assert parts[0] == ((f"inner:{task.id}",), {"a": {"log": ["a"]}})


def test_further_calls_in_one_node_get_a_further_part(saver: Any, streamed: Call) -> None:
    """B130, close to B132"""
    inner = chain(None, a)

    def calls(state: State) -> State:
        for _ in range(3):
            inner.invoke({"log": []})
        return {"log": [interrupt("ok?")]}

    graph, config = outer(saver, calls=calls), thread()
    *inside, _ = streamed(graph, {"log": []}, config, subgraphs=True)
    (task,) = graph.get_state(config).tasks
    own = f"calls:{task.id}"
    assert [ns for ns, _ in inside] == [(own,), (own, "1"), (own, "2")]
    namespaces = [own, f"{own}|1", f"{own}|2"]
    for ns in namespaces:
        where = {"configurable": {**config["configurable"], "checkpoint_ns": ns}}
        assert graph.get_state(where).values == {"log": ["a"]}


def test_a_node_knows_its_own_namespace(saver: Any, call: Call) -> None:
    """B130"""
    seen: list[str] = []

    def look(state: State) -> None:
        seen.append(get_config()["configurable"]["checkpoint_ns"])

    call(outer(saver, top=look, inner=chain(None, look)), {"log": []}, thread())
    assert [[part.split(":")[0] for part in ns.split("|")] for ns in seen] == [["top"], ["inner", "look"]]


@pytest.mark.parametrize("read", ["get_state", "aget_state"])
def test_all_levels_can_be_read_at_a_pause(store: Store, call: Call, read: str) -> None:
    """B101, at three levels"""
    low = chain(None, a, ask)
    config = thread()
    made = lambda saver: outer(saver, top=outer(None, middle=low))  # noqa: E731
    question = the_id(call(made(store.saver), {"log": []}, config))
    graph = made(store.again())

    def state(where: Any, **options: Any) -> Any:
        if read == "get_state":
            return graph.get_state(where, **options)
        return asyncio.run(graph.aget_state(where, **options))

    snapshot = state(config, subgraphs=True)
    names = []
    while snapshot is not None:
        assert [i.id for i in snapshot.interrupts] == [question]
        (task,) = snapshot.tasks
        names.append(task.name)
        inside = task.state
        if inside is not None:
            again = state(inside.config)
            assert (again.values, again.next) == (inside.values, inside.next)
            assert next(s.next for s in graph.get_state_history(inside.config)) == inside.next
        snapshot = inside
    assert names == ["top", "middle", "ask"]


def test_without_subgraphs_a_task_tells_only_where_its_graph_is(saver: Any, call: Call) -> None:
    """B101, also of a task that has finished"""
    graph, config = outer(saver, inner=chain(None, a), last=ask), thread()
    call(graph, {"log": []}, config)
    (task,) = next(s.tasks for s in graph.get_state_history(config) if s.next == ("inner",))
    assert task.state["configurable"]["checkpoint_ns"] == f"inner:{task.id}"
    assert graph.get_state(task.state).values == {"log": ["a"]}
    assert graph.get_state(config).tasks[0].state is None


def test_namespaces_match_by_whole_segments(saver: Any, call: Call) -> None:
    """B139"""
    graph, config = outer(saver, a1=chain(None, a), a11=chain(None, a, ask)), thread()
    call(graph, {"log": []}, config)
    (task,) = graph.get_state(config).tasks
    short = {"configurable": {**config["configurable"], "checkpoint_ns": f"a1:{task.id}"}}
    assert graph.get_state(short).values == {}
    assert graph.get_state(task.state).next == ("ask",)


def test_a_question_says_where_it_was_asked(saver: Any, call: Call) -> None:
    """B130"""
    graph, config = outer(saver, top=outer(None, middle=chain(None, ask))), thread("where")
    question = the_id(call(graph, {"log": []}, config))
    (listed,) = saver.pending()
    assert (listed.id, listed.thread_id, listed.node) == (question, "where", "ask")
    assert listed.path == ("top", "middle", "ask")
    assert [part.split(":")[0] for part in listed.ns.split("|")] == ["top", "middle"]


def test_the_state_of_an_unknown_subgraph_is_not_changed(saver: Any, call: Call) -> None:
    """B138"""
    graph, config = outer(saver, inner=chain(None, a, ask)), thread()
    call(graph, {"log": []}, config)
    before = list(graph.get_state_history(config))
    nowhere = {"configurable": {**config["configurable"], "checkpoint_ns": "nobody:1"}}
    with pytest.raises(WaitpointError, match="Subgraph 'nobody:1' not found") as refused:
        graph.update_state(nowhere, {"log": ["x"]})
    assert isinstance(refused.value, ValueError)
    assert list(graph.get_state_history(config)) == before
    assert asked(call(graph, None, config))
    assert call(graph, Command(resume="yes"), config)["log"] == ["a", "yes"]
