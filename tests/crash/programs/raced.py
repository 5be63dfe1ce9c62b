"""Small graphs that several processes or threads run at once. Whatever a body does after a question leaves a line."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import interrupt, step


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def one_question(saver: BaseCheckpointSaver, did: Callable[[str], object]) -> Any:
    """One node asks; what follows it is told to `did`."""

    def ask(state: State, config: dict[str, Any]) -> dict[str, Any]:
        name = config["configurable"]["thread_id"]
        answer = interrupt(f"may {name} go on?")
        did(f"{name} after")
        return {"log": [answer]}

    def end(state: State, config: dict[str, Any]) -> dict[str, Any]:
        did(f"{config['configurable']['thread_id']} end")
        return {"log": ["end"]}

    graph = StateGraph(State)
    graph.add_node(ask)
    graph.add_node(end)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "end")
    return graph.compile(checkpointer=saver, name="one")


def many_questions(saver: BaseCheckpointSaver, did: Callable[[str], object]) -> Any:
    """Three nodes ask beside each other, each with a step before and behind its question; one joins them."""

    def asker(letter: str) -> Callable[[State, dict[str, Any]], dict[str, Any]]:
        def ask(state: State, config: dict[str, Any]) -> dict[str, Any]:
            name = f"{config['configurable']['thread_id']} {letter}"
            step(did, f"{name} before")
            answer = interrupt(f"may {name} go on?")
            step(did, f"{name} step")
            did(f"{name} after")
            return {"log": [answer]}

        return ask

    def end(state: State, config: dict[str, Any]) -> dict[str, Any]:
        did(f"{config['configurable']['thread_id']} end")
        return {"log": ["end"]}

    graph = StateGraph(State)
    for letter in "abc":
        graph.add_node(letter, asker(letter))
        graph.add_edge(START, letter)
    graph.add_node(end)
    graph.add_edge(["a", "b", "c"], "end")
    return graph.compile(checkpointer=saver, name="many")


GRAPHS = {"one": one_question, "many": many_questions}
