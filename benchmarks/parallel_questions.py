"""One of a hundred: a thread with a hundred open questions, answered one after the other, each by its id."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import count
from time import perf_counter
from typing import Annotated, Any

from typing_extensions import TypedDict

from benchmarks.measure import Row, Work, compare, main
from benchmarks.sides import STORES, Side, config

QUESTIONS = 100


class State(TypedDict):
    """What the graph keeps."""

    answers: Annotated[list[str], operator.add]


class Part(TypedDict):
    """What one task gets."""

    n: int


def work(side: Side, saver: Any) -> Work:
    """Ask on a new thread, then measure the answers."""
    types = side.types

    def ask(part: Part) -> dict[str, Any]:
        return {"answers": [types.interrupt({"part": part["n"]})]}

    def fan_out(_: State) -> list[Any]:
        return [types.Send("ask", {"n": n}) for n in range(QUESTIONS)]

    builder = side.graph.StateGraph(State).add_node("ask", ask)
    builder.add_conditional_edges("__start__", fan_out, ["ask"])
    graph, numbers = builder.compile(checkpointer=saver), count()

    def one_thread() -> float:
        at = config(next(numbers))
        asked = graph.invoke({"answers": []}, at)["__interrupt__"]
        answers = [{question.id: str(question.value["part"])} for question in asked]
        assert len(answers) == QUESTIONS
        start = perf_counter()
        for answer in answers:
            end = graph.invoke(types.Command(resume=answer), at)
        took = perf_counter() - start
        assert end["answers"] == [str(n) for n in range(QUESTIONS)]
        return took / QUESTIONS

    return one_thread


def measure(quick: bool) -> Iterator[Row]:
    """Measure on each store; a round of the peer takes seconds, so there are few."""
    for store in STORES:
        yield compare("one of 100 questions", store, work, times=1 if quick else 5, at_least=20, warm=0 if quick else 1)


if __name__ == "__main__":
    main({"parallel_questions": measure})
