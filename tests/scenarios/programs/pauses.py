"""Pause and resume in a process of its own, once told to go: FILE NAME COUNT WAIT.

The saver is given a connection whose own wait time is WAIT seconds.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from typing import Any, TypedDict

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt


class State(TypedDict, total=False):
    number: int
    answer: str


def ask(state: State) -> Any:
    return {"answer": interrupt({"number": state["number"]})}


def main(path: str, name: str, count: str, wait: str) -> None:
    with closing(sqlite3.connect(path, timeout=float(wait))) as connection:
        saver = SqliteSaver(connection)
    graph = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(checkpointer=saver)
    print("ready", flush=True)
    sys.stdin.readline()
    answers = []
    for number in range(int(count)):
        config = {"configurable": {"thread_id": f"{name}-{number}"}}
        (asked,) = graph.invoke({"number": number}, config)["__interrupt__"]
        answers.append(graph.invoke(Command(resume={asked.id: f"{name} {number}"}), config)["answer"])
    print(json.dumps({"answers": answers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
