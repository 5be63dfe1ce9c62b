"""Graphs that are built alike with LangGraph and with Waitpoint, to carry threads from the one to the other."""

from __future__ import annotations

import operator
from importlib import import_module
from typing import Annotated, Any

from typing_extensions import TypedDict


class Trip(TypedDict, total=False):
    """What the graphs work on."""

    log: Annotated[list[str], operator.add]
    city: str


class Library:
    """The names of one of the two packages, and how often each node of the graphs built with them ran."""

    def __init__(self, package: str) -> None:
        graph, types = import_module(f"{package}.graph"), import_module(f"{package}.types")
        self.StateGraph, self.START, self.END = graph.StateGraph, graph.START, graph.END
        self.interrupt, self.Command, self.Send = types.interrupt, types.Command, types.Send
        self.ran: list[str] = []


def simple(lib: Library, payload: Any = None) -> Any:
    """Build one node that asks, after one that does not."""

    def plan(state: Trip) -> Trip:
        lib.ran.append("plan")
        return {"log": ["planned"]}

    def ask(state: Trip) -> Trip:
        lib.ran.append("ask")
        answer = lib.interrupt(payload or {"question": "Go?", "city": state["city"]})
        return {"log": [f"answer {answer}"]}

    builder = lib.StateGraph(Trip).add_node("plan", plan).add_node("ask", ask)
    return builder.add_edge(lib.START, "plan").add_edge("plan", "ask")


def wide(lib: Library) -> Any:
    """Build a step of finished, asking and sent tasks, and a join behind two of them."""

    def node(name: str, asks: str = "") -> Any:
        def run(state: Any) -> Trip:
            lib.ran.append(name)
            return {"log": [f"{name} {lib.interrupt(asks)}" if asks else name]}

        return run

    def item(state: Any) -> Trip:
        lib.ran.append(f"item {state['city']}")
        return {"log": [f"item {state['city']} {lib.interrupt({'item': state['city']})}"]}

    def sent(state: Trip) -> Any:
        return [lib.Send("item", {"city": city}) for city in ("Bonn", "Ulm")]

    def onward(state: Trip) -> str:
        return "later"

    builder = lib.StateGraph(Trip)
    for name, asks in (("plan", ""), ("free", ""), ("left", "left?"), ("right", "right?"), ("join", ""), ("later", "")):
        builder.add_node(name, node(name, asks))
    builder.add_node("item", item)
    builder.add_edge(lib.START, "plan")
    for name in ("free", "left", "right"):
        builder.add_edge("plan", name)
    builder.add_conditional_edges("plan", sent, ["item"])
    builder.add_conditional_edges("free", onward, ["later"])
    return builder.add_edge(["left", "right", "later"], "join")


def twice(lib: Library) -> Any:
    """Build a node that asks two questions, one after the other."""

    def ask(state: Trip) -> Trip:
        return {"log": [lib.interrupt("first?"), lib.interrupt("second?")]}

    return lib.StateGraph(Trip).add_node("ask", ask).add_edge(lib.START, "ask")


def nested(lib: Library) -> Any:
    """Build a node that is a graph, which asks."""
    return lib.StateGraph(Trip).add_node("inner", simple(lib).compile()).add_edge(lib.START, "inner")


def late(lib: Library) -> Any:
    """Build a deferred node that is due once nothing else is."""

    def short(state: Trip) -> Trip:
        return {"log": ["short"]}

    def ask(state: Trip) -> Trip:
        return {"log": [lib.interrupt("long?")]}

    def last(state: Trip) -> Trip:
        return {"log": [f"last after {len(state['log'])}"]}

    builder = lib.StateGraph(Trip).add_node("short", short).add_node("ask", ask).add_node("last", last, defer=True)
    builder.add_edge(lib.START, "short").add_edge(lib.START, "ask")
    return builder.add_edge("short", "last").add_edge("ask", "last")
