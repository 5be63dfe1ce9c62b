"""Read what another process stored of dicts that look like serialized objects: FILE THREAD."""

from __future__ import annotations

import json
import operator
import sys
from typing import Annotated, Any, TypedDict

from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, StateGraph


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    value: Any


def node(state: State) -> Any:
    return {}


def main(path: str, thread: str) -> None:
    saver = SqliteSaver(path)
    graph = StateGraph(State).add_node(node).add_edge(START, "node").compile(checkpointer=saver)
    values = graph.get_state({"configurable": {"thread_id": thread}}).values
    asked = [(q.value, q.answer) for q in saver.pending(answerable=False)]
    heavy = sorted({m.partition(".")[0] for m in sys.modules} & {"langchain_core", "pickle", "subprocess"})
    print(json.dumps({"value": values["value"], "log": values["log"], "asked": asked, "loaded": heavy}))


if __name__ == "__main__":
    main(*sys.argv[1:])
