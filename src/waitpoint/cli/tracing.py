"""`trace`: what happened on a thread, in order, as a table or a document."""

from __future__ import annotations

from typing import Annotated

import typer

from waitpoint import clock
from waitpoint.cli import exits, listing, lookup, questions, safe, terminal, times
from waitpoint.cli.options import command
from waitpoint.cli.place import Place
from waitpoint.cli.starting import own_name
from waitpoint.records import Question
from waitpoint.shown import timeline
from waitpoint.shown.timeline import Entry

_COLUMNS = (
    terminal.Column("TIME"),
    terminal.Column("WHAT", "cyan"),
    terminal.Column("WHERE"),
    terminal.Column("DETAIL"),
)


@command(with_graph=True)
def trace(
    place: Place, thread: Annotated[str, typer.Argument(metavar="THREAD", help="Its id, or the beginning of it.")]
) -> int:
    """Tell what happened on a thread, in order, with times."""
    saver = place.saver()
    row = lookup.thread(saver, thread, own_name(place))
    entries = timeline.entries(saver, row.key)
    if place.as_json:
        terminal.document(
            {
                "thread_id": row.key.thread_id,
                "graph": row.key.graph,
                "status": listing.status_of(row),
                "entries": [
                    {"at": clock.iso(e.at), "kind": e.kind, "where": _where(e), "detail": _detail(e), **e.data}
                    for e in entries
                ],
            }
        )
        return exits.DONE
    name, graph = safe.line(row.key.thread_id), safe.line(row.key.graph)
    terminal.say(f"Thread {name} of graph {graph}: {listing.status_of(row)}", "bold")
    rows = [(times.local(e.at), e.kind, safe.line(_where(e)), safe.line(_detail(e))) for e in entries]
    terminal.table(_COLUMNS, rows)
    return exits.DONE


def _where(entry: Entry) -> str:
    return " > ".join(entry.path)


def _detail(entry: Entry) -> str:
    question = entry.question
    if question is None:
        return entry.note
    lead = f"{question.id[: lookup.SHORTEST]} " if "seq" in entry.data else ""
    if entry.kind == "asked":
        return lead + questions.headline(question)
    return lead + (_settled_detail(question) if entry.settles else entry.note)


def _settled_detail(question: Question) -> str:
    withdrawn = question.status == "withdrawn"
    text = question.reason or "" if withdrawn else safe.json_text(question.answer, indent=None)
    by = f" by {question.by}" if question.by else ""
    return f"{text}{by}{f' ({question.comment})' if question.comment else ''}"
