"""Graphs that the server's tests serve."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from waitpoint.graph import START, StateGraph
from waitpoint.types import interrupt


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def asking() -> Any:
    """Return a graph with a step, a question and a step after it."""

    def plan(state: Log) -> Any:
        return {"log": ["plan"]}

    def review(state: Log) -> Any:
        return {"log": [interrupt({"text": "Go on?"})]}

    def act(state: Log) -> Any:
        return {"log": ["act"]}

    graph = StateGraph(Log).add_node(plan).add_node(review).add_node(act)
    return graph.add_edge(START, "plan").add_edge("plan", "review").add_edge("review", "act").compile(name="asking")


def nesting() -> Any:
    """Return a graph whose child asks."""

    def ask(state: Log) -> Any:
        return {"log": [interrupt("From inside?")]}

    child = StateGraph(Log).add_node(ask).add_edge(START, "ask").compile()
    return StateGraph(Log).add_node("child", child).add_edge(START, "child").compile(name="nesting")
