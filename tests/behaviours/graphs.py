"""Small graphs that the tests of behaviours are made of, and what they read from a pause."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Interrupt

_numbers = itertools.count(1)


class State(TypedDict, total=False):
    """A log that all nodes may write to, and a value that one of them may."""

    log: Annotated[list[Any], operator.add]
    value: Any


def thread(name: str = "", **more: Any) -> dict[str, Any]:
    """Return the config of a thread, by default of a new one."""
    return {"configurable": {"thread_id": name or f"thread-{next(_numbers)}", **more}}


def chain(saver: Any, *nodes: Callable[..., Any], **options: Any) -> Any:
    """Compile nodes one after the other."""
    return builder(*nodes, edges="chain").compile(checkpointer=saver, **options)


def parallel(saver: Any, *nodes: Callable[..., Any], **options: Any) -> Any:
    """Compile nodes that all run in one superstep."""
    return builder(*nodes, edges="parallel").compile(checkpointer=saver, **options)


def builder(*nodes: Callable[..., Any], edges: str = "chain", schema: Any = State) -> StateGraph[Any, Any, Any, Any]:
    """Return a builder with these nodes, named after their functions."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    before = START
    for node in nodes:
        name = node.__name__
        graph.add_node(name, node)
        if edges == "parallel":
            graph.add_edge(START, name)
            graph.add_edge(name, END)
        else:
            graph.add_edge(before, name)
            before = name
    return graph


def asked(result: Any) -> list[Interrupt[Any]]:
    """Return the questions of a pause."""
    found = result["__interrupt__"]
    assert isinstance(found, list)
    assert all(isinstance(i, Interrupt) for i in found)
    return found


def ids(result: Any) -> dict[Any, str]:
    """Return the ids of a pause's questions by their values."""
    return {i.value: i.id for i in asked(result)}


def the_id(result: Any) -> str:
    """Return the id of the only question of a pause."""
    (only,) = asked(result)
    return only.id
