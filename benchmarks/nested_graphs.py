"""Graphs in graphs: three deep, run to the end, and run to a question in the innermost one and on from its answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import perf_counter
from typing import Any

from typing_extensions import TypedDict

from benchmarks.measure import Row, Work, compare, main
from benchmarks.sides import STORES, Side, config

DEPTH = 3
THREADS = 20


class State(TypedDict, total=False):
    """What each graph keeps."""

    x: int
    answer: str


def add_one(state: State) -> dict[str, int]:
    """Do next to nothing."""
    return {"x": state["x"] + 1}


def nested(side: Side, saver: Any, *, asks: bool) -> Any:
    """Return a graph whose second node is such a graph, down to one that may ask."""

    def ask(state: State) -> dict[str, Any]:
        return {"answer": side.types.interrupt("go on?"), "x": state["x"] + 1}

    inner: Any = ask if asks else add_one
    for depth in range(DEPTH, -1, -1):
        graph = side.graph.StateGraph(State)
        graph.add_sequence([("first", add_one), ("inner", inner), ("last", add_one)])
        graph.add_edge("__start__", "first")
        inner = graph.compile(checkpointer=saver if depth == 0 else None)
    return inner


STEPS = 2 * (DEPTH + 1) + 1  # that count, on the way down and up


def through(side: Side, saver: Any) -> Work:
    """Run to the end."""
    graph, numbers = nested(side, saver, asks=False), count()

    def some_threads() -> float:
        start = perf_counter()
        ends = [graph.invoke({"x": 0}, config(next(numbers))) for _ in range(THREADS)]
        took = perf_counter() - start
        assert ends == [{"x": STEPS}] * THREADS
        return took / THREADS

    return some_threads


def asking(side: Side, saver: Any) -> Work:
    """Run to the question in the innermost graph, answer it, and run to the end."""
    graph, numbers = nested(side, saver, asks=True), count()

    def some_threads() -> float:
        start = perf_counter()
        for _ in range(THREADS):
            thread = config(next(numbers))
            graph.invoke({"x": 0}, thread)
            end = graph.invoke(side.types.Command(resume="yes"), thread)
            assert end == {"x": STEPS, "answer": "yes"}
        return (perf_counter() - start) / THREADS

    return some_threads


def measure(quick: bool) -> Iterator[Row]:
    """Measure on each store."""
    for store in STORES:
        for case, make in ((f"graphs {DEPTH} deep", through), (f"a question {DEPTH} graphs deep", asking)):
            yield compare(case, store, make, times=3 if quick else 10, at_least=None)


if __name__ == "__main__":
    main({"nested_graphs": measure})
