"""A call is gone when its caller is done with it: nothing of it waits for the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.graph import StateGraph
from waitpoint.types import Command, interrupt


class State(TypedDict, total=False):
    x: int
    answer: str


def asking() -> Any:
    def ask(state: State) -> State:
        return {"answer": interrupt({"x": state["x"]})}

    builder = StateGraph(State).add_node("first", lambda _: {}).add_node("ask", ask)
    builder.add_edge("__start__", "first").add_edge("first", "ask")
    return builder.compile(checkpointer=InMemorySaver())


@contextmanager
def ringed() -> Iterator[list[str]]:
    """Tell the types of ours that only the collector could free after the block."""
    found: list[str] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += [t.__qualname__ for t in map(type, gc.garbage) if t.__module__.startswith("waitpoint.")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_a_pause_leaves_nothing_to_collect() -> None:
    graph = asking()
    with ringed() as found:
        graph.invoke({"x": 1}, {"configurable": {"thread_id": "1"}})
    assert found == []


def test_a_resume_leaves_nothing_to_collect() -> None:
    graph, at = asking(), {"configurable": {"thread_id": "1"}}
    graph.invoke({"x": 1}, at)
    with ringed() as found:
        assert graph.invoke(Command(resume="yes"), at)["answer"] == "yes"
    assert found == []
