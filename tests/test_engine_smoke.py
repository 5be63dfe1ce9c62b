"""One pass through the engine on each saver: ask, read the state, answer, look back."""

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt


class State(TypedDict):
    x: int
    log: Annotated[list[str], operator.add]


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver]:
    made = InMemorySaver() if request.param == "memory" else SqliteSaver(str(tmp_path / "w.db"))
    yield made
    made.close()


def build(saver: BaseCheckpointSaver) -> Any:
    def plan(state: State) -> dict[str, Any]:
        return {"x": state["x"] + 1, "log": ["planned"]}

    def approve(state: State) -> dict[str, Any]:
        return {"log": [f"answered {interrupt({'go': state['x']})}"]}

    graph = StateGraph(State).add_node(plan).add_node(approve)
    return graph.add_edge(START, "plan").add_edge("plan", "approve").compile(checkpointer=saver)


def test_a_graph_asks_rests_and_goes_on_from_the_answer(saver: BaseCheckpointSaver) -> None:
    config = {"configurable": {"thread_id": "1"}}
    asked = build(saver).invoke({"x": 1}, config)
    assert asked["x"] == 2
    assert [i.value for i in asked["__interrupt__"]] == [{"go": 2}]
    assert [q.id for q in saver.pending()] == [asked["__interrupt__"][0].id]
    graph = build(saver)
    assert graph.get_state(config).next == ("approve",)
    assert graph.invoke(Command(resume=True), config) == {"x": 2, "log": ["planned", "answered True"]}
    assert saver.pending() == []
    assert [s.next for s in graph.get_state_history(config)] == [(), ("approve",), ("plan",), ("__start__",)]
