"""Permits: rights to one execution, kept in the thread's own journal, outside of the state.

Where a decision is taken in one task and acted on in another, the decision leaves a permit, named by what exactly it
allows. The execution that uses it up says so in the same commit that records its start, so no two can.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from waitpoint import clock, codec
from waitpoint.checkpoint.base import JournalRow
from waitpoint.interrupts.journal import Journal

_PLACE = ("", "permits")  # no checkpoint has this id


def grant(journal: Journal, permits: Mapping[str, Mapping[str, Any]]) -> None:
    """Put permits on record, by name, each with what is to be known of it; durable when this returns."""
    if permits and journal.recorder is not None:
        journal.recorder.record(*(_granted(journal, name, about) for name, about in permits.items()))


def _granted(journal: Journal, name: str, about: Mapping[str, Any]) -> JournalRow:
    old = _read(journal, name)
    # A permit that was used up is not given back by accident: only a later grant is another one.
    generation = 0 if old is None else old.attempt + 1
    return JournalRow(
        *_PLACE, name, 0, "permit", "executing", generation, clock.now(), os.urandom(8).hex(), codec.dumps(dict(about))
    )


def note(journal: Journal, name: str, digest: str) -> None:
    """Note a right that this task gave itself; put on record if the attempt pauses before it is used."""
    task = journal.task
    with journal.lock:
        seq = journal.next_seq()
        journal.entries[seq] = JournalRow(
            task.ns, task.checkpoint_id, task.task_id, seq, "permit", "done", journal.attempt, clock.now(),
            os.urandom(8).hex(), codec.dumps({"name": name, "digest": digest}),
        )  # fmt: skip


def is_noted(journal: Journal, name: str, digest: str) -> bool:
    """Whether this task gave itself this right."""
    with journal.lock:
        rows = [row for row in journal.entries.values() if row.kind == "permit"]
    return any(codec.loads(row.body) == {"name": name, "digest": digest} for row in rows)


def open_permit(journal: Journal, names: Iterable[str]) -> tuple[JournalRow, dict[str, Any]] | None:
    """Return the first of these permits that this task may use, as it is to be recorded with the execution's start.

    One that this very task used already counts: its executions follow each other, and the record of each tells whether
    another is to be.
    """
    task = journal.task.task_id
    for name in names:
        row = _read(journal, name)
        if row is None:
            continue
        about = codec.loads(row.body)
        if row.state == "executing" or about.get("used_by") == task:
            body = codec.dumps(about | {"used_by": task})
            return replace(row, state="done", at=clock.now(), body=body), about
    return None


def _read(journal: Journal, name: str) -> JournalRow | None:
    return None if journal.recorder is None else journal.recorder.entry(*_PLACE, name, 0)
