"""Graphs with a cached node that counts how often it runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from waitpoint.graph import START, StateGraph
from waitpoint.types import CachePolicy

POLICY = CachePolicy()


class State(TypedDict, total=False):
    given: Any
    found: Any
    log: Annotated[list[Any], operator.add]


class Given(TypedDict, total=False):
    given: Any


class Work:
    """A node that counts how often it runs."""

    def __init__(self, does: Callable[[Any], Any] = lambda given: given * 2) -> None:
        self.runs: list[Any] = []
        self.does = does

    def __call__(self, state: Given) -> State:
        self.runs.append(state["given"])
        return {"found": self.does(state["given"])}


def graph_of(work: Any, cache: Any, saver: Any = None, policy: CachePolicy = POLICY, **options: Any) -> Any:
    builder = StateGraph(State).add_node("work", work, cache_policy=policy, input_schema=Given, **options)
    return builder.add_edge(START, "work").compile(saver, cache=cache)
