"""A loop of a thousand supersteps in one run, through a list that grows with each."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import count
from time import perf_counter
from typing import Annotated, Any

from typing_extensions import TypedDict

from benchmarks.measure import Row, Work, compare, main
from benchmarks.sides import STORES, Side, config

STEPS = 1000


class State(TypedDict):
    """What the loop keeps: how far it came, and a note of each step."""

    x: int
    seen: Annotated[list[str], operator.add]


def step(state: State) -> dict[str, Any]:
    """Count, and note it."""
    return {"x": state["x"] + 1, "seen": [f"step {state['x']}"]}


def work(side: Side, saver: Any) -> Work:
    """Run the loop on a new thread; return the seconds for each superstep."""
    graph = side.graph.StateGraph(State)
    graph.add_node("step", step)
    graph.add_edge("__start__", "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["x"] < STEPS else "__end__")
    loop, numbers = graph.compile(checkpointer=saver), count()

    def one_loop() -> float:
        start = perf_counter()
        end = loop.invoke({"x": 0, "seen": []}, {**config(next(numbers)), "recursion_limit": STEPS + 1})
        took = perf_counter() - start
        assert len(end["seen"]) == STEPS
        return took / STEPS

    return one_loop


def measure(quick: bool) -> Iterator[Row]:
    """Measure on each store."""
    for store in STORES:
        yield compare(f"a superstep of {STEPS}", store, work, times=1 if quick else 5, at_least=None)


if __name__ == "__main__":
    main({"long_loop": measure})
