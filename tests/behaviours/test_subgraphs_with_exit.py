"""Graphs inside nodes with durability "exit" (B118): finished ones leave nothing behind, unless their node waits.

Guarantee: finished-is-not-rerun.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver]:
    with InMemorySaver() if request.param == "memory" else SqliteSaver(tmp_path / "threads.sqlite") as store:
        yield store


def built(saver: BaseCheckpointSaver, ran: list[str], *, asks: bool) -> Any:
    """A node that calls a graph, and then asks or not; the namespaces of the graph are kept in `ran`."""

    def inner(state: State, config: dict[str, Any]) -> dict[str, Any]:
        ran.append(config["configurable"]["checkpoint_ns"].rpartition("|")[0])
        return {"log": ["inner"]}

    def outer(state: State) -> dict[str, Any]:
        child = StateGraph(State)
        child.add_node(inner)
        child.add_edge(START, "inner")
        found = child.compile().invoke({"log": []})["log"]
        return {"log": [*found, interrupt("go on?") if asks else "asked nothing"]}

    graph = StateGraph(State)
    graph.add_node(outer)
    graph.add_edge(START, "outer")
    return graph.compile(checkpointer=saver, name="outer graph")


def test_b118_a_finished_graph_of_a_finished_node_leaves_no_checkpoints(store: BaseCheckpointSaver) -> None:
    ran: list[str] = []
    built(store, ran, asks=False).invoke({"log": []}, CONFIG, durability="exit")
    assert store.history(ThreadKey("t", "outer graph"), ran[0]) == []


def test_a_finished_graph_is_not_run_again_when_its_node_asks_afterwards(store: BaseCheckpointSaver) -> None:
    ran: list[str] = []
    graph = built(store, ran, asks=True)
    graph.invoke({"log": []}, CONFIG, durability="exit")
    assert graph.invoke(Command(resume="yes"), CONFIG, durability="exit") == {"log": ["inner", "yes"]}
    assert len(ran) == 1
