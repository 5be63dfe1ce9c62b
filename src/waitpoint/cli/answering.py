"""`answer` and `withdraw`: settle a question, then run its thread to the next rest."""

from __future__ import annotations

import getpass
from typing import Annotated, Any

import typer

from waitpoint.checkpoint.base import QuestionRow, ThreadRow
from waitpoint.cli import exits, given, lookup, running, safe, terminal
from waitpoint.cli.options import BY, NO_RUN, Recording, command
from waitpoint.cli.place import Place
from waitpoint.engine import answers, owner
from waitpoint.engine.runner import Runner
from waitpoint.errors import UsageError
from waitpoint.records import Answer

ID = Annotated[str, typer.Argument(metavar="ID", help="The question's id, or the beginning of it.")]


@command(with_graph=True)
def answer(
    place: Place,
    id: ID,
    answer: Annotated[str, typer.Argument(metavar="JSON", help="The answer; also @FILE, or - for stdin.")],
    recording: Recording,
) -> int:
    """Answer a question and run its thread to the next rest."""
    saver = place.saver()
    value = given.json_value(answer, "The answer")
    return recorded(place, lookup.question(saver, id), value, recording, "answer")


@command(with_graph=True)
def withdraw(
    place: Place,
    id: ID,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the graph is told.")],
    by: BY = None,
    no_run: NO_RUN = False,
) -> int:
    """Close a question without an answer and run its thread, which is told so."""
    saver = place.saver()
    if not reason.strip():
        raise UsageError("--reason is empty, and the graph is told why its question went; give a few words")
    row = lookup.question(saver, id)
    graph = None if no_run else place.bound(place.graph_of(row.key.graph))
    thread = answers.withdraw(saver, row.id, reason, by or _user())
    return _after(place, graph, row, thread, "withdrawal")


def recorded(place: Place, row: QuestionRow, value: Any, recording: Recording, what: str) -> int:
    """Record an answer, and run the thread unless that is not wanted; `what` names the answer in notes."""
    graph = None if recording.no_run else place.bound(place.graph_of(row.key.graph))
    given = Answer(value, by=recording.by or _user(), comment=recording.comment)
    thread = answers.answer(place.saver(), row.id, given)
    return _after(place, graph, row, thread, what)


def _after(place: Place, graph: Runner | None, row: QuestionRow, thread: ThreadRow, what: str) -> int:
    if graph is not None:
        if not place.as_json:
            terminal.note(f"Recorded the {what} {'of' if what == 'withdrawal' else 'to'} {row.id[: lookup.SHORTEST]}.")
            if thread.status == "running" and not owner.is_dead(thread):
                terminal.note("Another process runs the thread and takes it in; waiting for it to rest.")
        return running.run_to_rest(place, graph, row.key, None)
    go_on = place.line("continue", row.key.thread_id)
    if place.as_json:
        terminal.document(
            {
                "thread_id": row.key.thread_id,
                "graph": row.key.graph,
                "status": thread.status,
                "question": row.id,
                "recorded": what,
                "commands": [go_on],
            }
        )
    elif thread.status == "running":
        terminal.say(f"Recorded. Another process runs thread {safe.line(row.key.thread_id)} and takes it in.")
    else:
        terminal.say(f"Recorded. Thread {safe.line(row.key.thread_id)} goes on with:  {go_on}")
    return exits.DONE


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None
