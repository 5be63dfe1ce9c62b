"""`trace`: what happened on a thread, in order, from its events, checkpoints, outcomes, effects and questions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from waitpoint import clock, codec
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    EventRow,
    JournalRow,
    OutcomeRow,
    PendingFilter,
    ThreadKey,
    as_question,
)
from waitpoint.cli import exits, listing, lookup, questions, safe, terminal, times
from waitpoint.cli.options import command
from waitpoint.cli.place import Place
from waitpoint.cli.starting import own_name
from waitpoint.engine.heads import origin_of
from waitpoint.engine.segment import below, memory_ns
from waitpoint.records import START, Question

_COLUMNS = (
    terminal.Column("TIME"),
    terminal.Column("WHAT", "cyan"),
    terminal.Column("WHERE"),
    terminal.Column("DETAIL"),
)
_PATH = " > "
_EFFECTS = {
    "executing": "effect started",
    "done": "effect done",
    "raised": "effect failed",
    "not_happened": "effect not done",
}


@dataclass(slots=True)
class Entry:
    """One thing that happened. `order` sorts what has the same time."""

    at: float
    kind: str
    where: str = ""
    detail: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    order: int = 0


@command(with_graph=True)
def trace(
    place: Place, thread: Annotated[str, typer.Argument(metavar="THREAD", help="Its id, or the beginning of it.")]
) -> int:
    """Tell what happened on a thread, in order, with times."""
    saver = place.saver()
    row = lookup.thread(saver, thread, own_name(place))
    entries = sorted(_entries(saver, row.key), key=lambda e: (e.at, e.order))
    if place.as_json:
        terminal.document(
            {
                "thread_id": row.key.thread_id,
                "graph": row.key.graph,
                "status": listing.status_of(row),
                "entries": [
                    {"at": clock.iso(e.at), "kind": e.kind, "where": e.where, "detail": e.detail, **e.data}
                    for e in entries
                ],
            }
        )
        return exits.DONE
    name, graph = safe.line(row.key.thread_id), safe.line(row.key.graph)
    terminal.say(f"Thread {name} of graph {graph}: {listing.status_of(row)}", "bold")
    terminal.table(_COLUMNS, [(times.local(e.at), e.kind, safe.line(e.where), safe.line(e.detail)) for e in entries])
    return exits.DONE


def _entries(saver: BaseCheckpointSaver, key: ThreadKey) -> Iterator[Entry]:
    asked = {
        row.id: as_question(row) for row in saver.questions(PendingFilter(key.thread_id, key.graph, answerable=False))
    }
    told = set()
    for event in saver.events(key):
        told.add((event.kind, event.ref))
        yield _of_event(event, asked)
    for question in asked.values():
        if question.status == "withdrawn" and ("withdrawn", question.id) not in told:
            at = question.settled_at or question.asked_at
            yield Entry(at, "withdrawn", _where(question), _settled_detail(question), {"question": question.id}, 30)
    yield from _steps(saver, key, "", ())


def _steps(
    saver: BaseCheckpointSaver, key: ThreadKey, ns: str, path: tuple[str, ...], call: str | None = None
) -> Iterator[Entry]:
    """Yield what a graph and the graphs inside its nodes did; `path` leads to it by node names.

    With `call` only what it did in that call: a graph with a memory keeps one namespace over all of them.
    """
    for checkpoint in saver.history(key, ns):
        at = origin_of(checkpoint).at or ns
        if call is not None and at != call:
            continue
        where = _PATH.join((*path, f"#{checkpoint.step}"))
        yield Entry(checkpoint.created_at, "step", where, checkpoint.source, {"checkpoint": checkpoint.id}, 20)
        loaded = saver.load(key, ns, checkpoint.id)
        nodes = {row.task_id: row.node for row in loaded.outcomes}
        for effect in loaded.journal:
            if effect.kind == "step":
                yield _of_effect(effect, (*path, nodes.get(effect.task_id, "")))
        for outcome in loaded.outcomes:
            if outcome.node != START and outcome.status != "patch":
                yield _of_outcome(outcome, path)
                yield from _inside(saver, key, outcome, path, at)


def _inside(
    saver: BaseCheckpointSaver, key: ThreadKey, outcome: OutcomeRow, path: tuple[str, ...], at: str
) -> Iterator[Entry]:
    """Yield what the graphs did that a task called, in the order of its calls; `at` is the call of the task's graph."""
    own, inside = f"{outcome.node}:{outcome.task_id}", (*path, outcome.node)
    for index in itertools.count():
        number = f"|{index}" if index else ""
        entries = list(_steps(saver, key, below(outcome.ns, own) + number, inside))
        if not entries:
            call = below(at, own) + number
            entries = list(_steps(saver, key, memory_ns(outcome.ns, outcome.node) + number, inside, call))
        if not entries:
            return
        yield from entries


def _of_event(event: EventRow, asked: dict[str, Question]) -> Entry:
    data = codec.to_json(codec.loads(event.data)) if event.data else {}
    known = {name: value for name, value in data.items() if value is not None and name != "answer"}
    question = asked.get(event.ref)
    if question is None:
        detail = ", ".join(f"{name}: {value}" for name, value in known.items())
        return Entry(event.at, event.kind, "", detail, {"ref": event.ref or None, **known, "seq": event.seq}, 40)
    detail = f"{question.id[: lookup.SHORTEST]} "
    if event.kind == "asked":
        detail += questions.headline(question)
    elif event.kind in ("answered", "withdrawn") and event.kind == question.status:
        detail += _settled_detail(question)
    else:
        detail += ", ".join(f"{name}: {value}" for name, value in known.items())
    order = 10 if event.kind in ("answered", "withdrawn") else 35
    return Entry(
        event.at, event.kind, _where(question), detail, {"question": question.id, **known, "seq": event.seq}, order
    )


def _where(question: Question) -> str:
    return _PATH.join(question.path) or question.node


def _settled_detail(question: Question) -> str:
    withdrawn = question.status == "withdrawn"
    text = question.reason or "" if withdrawn else safe.json_text(question.answer, indent=None)
    by = f" by {question.by}" if question.by else ""
    return f"{text}{by}{f' ({question.comment})' if question.comment else ''}"


def _of_outcome(row: OutcomeRow, path: tuple[str, ...]) -> Entry:
    detail = f"attempt {row.attempt}" if row.attempt > 1 else ""
    return Entry(row.at, f"node {row.status}", _PATH.join((*path, row.node)), detail, {"attempt": row.attempt}, 15)


def _of_effect(row: JournalRow, path: tuple[str, ...]) -> Entry:
    function = codec.loads(row.body).get("function", "")
    return Entry(row.at, _EFFECTS[row.state], _PATH.join(path), function, {"attempt": row.attempt}, 12)
