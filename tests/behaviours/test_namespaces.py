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


def test_graphs_inside_are_listed_by_name(saver: Any) -> None:
    """B139"""
    low, review = chain(None, a, ask), chain(None, a)

    def calls(state: State) -> State:
        return {"log": low.invoke({"log": []})["log"]}

    middle = outer(None, low=low, calls=calls)
    graph = outer(saver, plain=a, research=middle, research_review=review)

    def listed(**options: Any) -> dict[str, Any]:
        async def later() -> dict[str, Any]:
            return {name: found async for name, found in graph.aget_subgraphs(**options)}

        found = dict(graph.get_subgraphs(**options))
        assert asyncio.run(later()) == found
        return found

    assert listed() == {"research": middle, "research_review": review}
    assert list(listed(recurse=True)) == ["research", "research|low", "research|calls", "research_review"]
    assert listed(namespace="research") == listed(namespace="research", recurse=True) == {"research": middle}
    assert listed(namespace="research_review", recurse=True) == {"research_review": review}
    assert listed(namespace="research|calls", recurse=True) == {"research|calls": low}
    assert listed(namespace="research|low") == {}
    assert listed(namespace="resea", recurse=True) == listed(namespace="research|review", recurse=True) == {}


@pytest.mark.parametrize("nesting", ["nodes", "functions"])
def test_a_nested_checkpoint_names_those_around_it(store: Store, call: Call, nesting: str) -> None:
    """B141, at three levels"""
    config = thread()

    def made() -> Any:
        low = chain(None, a, ask)
        middle = outer(None, low=low if nesting == "nodes" else lambda s: {"log": low.invoke({"log": []})["log"]})
        top = middle if nesting == "nodes" else lambda s: {"log": middle.invoke({"log": []})["log"]}
        return outer(store.again(), top=top)

    call(made(), {"log": []}, config)
    graph = made()
    root = graph.get_state(config, subgraphs=True)
    middle = root.tasks[0].state
    low = middle.tasks[0].state
    places = [s.config["configurable"] for s in (root, middle, low)]
    parents: dict[str, str] = {}
    for snapshot, place in zip((root, middle, low), places, strict=True):
        assert snapshot.metadata == {**snapshot.metadata, "parents": parents}
        own = {place["checkpoint_ns"]: place["checkpoint_id"]}
        assert place.get("checkpoint_map") == ({**parents, **own} if parents else None)
        parents |= own
        assert graph.get_state(snapshot.config).values == snapshot.values
        before = next(s for s in graph.get_state_history(snapshot.config) if s.config == snapshot.parent_config)
        assert before.metadata["parents"] == snapshot.metadata["parents"]
    assert list(parents) == [place["checkpoint_ns"] for place in places]
    assert low.next == ("ask",)


def test_metadata_is_source_step_and_parents(saver: Any, call: Call) -> None:
    """B124"""
    graph, config = outer(saver, inner=chain(None, a, ask)), thread()
    call(graph, {"log": []}, config)
    (task,) = graph.get_state(config).tasks
    for where in (config, task.state):
        assert all(set(s.metadata) == {"source", "step", "parents"} for s in graph.get_state_history(where))


def test_a_function_that_calls_two_graphs_is_read_with_its_own_channels(saver: Any, call: Call) -> None:
    """B137: which of them stands in the namespace is not declared"""
    one, two = chain(None, a, ask), chain(None, ask)

    def calls(state: State) -> State:
        return {"log": (one if len(state["log"]) == 0 else two).invoke({"log": []})["log"]}

    graph, config = outer(saver, calls=calls), thread()
    call(graph, {"log": []}, config)
    (task,) = graph.get_state(config).tasks
    assert task.state is None
    where = thread(config["configurable"]["thread_id"], checkpoint_ns=f"calls:{task.id}")
    assert graph.get_state(where).values == {"log": ["a"]}
    assert [s.values["log"] for s in graph.get_state_history(where)] == [["a"], [], []]
    assert call(graph, Command(resume="yes"), config)["log"] == ["a", "yes"]


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


@pytest.mark.parametrize("nesting", ["nodes", "functions"])
def test_tags_of_the_run_reach_a_node_three_graphs_deep_once(
    saver: Any, call: Call, streamed: Call, nesting: str
) -> None:
    """B136"""
    seen: list[Any] = []

    def look(state: State, config: Any) -> None:
        seen.append(config["tags"])

    def inside(graph: Any) -> Any:
        return graph if nesting == "nodes" else lambda s: {"log": graph.invoke({"log": []})["log"]}

    graph = chain(None, look)
    for _ in range(3):
        graph = outer(None, inner=inside(graph))
    graph = outer(saver, inner=inside(graph)).with_config({"tags": ["bound"]})
    config = {**thread(), "tags": ["one", "two"]}
    call(graph, {"log": []}, config)
    streamed(graph, {"log": []}, config, subgraphs=True, stream_mode=["values", "messages", "tasks"])
    assert [sorted(tags) for tags in seen] == [["bound", "one", "two"]] * 2
