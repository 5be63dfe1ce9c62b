"""Pause in a process that ends without closing anything, or answer in another: FILE THREAD DURABILITY [ANSWER]."""

from __future__ import annotations

import json
import operator
import os
import sys
from typing import Annotated, Any, TypedDict

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def before(state: State) -> Any:
    return {"log": ["before"]}


def ask(state: State) -> Any:
    return {"log": [interrupt("go?")]}


def main(path: str, thread: str, durability: Any, *answer: str) -> None:
    graph = StateGraph(State).add_sequence([before, ask]).add_edge(START, "before")
    compiled = graph.compile(checkpointer=SqliteSaver(path))
    config = {"configurable": {"thread_id": thread}}
    given: Any = Command(resume=answer[0]) if answer else {"log": []}
    seen = []
    for part in compiled.stream(given, config, stream_mode="updates", durability=durability):
        seen += list(part)
        if "__interrupt__" in part:
            # The caller has seen the pause: from here on it must be on record, whatever happens to this process.
            print(json.dumps({"seen": seen, "id": part["__interrupt__"][0].id}), flush=True)
            os._exit(0)
    print(json.dumps({"seen": seen, "log": compiled.get_state(config).values["log"]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
