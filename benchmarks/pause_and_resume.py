"""Pause and resume: a graph of one node asks a question and goes on from its answer, each time on a new thread."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import perf_counter
from typing import Any

from typing_extensions import TypedDict

from benchmarks.measure import Row, Work, compare, main
from benchmarks.sides import STORES, Side, config

ROUNDS = 60
TARGETS = {"memory": 10.0, "SQLite": 5.0}


class State(TypedDict):
    """What the graph keeps."""

    x: int
    answer: str


def asking_graph(side: Side, saver: Any) -> Any:
    """Build the graph."""
    interrupt = side.types.interrupt

    def approve(state: State) -> dict[str, Any]:
        return {"answer": interrupt({"question": "go on?", "x": state["x"]})}

    graph = side.graph.StateGraph(State).add_node("approve", approve).add_edge("__start__", "approve")
    return graph.compile(checkpointer=saver)


def ask_and_answer(side: Side, graph: Any, thread_id: object) -> None:
    """Take one thread from its input over the question to its end."""
    at = config(thread_id)
    asked = graph.invoke({"x": 1}, at)
    assert len(asked["__interrupt__"]) == 1
    assert graph.invoke(side.types.Command(resume="yes"), at)["answer"] == "yes"


def work(side: Side, saver: Any) -> Work:
    """Ask and answer on some new threads."""
    graph, numbers = asking_graph(side, saver), count()

    def some_threads() -> float:
        start = perf_counter()
        for _ in range(ROUNDS):
            ask_and_answer(side, graph, next(numbers))
        return (perf_counter() - start) / ROUNDS

    return some_threads


def measure(quick: bool) -> Iterator[Row]:
    """Measure on each store."""
    for store in STORES:
        yield compare("pause and resume", store, work, times=3 if quick else 15, at_least=TARGETS[store])


if __name__ == "__main__":
    main({"pause_and_resume": measure})
