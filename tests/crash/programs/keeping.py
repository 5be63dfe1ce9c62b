"""A thread that is pruned, copied and taken back while it can be killed: the process does one of these and ends."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from tests.crash.programs.server import Request, main
from tests.crash.programs.world import World
from waitpoint.checkpoint import keeping
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import interrupt

STEPS = 12


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    page: str


def graph_on(saver: BaseCheckpointSaver) -> Any:
    """Return a graph that works for a while and then asks."""

    def work(state: State) -> Any:
        return {"log": [f"step {len(state['log'])} {'x' * 100}"], "page": str(len(state["log"])) * 200}

    def ask(_: State) -> Any:
        return {"log": [interrupt("go on?")]}

    builder = StateGraph(State).add_node("work", work).add_node("ask", ask).add_edge(START, "work")
    builder.add_conditional_edges("work", lambda s: "work" if len(s["log"]) < STEPS else "ask", ["work", "ask"])
    return builder.compile(checkpointer=saver)


def play(request: Request, world: World) -> dict[str, Any]:
    """Do what is asked for to the thread "t", in small portions."""
    keeping.CHECKPOINTS_AT_ONCE, keeping.ITEMS_AT_ONCE = 3, 4
    if request["program"] == "prune":
        world.saver.prune(["t"])
    elif request["program"] == "copy":
        world.saver.copy_thread("t", "u")
    else:
        world.saver.delete_for_runs(["second"])
    return {}


if __name__ == "__main__":
    main(play)
