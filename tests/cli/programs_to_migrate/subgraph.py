"""A graph in a graph, threads in SQLite, and a step back in time."""

import sqlite3
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.constants import END, START
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt


class Trip(TypedDict, total=False):
    city: str
    ok: str


def inner(state: Trip) -> Trip:
    return {"ok": interrupt(f"Go to {state['city']}?")}


def outer(state: Trip) -> Trip:
    return {"city": state["city"].upper()}


def main() -> list[Any]:
    below = StateGraph(Trip).add_node("inner", inner).add_edge(START, "inner").compile()
    builder = StateGraph(Trip).add_node("outer", outer).add_node("below", below)
    builder.add_edge(START, "outer").add_edge("outer", "below").add_edge("below", END)
    with SqliteSaver.from_conn_string(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}}
        asked = graph.invoke({"city": "Rome"}, config)["__interrupt__"]
        first = graph.invoke(Command(resume="yes"), config)
        old = next(s for s in graph.get_state_history(config) if s.next == ("below",))
        again = graph.invoke(None, old.config)["__interrupt__"]
        assert sqlite3.sqlite_version
        return [[i.value for i in asked], first, [i.value for i in again], graph.invoke(Command(resume="no"), config)]
