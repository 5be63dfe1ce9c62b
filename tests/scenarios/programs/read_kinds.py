"""Compare what one process stored with what each kind of value should be, in a process of its own: FILE."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.scenarios.kinds import KINDS, REFUSED, SAME, expected, same
from tests.scenarios.world import State, thread
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, StateGraph


def nothing(state: State) -> Any:
    return {}


def main(path: str) -> None:
    saver = SqliteSaver(path)
    graph = StateGraph(State).add_node("node", nothing).add_edge(START, "node").compile(checkpointer=saver)
    wrong: list[str] = []
    asked = {q.thread_id: q for q in saver.pending(answerable=False)}
    for name, kind in KINDS.items():
        found: dict[str, Any] = {}
        if kind.as_question is not REFUSED:
            found["question"] = (asked[f"question {name}"].value["items"][3]["it"], kind.as_question)
        if kind.as_answer is not REFUSED:
            found["answer"] = (asked[f"answer {name}"].answer["items"][3]["it"], kind.as_answer)
        if kind.in_state is not REFUSED:
            values = graph.get_state(thread(f"state {name}")).values
            found["state"] = (values["value"]["items"][3]["it"], kind.in_state)
        wrong += [
            f"{where} {name}: {got!r}" for where, (got, want) in found.items() if not same(got, expected(kind, want))
        ]
    print(json.dumps({"wrong": wrong, "kinds": len(KINDS), "same": sum(k.in_state is SAME for k in KINDS.values())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
