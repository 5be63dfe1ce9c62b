"""A superstep: a chain of twenty nodes that do next to nothing, so that what is left is the runtime's own share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import perf_counter
from typing import Any

from typing_extensions import TypedDict

from benchmarks.measure import Row, Work, compare, main
from benchmarks.sides import STORES, Side, config

NODES = 20
THREADS = 30


class State(TypedDict):
    """What the graph keeps."""

    x: int


def add_one(state: State) -> dict[str, int]:
    """Do next to nothing."""
    return {"x": state["x"] + 1}


def work(side: Side, saver: Any) -> Work:
    """Run the chain on some new threads."""
    chain = side.graph.StateGraph(State)
    chain.add_sequence([(f"node_{n}", add_one) for n in range(NODES)])
    chain.add_edge("__start__", "node_0")
    graph, numbers = chain.compile(checkpointer=saver), count()

    def some_threads() -> float:
        start = perf_counter()
        ends = [graph.invoke({"x": 0}, config(next(numbers))) for _ in range(THREADS)]
        took = perf_counter() - start
        assert ends == [{"x": NODES}] * THREADS
        return took / (NODES * THREADS)

    return some_threads


def measure(quick: bool) -> Iterator[Row]:
    """Measure on each store."""
    for store in STORES:
        yield compare("superstep", store, work, times=3 if quick else 15, at_least=8)


if __name__ == "__main__":
    main({"superstep": measure})
