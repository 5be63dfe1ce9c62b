"""`import`: carries a thread over that LangGraph left paused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from waitpoint.checkpoint.langgraph import Imported, aimport_thread, import_thread
from waitpoint.cli import exits, questions, safe, terminal
from waitpoint.cli.options import command
from waitpoint.cli.place import Place
from waitpoint.engine.runner import Runner
from waitpoint.errors import ConfigError


@command(with_graph=True)
def bring(
    place: Place,
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="Its id there, which it keeps.")],
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="MODULE:ATTRIBUTE", help="The saver of LangGraph, or a function that returns or opens it."
        ),
    ],
    as_node: Annotated[
        str | None,
        typer.Option("--as-node", metavar="NODE", help="Take the state alone, as if this node had just returned."),
    ] = None,
) -> int:
    """Carry a thread that LangGraph left paused over to the store, with its open questions."""
    if place.graph_flag is None:
        raise ConfigError(
            "An import needs the graph that goes on with the thread; give --graph NAME or MODULE:ATTRIBUTE"
        )
    graph = place.bound(place.graph_named(place.graph_flag), create=True)
    imported = _imported(graph, place.object_named(source), thread, as_node, source)
    if place.as_json:
        terminal.document(
            {
                "thread_id": imported.thread_id,
                "graph": graph.name,
                "questions": [questions.document(place, q) for q in imported.questions],
                "next": list(imported.next),
                "left_behind": list(imported.left_behind),
            }
        )
        return exits.DONE
    terminal.say(safe.line(f"Imported thread {imported.thread_id} of graph {graph.name}."))
    for each in imported.left_behind:
        terminal.say(safe.line(f"  left behind: {each}"))
    terminal.say()
    if imported.questions:
        terminal.say(f"It waits for an answer; see {place.line('inbox')}")
    elif imported.next:
        terminal.say(f"It goes on with {place.line('continue', imported.thread_id)}")
    else:
        terminal.say("It is done.")
    return exits.DONE


def _imported(graph: Runner, found: Any, thread: str, as_node: str | None, source: str) -> Imported:
    """Open the saver, if it is a function that does so, and import from it."""
    if callable(found) and not hasattr(found, "get_tuple"):
        found = found()
    if hasattr(found, "__aenter__") and not hasattr(found, "get_tuple"):
        import asyncio

        return asyncio.run(_within(found, lambda saver: aimport_thread(graph, saver, thread, as_node=as_node)))
    if hasattr(found, "__enter__") and not hasattr(found, "get_tuple"):
        with found as saver:
            return import_thread(graph, saver, thread, as_node=as_node)
    if not hasattr(found, "get_tuple"):
        raise ConfigError(
            f"--from {source} is a {type(found).__name__}, not a saver of LangGraph; give one, or a function that returns or "
            f"opens one"
        )
    return import_thread(graph, found, thread, as_node=as_node)


async def _within(opened: Any, call: Callable[[Any], Any]) -> Imported:
    async with opened as saver:
        imported: Imported = await call(saver)
        return imported
