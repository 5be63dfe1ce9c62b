"""What happened on a thread, in order, from its events, checkpoints, outcomes, effects and questions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from waitpoint import codec
from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    EventRow,
    JournalRow,
    OutcomeRow,
    PendingFilter,
    ThreadKey,
    as_question,
)
from waitpoint.engine.heads import origin_of
from waitpoint.engine.segment import below, memory_ns
from waitpoint.records import START, Question

_EFFECTS = {
    "executing": "effect started",
    "done": "effect done",
    "raised": "effect failed",
    "not_happened": "effect not done",
}


@dataclass(slots=True)
class Entry:
    """One thing that happened, as plain data; `path` leads to it by node names.

    `order` sorts what has the same time. `question` is the one that it speaks of, `settles` whether it answered or
    withdrew that. `note` says the rest: how a checkpoint came about, which function an effect is.
    """

    at: float
    kind: str
    path: tuple[str, ...] = ()
    note: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    order: int = 0
    question: Question | None = None
    settles: bool = False


def entries(saver: BaseCheckpointSaver, key: ThreadKey) -> list[Entry]:
    """Return what happened on a thread, in order."""
    return sorted(_entries(saver, key), key=lambda e: (e.at, e.order))


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
            data = {"question": question.id}
            yield Entry(at, "withdrawn", _where(question), "", data, 30, question, settles=True)
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
        where = (*path, f"#{checkpoint.step}")
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
        found = list(_steps(saver, key, below(outcome.ns, own) + number, inside))
        if not found:
            call = below(at, own) + number
            found = list(_steps(saver, key, memory_ns(outcome.ns, outcome.node) + number, inside, call))
        if not found:
            return
        yield from found


def _of_event(event: EventRow, asked: dict[str, Question]) -> Entry:
    data = codec.to_json(codec.loads(event.data)) if event.data else {}
    known = {name: value for name, value in data.items() if value is not None and name != "answer"}
    question = asked.get(event.ref)
    note = ", ".join(f"{name}: {value}" for name, value in known.items())
    if question is None:
        return Entry(event.at, event.kind, (), note, {"ref": event.ref or None, **known, "seq": event.seq}, 40)
    told = {"question": question.id, **known, "seq": event.seq}
    is_settling = event.kind in ("answered", "withdrawn")
    settles = is_settling and event.kind == question.status
    order = 10 if is_settling else 35
    if settles or event.kind == "asked":
        note = ""  # the question itself says it
    return Entry(event.at, event.kind, _where(question), note, told, order, question, settles)


def _where(question: Question) -> tuple[str, ...]:
    return question.path or (question.node,)


def _of_outcome(row: OutcomeRow, path: tuple[str, ...]) -> Entry:
    note = f"attempt {row.attempt}" if row.attempt > 1 else ""
    return Entry(row.at, f"node {row.status}", (*path, row.node), note, {"attempt": row.attempt}, 15)


def _of_effect(row: JournalRow, path: tuple[str, ...]) -> Entry:
    function = codec.loads(row.body).get("function", "")
    return Entry(row.at, _EFFECTS[row.state], path, function, {"attempt": row.attempt}, 12)
