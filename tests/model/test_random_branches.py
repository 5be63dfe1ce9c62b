"""What a graph remembers, over random runs, replays, forks and prunings: always what the outer state there says."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from hypothesis import given, settings
from hypothesis import strategies as st

from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}


class Memory(TypedDict, total=False):
    number: int
    kept: Annotated[list[int], operator.add]


class State(TypedDict, total=False):
    number: int
    kept: list[int]  # as the graph inside remembered it after its last call on this branch
    low: list[int]


def remembering(*, asks: bool) -> Any:
    """Return a graph that keeps all numbers it was ever given, in two steps."""

    def note(state: Memory) -> Any:
        return {"kept": [state["number"] if not asks else interrupt("which?")]}

    builder = StateGraph(Memory).add_sequence([("first", lambda s: {}), ("note", note)]).add_edge(START, "first")
    return builder.compile(checkpointer=True)


def graph_of(*, asks: bool) -> Any:
    """A memory called by a function, and one two levels down, side by side."""
    inner, low = remembering(asks=asks), remembering(asks=False)

    def calls(state: State) -> Any:
        return {"kept": inner.invoke({"number": state["number"]})["kept"]}

    def deep(state: State) -> Any:
        return {"low": low.invoke({"number": state["number"]})["kept"]}

    middle = StateGraph(State).add_node("deep", deep).add_edge(START, "deep").compile()
    builder = StateGraph(State).add_node("calls", calls).add_node("middle", lambda s: {"low": middle.invoke(s)["low"]})
    builder.add_edge(START, "calls").add_edge("calls", "middle")
    return builder.compile(checkpointer=InMemorySaver())


MOVES = st.lists(
    st.tuples(st.sampled_from(["run", "replay", "update", "input", "answer inside", "prune"]), st.integers(0, 40)),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(moves=MOVES, asks=st.booleans(), durability=st.sampled_from(["async", "exit"]))
def test_a_memory_is_that_of_its_branch(moves: list[tuple[str, int]], *, asks: bool, durability: str) -> None:
    graph = graph_of(asks=asks)
    options: dict[str, Any] = {"durability": durability}
    for number, (move, place) in enumerate([("run", 0), *moves]):
        if move == "prune":
            graph.checkpointer.prune(["t"])
        before = graph.get_state(CONFIG).values
        target = given_ = None
        states = [s for s in graph.get_state_history(CONFIG) if s.next in (("calls",), ())]
        if move == "run" or not states:
            target, given_ = CONFIG, {"number": number}
        else:
            base = states[place % len(states)]
            before, target = base.values, base.config
            if move == "update":
                target = graph.update_state(base.config, {"number": number}, as_node="__start__")
            elif move == "input" or base.next == ():
                given_ = {"number": number}
        result = graph.invoke(given_, target, **options)
        expected = number
        if asks:
            if move == "answer inside":  # and once more from the pause, by the config of the graph inside
                (task,) = graph.get_state(CONFIG, subgraphs=True).tasks
                graph.invoke(Command(resume=-1), CONFIG, **options)
                result = graph.invoke(None, task.state.config, **options)
            assert [i.value for i in result["__interrupt__"]] == ["which?"]
            result = graph.invoke(Command(resume=expected), CONFIG, **options)
        else:
            expected = result["number"]
        assert result["kept"] == [*before.get("kept", []), expected]
        assert result["low"] == [*before.get("low", []), result["number"]]
