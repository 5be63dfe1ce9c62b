"""Going back: to breakpoints, past graphs inside that remember nothing, and what each checkpoint shows of its step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, chain, parallel, thread
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt


def a(state: State) -> State:
    return {"log": ["a"]}


def b(state: State) -> State:
    return {"log": ["b"]}


def ask(state: State) -> State:
    return {"log": [interrupt("ok?")]}


def fails(state: State) -> State:
    raise ValueError("broken")


def due(graph: Any, config: Any, node: str) -> list[Any]:
    """Return the checkpoints at which this node was due, the oldest first."""
    return [s for s in reversed(list(graph.get_state_history(config))) if node in s.next]


@pytest.mark.parametrize("stop", [{"interrupt_before": ["b"]}, {"interrupt_after": ["a"]}])
@pytest.mark.parametrize("start", ["the stop", "before it"])
def test_a_replay_stops_at_the_breakpoint_again(store: Store, streamed: Call, stop: Any, start: str) -> None:
    """B113: of a config at which the run stopped before a node, and of one before it"""
    config, end = thread(), [{"b": {"log": ["b"]}}]
    made = lambda: chain(store.again(), a, b, **stop)  # noqa: E731
    streamed(made(), {"log": []}, config)
    assert streamed(made(), None, config) == end
    (target,) = due(made(), config, "b" if start == "the stop" else "a")
    parts = streamed(made(), None, target.config)
    if start == "before it":
        assert parts == [{"a": {"log": ["a"]}}, {"__interrupt__": ()}]
    elif "interrupt_after" in stop:  # nothing runs at that checkpoint that it could stop after
        assert parts == end
        return
    else:
        assert parts == [{"__interrupt__": ()}]
    assert made().get_state(config).next == ("b",)
    assert streamed(made(), None, config) == end


@pytest.mark.parametrize("nesting", ["a node", "a function"])
@pytest.mark.parametrize("target", ["inner", "a"])
def test_a_graph_inside_without_a_memory_starts_empty_on_a_replay(
    store: Store, call: Call, nesting: str, target: str
) -> None:
    """B112: as on a new run, whatever ran in between"""
    seen: list[Any] = []
    config = thread()

    def look(state: State) -> State:
        seen.append(state.get("value"))
        return {"value": "seen"}

    def made() -> Any:
        inner = chain(None, look, look_again)
        node = inner if nesting == "a node" else lambda s: inner.invoke({"log": []})
        graph = StateGraph(State).add_node("a", lambda s: {"log": ["a"], "value": "new"}).add_node("inner", node)
        return graph.add_edge(START, "a").add_edge("a", "inner").compile(checkpointer=store.again())

    def look_again(state: State) -> State:
        seen.append(state.get("value"))
        return {}

    for _ in range(2):
        call(made(), {"log": []}, config)
    for snapshot in due(made(), config, target)[:2]:
        call(made(), None, snapshot.config)
    assert seen == ["new" if nesting == "a node" else None, "seen"] * 4


@pytest.mark.parametrize("other", [ask, fails])
def test_only_the_newest_checkpoint_shows_what_finished_in_its_step(store: Store, call: Call, other: Any) -> None:
    """B114"""
    config = thread()
    made = lambda: parallel(store.again(), a, other)  # noqa: E731
    try:
        call(made(), {"log": ["in"]}, config)
    except ValueError:
        assert other is fails
    now = made().get_state(config)
    assert (now.values, now.next) == ({"log": ["in", "a"]}, (other.__name__,))
    for record in (made().get_state(now.config), *made().get_state_history(config)):
        assert record.values["log"] in ([], ["in"])
    (old,) = due(made(), config, "a")
    if other is ask:
        assert call(made(), Command(resume="yes"), config) == {"log": ["in", "a", "yes"]}
        assert made().get_state(old.config).values == {"log": ["in"]}
        assert asked(call(made(), None, old.config))


def test_the_history_from_a_checkpoint_on_begins_with_it(saver: Any, call: Call) -> None:
    """B83"""
    graph, config = chain(saver, a, b), thread()
    call(graph, {"log": []}, config)
    everything = list(graph.get_state_history(config))
    for n, snapshot in enumerate(everything):
        assert list(graph.get_state_history(snapshot.config)) == everything[n:]
        assert list(graph.get_state_history(snapshot.config, limit=1)) == [snapshot]
