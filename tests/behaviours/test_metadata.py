"""Metadata of checkpoints: what the call that made them was told, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, builder, chain, thread
from waitpoint.func import entrypoint, task
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, StateUpdate, interrupt

OWN = {"source", "step", "parents"}


def a(state: State) -> State:
    return {"log": ["a"]}


def b(state: State) -> State:
    return {"log": ["b"]}


def ask(state: State) -> State:
    return {"log": [interrupt("ok?")]}


def outer(saver: Any, node: Any, **options: Any) -> Any:
    return StateGraph(State).add_node("inner", node, **options).add_edge(START, "inner").compile(checkpointer=saver)


def told(graph: Any, config: Any) -> list[dict[str, Any]]:
    """Return what each checkpoint says besides source, step and parents, the newest first."""
    found = [s.metadata for s in graph.get_state_history(config)]
    assert all(metadata.keys() >= OWN for metadata in found)
    return [{k: v for k, v in metadata.items() if k not in OWN} for metadata in found]


def test_only_plain_values_are_taken_and_no_reserved_ones(saver: Any, call: Call) -> None:
    """B123"""
    graph, given = chain(saver, a), thread("t", user="ana", n=3, half=0.5, yes=True, one=[1], none=None, __own="x")
    call(graph, {"log": []}, {**given, "metadata": {"batch": "7"}, "tags": ["t"], "run_name": "r"})
    assert told(graph, thread("t")) == [{"user": "ana", "n": 3, "half": 0.5, "yes": True, "batch": "7"}] * 3


def test_what_each_checkpoint_says_of_itself_is_not_overwritten(saver: Any, call: Call) -> None:
    """B123: and `metadata` comes before `configurable`"""
    graph = chain(saver, a)
    given = thread("t", source="mine", step=99, langgraph_node="x", key="from configurable")
    call(graph, {"log": []}, {**given, "metadata": {"parents": "mine", "key": "from metadata"}})
    found = [s.metadata for s in graph.get_state_history(thread("t"))]
    assert [(m["source"], m["step"], m["parents"]) for m in found] == [
        ("loop", 1, {}),
        ("loop", 0, {}),
        ("input", -1, {}),
    ]
    assert told(graph, thread("t")) == [{"key": "from metadata"}] * 3


@pytest.mark.parametrize("then", [{"user": "bob"}, {}])
def test_checkpoints_after_an_answer_say_who_answered(store: Store, call: Call, then: dict[str, str]) -> None:
    """B123: of the run that made them, not of the one that asked"""
    call(chain(store.saver, ask, a), {"log": []}, thread("t", user="ana"))
    graph = chain(store.again(), ask, a)
    call(graph, Command(resume="yes"), thread("t", **then))
    assert told(graph, thread("t")) == [then, then, {"user": "ana"}, {"user": "ana"}]


@pytest.mark.parametrize("nesting", ["a node", "a function", "two levels"])
def test_checkpoints_of_nested_graphs_say_it_too(store: Store, call: Call, nesting: str) -> None:
    """B123: every checkpoint of that run"""

    def made() -> Any:
        low = chain(None, a, ask, b)
        if nesting == "two levels":
            low = outer(None, low)
        return outer(store.again(), low if nesting != "a function" else lambda s: low.invoke({"log": []}))

    call(made(), {"log": []}, thread("t", user="ana"))
    snapshot = made().get_state(thread("t"), subgraphs=True)
    inside = []
    while (snapshot := snapshot.tasks[0].state) is not None:
        assert told(made(), snapshot.config) == [{"user": "ana"}] * len(list(made().get_state_history(snapshot.config)))
        inside.append(snapshot.config["configurable"]["checkpoint_ns"])
    assert len(inside) == (2 if nesting == "two levels" else 1)
    call(made(), Command(resume="yes"), thread("t", user="bob"))
    assert told(made(), thread("t", checkpoint_ns=inside[-1]))[:3] == [
        {"user": "bob"},
        {"user": "bob"},
        {"user": "ana"},
    ]


def test_a_nested_graph_adds_what_its_call_and_its_node_say(saver: Any, call: Call) -> None:
    """B123"""
    low = chain(None, ask)

    def calls(state: State) -> Any:
        return low.invoke({"log": []}, {"configurable": {"mine": 1}, "metadata": {"of": "call"}})

    graph = outer(saver, calls, metadata={"of": "node", "about": "node"})
    call(graph, {"log": []}, thread("t", user="ana"))
    (task_,) = graph.get_state(thread("t")).tasks
    assert told(graph, task_.state)[0] == {"user": "ana", "mine": 1, "of": "call", "about": "node"}
    assert told(graph, thread("t"))[0] == {"user": "ana"}


def test_a_memory_says_it_of_each_call(saver: Any, call: Call) -> None:
    """B123, B129"""
    graph = outer(saver, builder(a).compile(checkpointer=True))
    for user in ("ana", "bob"):
        call(graph, {"log": []}, thread("t", user=user))
    assert [m["user"] for m in told(graph, thread("t", checkpoint_ns="inner"))] == ["bob"] * 3 + ["ana"] * 3


def test_replays_and_updates_say_who_made_them(saver: Any, call: Call) -> None:
    """B86, B89, B95, B123"""
    graph = chain(saver, a, b)
    call(graph, {"log": []}, thread("t", user="ana"))
    old = next(s for s in graph.get_state_history(thread("t")) if s.next == ("b",)).config["configurable"]
    call(graph, None, {"configurable": {**old, "user": "bob"}})
    assert told(graph, thread("t"))[:3] == [{"user": "bob"}, {"user": "bob"}, {"user": "ana"}]
    graph.update_state(thread("t", user="carl"), {"log": ["x"]}, as_node="a")
    graph.update_state(thread("t"), None)
    graph.bulk_update_state(thread("t", user="dora"), [[StateUpdate({"log": [n]}, "a")] for n in (1, 2)])
    assert told(graph, thread("t"))[:4] == [{"user": "dora"}, {"user": "dora"}, {}, {"user": "carl"}]


def test_a_fork_inside_says_who_made_it_at_every_level(saver: Any, call: Call) -> None:
    """B104, B123"""
    graph = outer(saver, chain(None, a, ask))
    call(graph, {"log": []}, thread("t", user="ana"))
    low = graph.get_state(thread("t"), subgraphs=True).tasks[0].state.config["configurable"]
    call(graph, Command(resume="yes"), thread("t", user="ana"))
    for how in (
        lambda config: call(graph, None, config),
        lambda config: graph.update_state(config, {"log": ["x"]}),
    ):
        how({"configurable": {**low, "user": "bob"}})
        root = graph.get_state(thread("t"), subgraphs=True)
        assert [root.metadata["user"], root.tasks[0].state.metadata["user"]] == ["bob", "bob"]
    assert {m["user"] for m in told(graph, thread("t"))} == {"ana", "bob"}


def test_functions_say_it_too(saver: Any, call: Call) -> None:
    """B123"""
    low = chain(None, ask)

    @task
    def calls() -> Any:
        return low.invoke({"log": []})["log"]

    @entrypoint(checkpointer=saver)
    def flow(_: int) -> Any:
        return calls().result()

    call(flow, 1, thread("t", user="ana"))
    assert told(flow, thread("t")) == [{"user": "ana"}]
    (question,) = saver.pending()
    assert told(flow, thread("t", checkpoint_ns=question.ns)) == [{"user": "ana"}] * 2


def test_a_filter_finds_the_checkpoints_of_one_user(saver: Any, call: Call) -> None:
    """B83, B123"""
    graph = chain(saver, ask, a)
    call(graph, {"log": []}, thread("t", user="ana"))
    call(graph, Command(resume="yes"), thread("t", user="bob"))
    found = [s.next for s in graph.get_state_history(thread("t"), filter={"user": "bob"})]
    assert found == [(), ("a",)]
