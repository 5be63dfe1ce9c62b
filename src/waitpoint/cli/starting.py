"""`run` and `continue`: start a thread, and go on with one that stopped."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import typer

from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey
from waitpoint.cli import given, lookup, running, terminal
from waitpoint.cli.options import command
from waitpoint.cli.place import Place
from waitpoint.config import text_id
from waitpoint.engine import owner
from waitpoint.errors import ThreadBusyError


@command()
def run(
    place: Place,
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="A name in waitpoint.toml, or MODULE:ATTRIBUTE.")],
    input: Annotated[
        str, typer.Option("--input", metavar="JSON", help="The graph's input; also @FILE, or - for stdin.")
    ],
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Default: a new one.")] = None,
) -> int:
    """Run a graph on a new input until it is done or waits."""
    value: Any = given.json_value(input, "--input")
    thread_id = text_id(thread, "--thread")
    loaded = place.graph_named(graph)
    if graph not in place.settings.graphs:
        place.graph_flag = graph
    bound = place.bound(loaded, create=True)
    key = ThreadKey(thread_id or _new_id(place.saver(), bound.name), bound.name)
    if thread_id is None and not place.as_json:
        terminal.note(f"Thread {key.thread_id}")
    return running.run_to_rest(place, bound, key, value)


@command(with_graph=True)
def go_on(
    place: Place, thread: Annotated[str, typer.Argument(metavar="THREAD", help="Its id, or the beginning of it.")]
) -> int:
    """Go on with a thread after a crash, a failure or a breakpoint."""
    saver = place.saver()
    row = lookup.thread(saver, thread, own_name(place))
    graph = place.bound(place.graph_of(row.key.graph))
    if row.status == "running" and not owner.is_dead(row):
        raise ThreadBusyError(
            f"Thread '{row.key.thread_id}' is being run by another process; it goes on by itself, so wait for it to rest",
            thread_id=row.key.thread_id,
            status=row.status,
        )
    return running.run_to_rest(place, graph, row.key, None)


def own_name(place: Place) -> str | None:
    """Return the name that --graph gives a thread's graph: its own, or that of the graph it leads to."""
    flag = place.graph_flag
    if flag is None:
        return None
    if ":" not in flag and flag not in place.settings.graphs:
        place.graph_flag = None
        return flag
    return place.graph_named(flag).name


def _new_id(saver: BaseCheckpointSaver, name: str) -> str:
    while True:
        thread_id = f"{name}-{secrets.token_hex(4)}"
        if not saver.threads(thread_id=thread_id, limit=1):
            return thread_id
