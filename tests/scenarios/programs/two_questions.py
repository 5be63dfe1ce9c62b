"""A graph of two nodes that ask at once, in a process of its own: FILE THREAD start | look | answer ID VALUE."""

from __future__ import annotations

import json
import operator
import sys
from typing import Annotated, Any, TypedDict

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def a(state: State) -> Any:
    return {"log": [interrupt("a?")]}


def b(state: State) -> Any:
    return {"log": [interrupt("b?")]}


def main(path: str, thread: str, what: str, *rest: str) -> None:
    graph = StateGraph(State).add_node(a).add_node(b).add_edge(START, "a").add_edge(START, "b")
    with SqliteSaver.from_conn_string(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": thread}}
        if what == "start":
            compiled.invoke({"log": []}, config)
        elif what == "answer":
            compiled.invoke(Command(resume={rest[0]: rest[1]}), config)
        state = compiled.get_state(config)
        print(json.dumps({"ids": [i.id for i in state.interrupts], "log": state.values["log"], "next": state.next}))


if __name__ == "__main__":
    main(*sys.argv[1:])
