"""A process that runs a graph on a shared file when told, and stops at a gate until told to go on.

Arguments: the file and the witness file. A line in (JSON): `graph`, `thread`, `input` or `resume` (with `by`), `hold`.
Lines out: `{"at": point}` at the gate, where "go" lets it on, and in the end `{"done": state}` or `{"refused": ...}`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.crash.gates import Gate
from tests.crash.programs.raced import GRAPHS
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.testing.faults import FaultySaver
from waitpoint.testing.witness import Witness
from waitpoint.types import Answer, Command


def say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def pause(point: str) -> None:
    """Tell that the gate is reached, and wait for the word."""
    say({"at": point})
    assert sys.stdin.readline() == "go\n"


def main() -> None:
    """Obey until standard input ends."""
    gate = Gate()
    with SqliteSaver(sys.argv[1]) as store:
        saver, witness = FaultySaver(store, gate), Witness(sys.argv[2])
        graphs = {name: build(saver, witness.append) for name, build in GRAPHS.items()}
        while line := sys.stdin.readline():
            order = json.loads(line)
            if "hold" in order:
                gate.hold(order["hold"], lambda point=order["hold"]: pause(point))
            say(obey(graphs[order["graph"]], order))


def obey(graph: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Run the graph once; tell how it ended."""
    given = order.get("input")
    if "resume" in order:
        given = Command(resume=wrapped(order["resume"], order["by"]))
    config = {"configurable": {"thread_id": order["thread"]}}
    try:
        state = graph.invoke(given, config, **order.get("options", {}))
    except Exception as error:
        return {"refused": type(error).__name__, "text": str(error), "by": getattr(error, "answered_by", None),
                "at": getattr(error, "answered_at", None)}  # fmt: skip
    asked = state.pop("__interrupt__", [])
    return {"done": state, "asked": [i.id for i in asked]}


def wrapped(resume: Any, by: str) -> Any:
    """Say who answers."""
    if isinstance(resume, dict):
        return {k: Answer(v, by=by) for k, v in resume.items()}
    return Answer(resume, by=by)


if __name__ == "__main__":
    main()
